#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ingot/nn/token_cache.h"

namespace ingot::nn {

// A pool of pages, each with room for the keys and values of `capacity` tokens in every layer. A
// text's tokens lie in the pages that its table names, in this order; tables may share pages. Kwon
// et al. 2023, arXiv:2309.06180.
class PagedCache {
 public:
  // Bytes that a token takes in all layers.
  static int64_t bytes_per_token(const KvCacheShape& shape, DType dtype);

  // shape.batch pages of shape.capacity tokens; a divisor or a multiple of 64, which the kernel
  // asks for. In i8 keys and values are kept in 8 bits with a scale for each token and head
  // (ops/int8_heads.h): then a forward sees its own tokens as they are, unless it has one a row,
  // and those before as the codes stand for them.
  PagedCache(const KvCacheShape& shape, DType dtype, Device device);

  int64_t pages() const { return shape_.batch; }
  int64_t page_tokens() const { return shape_.capacity; }
  int64_t bytes() const;

  // Copies the first `tokens` tokens of a page, of all layers.
  void copy_page(int32_t from, int32_t to, int64_t tokens);

 private:
  friend class PagedRows;
  KvCacheShape shape_;
  bool coded() const { return !key_scales_.empty(); }

  // Per layer [P, S, K, C or value_dim]; contents undefined until stored.
  TensorList keys_, values_;
  TensorList key_scales_, value_scales_;  // per layer [P, S, K, 1] f32, of codes
};

// The rows of one forward over such a pool. Either one text and any number of tokens, or one token
// of each row; then several rows may belong to one text, each counting the tokens before its own.
// What a row comes out as does not depend on the others.
class PagedRows final : public TokenCache {
 public:
  struct Row {
    std::span<const int32_t> pages;  // room for all its tokens; must outlive this
    int64_t length = 0;              // tokens before the forward's
  };
  PagedRows(PagedCache& pool, std::vector<Row> rows);

  // Throws Error(argument) where a row's pages have no room, and for several tokens of several
  // rows.
  Stored extend(int64_t layer, const Tensor& k, const Tensor& v,
                AttentionOptions& options) override;

 private:
  // One pool of a layer: what is stored, and the scales of codes, or null.
  struct Part {
    Tensor* stored;
    Tensor* scales;
  };
  void store(const Part& part, const Tensor& fresh) const;
  void put(Tensor& pool, const Tensor& fresh) const;
  Tensor with_earlier(const Part& part, const Tensor& fresh) const;
  Tensor gathered(const Tensor& pool, int64_t tokens) const;
  void make_tables();

  PagedCache& pool_;
  std::vector<Row> rows_;
  Tensor table_;          // [B, N] i32
  Tensor lengths_after_;  // [B] i32, the token of the forward included
};

}  // namespace ingot::nn
