#pragma once

#include <cstdint>
#include <vector>

#include "ingot/nn/token_cache.h"

namespace ingot::nn {

// Keys and values side by side, [B, capacity, K, C] for each layer: of texts that are read and
// continued together, all for as long.
class KvCache final : public TokenCache {
 public:
  KvCache(const KvCacheShape& shape, DType dtype, Device device);

  int64_t capacity() const { return shape_.capacity; }
  int64_t bytes() const;

  // Gives attention [B, S, K, C]. Throws Error(argument) when the capacity is passed, and for T > 1
  // onto uneven rows.
  Stored extend(int64_t layer, const Tensor& k, const Tensor& v,
                AttentionOptions& options) override;

  // Declares how many tokens each row holds: after a prompt padded on the right, what counts.
  void set_lengths(std::vector<int64_t> lengths);

 private:
  void store(Tensor& cache, const Tensor& fresh) const;
  Tensor in_window(int64_t keys, int64_t window) const;

  KvCacheShape shape_;
  TensorList keys_, values_;  // per layer [B, capacity, K, C or value_dim]
};

}  // namespace ingot::nn
