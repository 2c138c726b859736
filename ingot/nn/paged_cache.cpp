#include "ingot/nn/paged_cache.h"

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

PagedCache::PagedCache(const KvCacheShape& shape, DType dtype, Device device) : shape_(shape) {
  check(shape.batch > 0 && shape.capacity > 0, ErrorKind::argument,
        "paged cache: has no room: ", shape.batch, " pages of ", shape.capacity, " tokens");
  check(64 % shape.capacity == 0 || shape.capacity % 64 == 0, ErrorKind::argument,
        "paged cache: a page holds a divisor or a multiple of 64 tokens: got ", shape.capacity);
  const Shape key = {shape.batch, shape.capacity, shape.kv_heads, shape.head_dim};
  const Shape value = {shape.batch, shape.capacity, shape.kv_heads, shape.value_features()};
  for (int64_t layer = 0; layer < shape.layers; ++layer) {
    keys_.push_back(empty(key, dtype, device));
    values_.push_back(empty(value, dtype, device));
  }
}

int64_t PagedCache::bytes() const {
  int64_t total = 0;
  for (size_t layer = 0; layer < keys_.size(); ++layer) {
    total += keys_[layer].bytes() + values_[layer].bytes();
  }
  return total;
}

void PagedCache::copy_page(int32_t from, int32_t to, int64_t tokens) {
  for (TensorList* list : {&keys_, &values_}) {
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
  Tensor& keys = pool_.keys_[static_cast<size_t>(layer)];
  Tensor& values = pool_.values_[static_cast<size_t>(layer)];
  store(keys, k);
  store(values, v);
  if (fresh == 1) {
    if (!table_.defined()) {
      make_tables();
    }
    options.pages = table_;
    options.key_lengths = lengths_after_;
    return {keys, values};
  }
  const int64_t before = rows_.front().length;
  options.query_offset = before;
  if (before == 0) {
    return {k, v};
  }
  return {gathered(keys, before + fresh), gathered(values, before + fresh)};
}

void PagedRows::store(Tensor& pool, const Tensor& fresh) const {
  if (fresh.elements() == 0) {
    return;
  }
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
