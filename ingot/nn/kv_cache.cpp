#include "ingot/nn/kv_cache.h"

#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"

namespace ingot::nn {

KvCache::KvCache(const KvCacheShape& shape, DType dtype, Device device) : shape_(shape) {
  lengths_.assign(static_cast<size_t>(shape.batch), 0);
  const Shape key = {shape.batch, shape.capacity, shape.kv_heads, shape.head_dim};
  const Shape value = {shape.batch, shape.capacity, shape.kv_heads, shape.value_features()};
  for (int64_t layer = 0; layer < shape.layers; ++layer) {
    keys_.push_back(zeros(key, dtype, device));
    values_.push_back(zeros(value, dtype, device));
  }
}

int64_t KvCache::bytes() const {
  int64_t total = 0;
  for (size_t layer = 0; layer < keys_.size(); ++layer) {
    total += keys_[layer].bytes() + values_[layer].bytes();
  }
  return total;
}

KvCache::Stored KvCache::extend(int64_t layer, const Tensor& k, const Tensor& v,
                                AttentionOptions& options) {
  const int64_t fresh = k.size(1);
  const int64_t end = longest() + fresh;
  check(end <= shape_.capacity, ErrorKind::argument, "kv cache: full: it holds ", longest(),
        " tokens, ", fresh, " more come, capacity is ", shape_.capacity);
  check(fresh == 1 || even(), ErrorKind::argument, "kv cache: ", fresh,
        " tokens at once onto rows of different lengths; add them one at a time");
  Tensor& keys = keys_[static_cast<size_t>(layer)];
  Tensor& values = values_[static_cast<size_t>(layer)];
  store(keys, k);
  store(values, v);
  if (even()) {
    options.query_offset = longest();
  } else {
    // One query a row, which sees exactly the tokens stored for its row.
    options.causal = false;
    std::vector<int32_t> seen;
    for (const int64_t length : lengths_) {
      seen.push_back(static_cast<int32_t>(length + 1));
    }
    options.key_lengths = moved(tensor_of(seen, {shape_.batch}), k.device());
    if (options.window > 0) {
      options.documents = moved(in_window(end, options.window), k.device());
      options.query_offset = end - 1;
      options.window = 0;
    }
  }
  return {sliced(keys, 1, 0, end), sliced(values, 1, 0, end)};
}

// Where each row's window is at its own place: the keys in it as one document, [B, S], which the
// last place belongs to because the query stands there.
Tensor KvCache::in_window(int64_t keys, int64_t window) const {
  std::vector<int32_t> ids;
  for (const int64_t length : lengths_) {
    for (int64_t key = 0; key < keys; ++key) {
      ids.push_back(key > length - window || key == keys - 1 ? 1 : 0);
    }
  }
  return tensor_of(ids, {shape_.batch, keys});
}

void KvCache::store(Tensor& cache, const Tensor& fresh) const {
  const int64_t count = fresh.size(1);
  if (even()) {
    Tensor target = sliced(cache, 1, longest(), longest() + count);
    copy_into(target, fresh);
    return;
  }
  for (int64_t row = 0; row < shape_.batch; ++row) {
    const int64_t at = lengths_[static_cast<size_t>(row)];
    Tensor target = sliced(sliced(cache, 0, row, row + 1), 1, at, at + count);
    copy_into(target, sliced(fresh, 0, row, row + 1));
  }
}

void KvCache::set_lengths(std::vector<int64_t> lengths) {
  check(lengths.size() == lengths_.size(), ErrorKind::argument, "kv cache: ", lengths.size(),
        " lengths for ", lengths_.size(), " rows");
  lengths_ = std::move(lengths);
}

}  // namespace ingot::nn
