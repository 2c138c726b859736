#include "ingot/nn/paged_cache.h"

#include "ingot/ops/int8_heads.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"

namespace ingot::nn {
namespace {

// Tokens [begin, end) of one page: [1, end − begin, K, C].
Tensor part_of_page(const Tensor& pool, int32_t page, int64_t begin, int64_t end) {
  return sliced(sliced(pool, 0, page, page + 1), 1, begin, end);
}

}  // namespace

int64_t PagedCache::bytes_per_token(const KvCacheShape& shape, DType dtype) {
  const int64_t features = shape.head_dim + shape.value_features();
  const int64_t scales = dtype == DType::i8 ? 2 * size_of(DType::f32) : 0;
  return shape.layers * shape.kv_heads * (features * size_of(dtype) + scales);
}

PagedCache::PagedCache(const KvCacheShape& shape, DType dtype, Device device) : shape_(shape) {
  check(shape.batch > 0 && shape.capacity > 0, ErrorKind::argument,
        "paged cache: has no room: ", shape.batch, " pages of ", shape.capacity, " tokens");
  check(64 % shape.capacity == 0 || shape.capacity % 64 == 0, ErrorKind::argument,
        "paged cache: a page holds a divisor or a multiple of 64 tokens: got ", shape.capacity);
  const Shape key = {shape.batch, shape.capacity, shape.kv_heads, shape.head_dim};
  const Shape value = {shape.batch, shape.capacity, shape.kv_heads, shape.value_features()};
  const Shape scale = {shape.batch, shape.capacity, shape.kv_heads, 1};
  for (int64_t layer = 0; layer < shape.layers; ++layer) {
    keys_.push_back(empty(key, dtype, device));
    values_.push_back(empty(value, dtype, device));
    if (dtype == DType::i8) {
      key_scales_.push_back(empty(scale, DType::f32, device));
      value_scales_.push_back(empty(scale, DType::f32, device));
    }
  }
}

int64_t PagedCache::bytes() const {
  int64_t total = 0;
  for (const TensorList* list : {&keys_, &values_, &key_scales_, &value_scales_}) {
    for (const Tensor& pool : *list) {
      total += pool.bytes();
    }
  }
  return total;
}

void PagedCache::copy_page(int32_t from, int32_t to, int64_t tokens) {
  for (TensorList* list : {&keys_, &values_, &key_scales_, &value_scales_}) {
    for (Tensor& pool : *list) {
      Tensor target = part_of_page(pool, to, 0, tokens);
      copy_into(target, part_of_page(pool, from, 0, tokens));
    }
  }
}

PagedRows::PagedRows(PagedCache& pool, std::vector<Row> rows)
    : pool_(pool), rows_(std::move(rows)) {
  for (const Row& row : rows_) {
    lengths_.push_back(row.length);
  }
}

void PagedRows::make_tables() {
  size_t most = 0;
  for (const Row& row : rows_) {
    most = std::max(most, row.pages.size());
  }
  std::vector<int32_t> table, lengths;
  for (const Row& row : rows_) {
    table.insert(table.end(), row.pages.begin(), row.pages.end());
    table.resize((lengths.size() + 1) * most, 0);
    lengths.push_back(static_cast<int32_t>(row.length + 1));
  }
  const auto batch = static_cast<int64_t>(rows_.size());
  const Device device = pool_.keys_.front().device();
  table_ = moved(tensor_of(table, {batch, static_cast<int64_t>(most)}), device);
  lengths_after_ = moved(tensor_of(lengths, {batch}), device);
}

TokenCache::Stored PagedRows::extend(int64_t layer, const Tensor& k, const Tensor& v,
                                     AttentionOptions& options) {
  const int64_t fresh = k.size(1);
  check(fresh == 1 || rows_.size() == 1, ErrorKind::argument, "paged cache: ", fresh,
        " tokens at once of ", rows_.size(), " rows; read several tokens of one row alone");
  for (const Row& row : rows_) {
    const int64_t room = static_cast<int64_t>(row.pages.size()) * pool_.page_tokens();
    check(row.length + fresh <= room, ErrorKind::argument, "paged cache: full: a row holds ",
          row.length, " tokens, ", fresh, " more come, its pages have room for ", room);
  }
  const auto at = static_cast<size_t>(layer);
  const bool coded = pool_.coded();
  const Part keys = {&pool_.keys_[at], coded ? &pool_.key_scales_[at] : nullptr};
  const Part values = {&pool_.values_[at], coded ? &pool_.value_scales_[at] : nullptr};
  store(keys, k);
  store(values, v);
  if (fresh == 1) {
    if (!table_.defined()) {
      make_tables();
    }
    options.pages = table_;
    options.key_lengths = lengths_after_;
    if (coded) {
      options.key_scales = *keys.scales;
      options.value_scales = *values.scales;
    }
    return {*keys.stored, *values.stored};
  }
  const int64_t before = rows_.front().length;
  options.query_offset = before;
  if (before == 0) {
    return {k, v};
  }
  return {with_earlier(keys, k), with_earlier(values, v)};
}

void PagedRows::store(const Part& part, const Tensor& fresh) const {
  if (fresh.elements() == 0) {
    return;
  }
  if (part.scales == nullptr) {
    put(*part.stored, fresh);
    return;
  }
  const Int8Heads heads = int8_heads(fresh);
  put(*part.stored, heads.codes);
  put(*part.scales, heads.scales);
}

void PagedRows::put(Tensor& pool, const Tensor& fresh) const {
  const int64_t size = pool_.page_tokens();
  for (size_t row = 0; row < rows_.size(); ++row) {
    const auto b = static_cast<int64_t>(row);
    const Tensor own = sliced(fresh, 0, b, b + 1);
    for (int64_t t = 0; t < fresh.size(1);) {
      const int64_t at = rows_[row].length + t;
      const int64_t count = std::min(size - at % size, fresh.size(1) - t);
      Tensor target = part_of_page(pool, rows_[row].pages[static_cast<size_t>(at / size)],
                                   at % size, at % size + count);
      copy_into(target, sliced(own, 1, t, t + count));
      t += count;
    }
  }
}

// All tokens of the only row, the fresh ones included.
Tensor PagedRows::with_earlier(const Part& part, const Tensor& fresh) const {
  const int64_t before = rows_.front().length;
  if (part.scales == nullptr || fresh.elements() == 0) {
    return gathered(*part.stored, before + fresh.size(1));
  }
  const Int8Heads earlier = {gathered(*part.stored, before), gathered(*part.scales, before)};
  return concat({dense_heads(earlier, fresh.dtype()), fresh}, int64_t{1});
}

// The first `tokens` tokens of the only row, side by side.
Tensor PagedRows::gathered(const Tensor& pool, int64_t tokens) const {
  Tensor out = empty({1, tokens, pool.size(2), pool.size(3)}, pool.dtype(), pool.device());
  if (out.elements() == 0) {
    return out;
  }
  const int64_t size = pool_.page_tokens();
  for (int64_t at = 0; at < tokens; at += size) {
    const int64_t end = std::min(at + size, tokens);
    Tensor target = sliced(out, 1, at, end);
    copy_into(target,
              part_of_page(pool, rows_.front().pages[static_cast<size_t>(at / size)], 0, end - at));
  }
  return out;
}

}  // namespace ingot::nn
