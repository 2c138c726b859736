#pragma once

#include <cstdint>
#include <vector>

#include "ingot/ops/attention.h"
#include "ingot/tensor/tensor.h"

namespace ingot::nn {

struct KvCacheShape {
  int64_t layers = 0, batch = 0, capacity = 0, kv_heads = 0, head_dim = 0;
  int64_t value_dim = -1;  // features of a value where it has not head_dim; latents need none, 0
};

// The keys and values of the tokens a model has read, so that the next token costs one row. Rows of
// the batch may hold different numbers of tokens. Used under NoGrad.
class KvCache {
 public:
  KvCache(const KvCacheShape& shape, DType dtype, Device device);

  int64_t capacity() const { return shape_.capacity; }
  int64_t longest() const;                                          // tokens of the longest row
  bool even() const;                                                // all rows hold equally many
  const std::vector<int64_t>& lengths() const { return lengths_; }  // [B]
  int64_t bytes() const;

  // Stores k and v [B, T, K, C] of a layer after each row's tokens and returns what attention
  // reads, [B, S, K, C], setting those options that say who sees what. Throws Error(argument) when
  // the capacity is passed, and for T > 1 onto uneven rows.
  struct Stored {
    Tensor k, v;
  };
  Stored extend(int64_t layer, const Tensor& k, const Tensor& v, AttentionOptions& options);

  // Counts `tokens` as read by every row: once per forward, after its last layer.
  void advance(int64_t tokens);
  // Declares how many tokens each row holds: after a prompt padded on the right, what counts.
  void set_lengths(std::vector<int64_t> lengths);

 private:
  void store(Tensor& cache, const Tensor& fresh) const;
  Tensor in_window(int64_t keys, int64_t window) const;

  KvCacheShape shape_;
  TensorList keys_, values_;  // per layer [B, capacity, K, C or value_dim]
  std::vector<int64_t> lengths_;
};

}  // namespace ingot::nn
