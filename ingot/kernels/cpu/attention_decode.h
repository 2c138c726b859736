#pragma once

#include "ingot/kernels/attention.h"

namespace ingot::kernels {

// Attention of at most `decode_queries` queries per row of the batch, as when decoding with a KV
// cache. The tiles for many queries would leave most lanes empty; here the lanes are features, and
// K and V stream through once, in chunks of keys whose partial results are joined at the end
// ("flash decoding", Dao et al. 2023). Arguments as for attention(); the one that reads keys in
// pages (Kwon et al. 2023, arXiv:2309.06180), of 64 tokens, a divisor or a multiple. The bits of a
// row do not depend on the other rows, nor on how many pages the table has room for.
inline constexpr int64_t decode_queries = 4;
int64_t attention_decode_workspace(const Shape& q, const Shape& k);
void attention_decode(const ConstView& q, const ConstView& k, const ConstView& v,
                      const AttentionRule& rule, const View& y, const View& lse,
                      const View& workspace);

}  // namespace ingot::kernels
