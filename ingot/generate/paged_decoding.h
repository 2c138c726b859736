#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ingot/generate/page_pool.h"
#include "ingot/models/decoder.h"
#include "ingot/nn/paged_cache.h"

namespace ingot {

// A text that a model reads and continues, and the pages that hold what was read of it. A value,
// but for its pages, which PagedDecoding gives and takes back.
struct PagedText {
  Tokens tokens;
  int64_t start = 0;  // tokens before it were dropped when the text outgrew the context
  int64_t held = 0;   // tokens from `start` on that were read
  std::vector<int32_t> pages;
  PagePool::Name name = PagePool::root;  // of the first `named` pages
  int64_t named = 0;

  int64_t unread() const { return static_cast<int64_t>(tokens.size()) - start - held; }
};

enum class Sharing : uint8_t { yes, no };

// The type that keys and values are kept in: the model's ("model"), or i8 ("int8"), codes with a
// scale for each token and head (nn/paged_cache.h). A text's logits depend on it, but on the text's
// company neither way. Throws Error(config) for another name, and for int8 with a model in f64.
DType kv_dtype(const Decoder& model, const std::string& kv);

// A model that reads texts of any lengths side by side, in pages of one pool.
//
// What a text's logits are does not depend, to the last bit, on which other texts are read beside
// it. Prompts are read a page at a time, each page in a forward of its own, so that a page is the
// same whoever read it, and a prompt goes on from the pages of an earlier one that began alike.
// Single tokens of several texts share a forward in groups of at most `rows_together()`, for which
// every kernel computes each row by itself (docs/decisions.md).
//
// A model with learnt vectors before every text (Decoder::before_text) has them in each text's
// pages too; then pages are not shared.
class PagedDecoding {
 public:
  // Room for `pages` pages of `page_tokens` tokens. The model must outlive this. Throws
  // Error(argument) for a page size that attention does not take, or as kv_dtype() does.
  PagedDecoding(const Decoder& model, int64_t pages, int64_t page_tokens,
                const std::string& kv = "model");

  const Decoder& model() const { return model_; }
  const PagePool& pool() const { return pool_; }
  int64_t page_tokens() const { return cache_.page_tokens(); }
  int64_t pages_for(int64_t tokens) const;
  int64_t bytes() const { return cache_.bytes(); }
  int64_t rows_together() const { return rows_together_; }

  // Gives a text, of which nothing was read, pages for `tokens` tokens, and with Sharing::yes what
  // others have read of its beginning. False, and nothing taken, where too few pages are free.
  bool begin(PagedText& text, int64_t tokens, Sharing sharing = Sharing::yes);
  // A text with the same tokens and what was read of them: whole pages are shared, the last one is
  // copied. Nothing where too few pages are free.
  std::optional<PagedText> fork(const PagedText& text);
  void release(PagedText& text);

  // Reads up to the end of the page; at the end of the text, returns the logits [V] of the next
  // token. `each` is given the hidden states [n, D] of what was read, and where they begin.
  using OnHidden = std::function<void(const Tensor& hidden, int64_t first)>;
  std::optional<Tensor> read_page(PagedText& text, const OnHidden& each = {});
  // Reads all of it.
  Tensor read_all(PagedText& text);

  // Reads all that is unread of each text, token by token: logits [rows, V] f32 after each token,
  // text by text.
  Tensor read_tokens(std::span<PagedText* const> texts);

  // Whether the text has as many tokens as the model's context, or its cached angles turn anew with
  // the next one; then read_anew() must be called before the next token is read.
  bool outgrown(const PagedText& text) const;
  // Forgets what was read: the text goes on from its last half where it outgrew the context. Its
  // pages must be its own (Sharing::no).
  void read_anew(PagedText& text);
  // Forgets what was read beyond the first `tokens` tokens from `start` on.
  static void rewind(PagedText& text, int64_t tokens) { text.held = tokens; }

 private:
  struct Row {
    PagedText* text;
    int64_t place;  // of its token, from `start` on
  };
  // Where a text's token lies in its pages; 0 before anything was read.
  int64_t stored(int64_t place) const { return place == 0 ? 0 : lead_ + place; }
  Tensor read_rows(std::span<const Row> rows);
  Tensor logits_after(const Tensor& hidden) const;

  const Decoder& model_;
  nn::PagedCache cache_;
  PagePool pool_;
  int64_t lead_;  // vectors before every text
  bool whole_;    // angles depend on the whole length: prompts are read in one forward, unshared
  int64_t rows_together_;
};

}  // namespace ingot
