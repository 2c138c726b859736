#pragma once

#include <memory>
#include <vector>

#include "ingot/generate/paged_decoding.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"

namespace ingot::testing {

// Texts that a model continues side by side, a token each at a time, from pages of 8 tokens. One
// that outgrows the model's context goes on from its last half.
class PagedTexts {
 public:
  // `more`: tokens a text will be fed at most.
  PagedTexts(const Decoder& model, const std::vector<Tokens>& prompts, int64_t more)
      : decoding_(model, pages_for(model, prompts, more), page) {
    for (const Tokens& prompt : prompts) {
      texts_.emplace_back();
      texts_.back().tokens = prompt;
    }
    for (PagedText& text : texts_) {
      const auto size = static_cast<int64_t>(text.tokens.size());
      decoding_.begin(text, std::min(size + more, model.config().context), Sharing::no);
      logits_.push_back(decoding_.read_all(text));
    }
  }

  const Tensor& logits(size_t row) const { return logits_[row]; }  // [V] f32 after the text
  const Tokens& tokens(size_t row) const { return texts_[row].tokens; }
  int64_t bytes() const { return decoding_.bytes(); }

  void feed(const Tokens& next) {
    std::vector<PagedText*> rows;
    std::vector<size_t> places;
    for (size_t row = 0; row < texts_.size(); ++row) {
      PagedText& text = texts_[row];
      text.tokens.push_back(next[row]);
      if (decoding_.outgrown(text)) {
        decoding_.read_anew(text);
        logits_[row] = decoding_.read_all(text);
      } else {
        rows.push_back(&text);
        places.push_back(row);
      }
    }
    if (rows.empty()) {
      return;
    }
    const Tensor all = decoding_.read_tokens(rows);
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      logits_[places[i]] = reshape(copy_of(slice(all, 0, at, at + 1)), {all.size(1)});
    }
  }

 private:
  static constexpr int64_t page = 8;
  static int64_t pages_for(const Decoder& model, const std::vector<Tokens>& prompts, int64_t more) {
    int64_t pages = 0;
    for (const Tokens& prompt : prompts) {
      pages += (model.lead() + static_cast<int64_t>(prompt.size()) + more) / page + 1;
    }
    return pages;
  }

  PagedDecoding decoding_;
  std::vector<PagedText> texts_;
  std::vector<Tensor> logits_;
};

}  // namespace ingot::testing
