#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "ingot/ops/attention.h"
#include "ingot/tensor/tensor.h"

namespace ingot::nn {

struct KvCacheShape {
  int64_t layers = 0, batch = 0, capacity = 0, kv_heads = 0, head_dim = 0;
  int64_t value_dim = -1;  // features of a value where it has not head_dim; latents need none, 0

  int64_t value_features() const { return value_dim < 0 ? head_dim : value_dim; }
};

// The keys and values of the tokens that a model has read, so that the next token costs one row.
// Rows of the batch may hold different numbers of tokens. Where they lie is up to the class:
// paged_cache.h. Used under NoGrad.
class TokenCache {
 public:
  virtual ~TokenCache() = default;

  const std::vector<int64_t>& lengths() const { return lengths_; }  // [B]
  int64_t longest() const {
    return lengths_.empty() ? 0 : *std::max_element(lengths_.begin(), lengths_.end());
  }
  bool even() const {  // all rows hold equally many
    return std::adjacent_find(lengths_.begin(), lengths_.end(), std::not_equal_to<>()) ==
           lengths_.end();
  }

  // Stores k and v [B, T, K, C] of a layer after each row's tokens and returns what attention
  // reads, setting those options that say who sees what.
  struct Stored {
    Tensor k, v;
  };
  virtual Stored extend(int64_t layer, const Tensor& k, const Tensor& v,
                        AttentionOptions& options) = 0;

  // Counts `tokens` as read by every row: once per forward, after its last layer.
  void advance(int64_t tokens) {
    for (int64_t& length : lengths_) {
      length += tokens;
    }
  }

 protected:
  TokenCache() = default;
  TokenCache(const TokenCache&) = default;
  TokenCache(TokenCache&&) = default;
  TokenCache& operator=(const TokenCache&) = default;
  TokenCache& operator=(TokenCache&&) = default;

  std::vector<int64_t> lengths_;
};

}  // namespace ingot::nn
