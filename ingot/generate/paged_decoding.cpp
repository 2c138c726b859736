#include "ingot/generate/paged_decoding.h"

#include <algorithm>

#include "ingot/autograd/grad_mode.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

// Rows up to which products of matrices compute each row by itself: those of few rows
// (kernels/cpu/product.h). Latent attention multiplies by a transposed weight, whose products have
// no such form.
int64_t rows_of_own_bits(const Decoder& model, bool whole) {
  constexpr int64_t few_rows = 8;
  return whole || model.config().latent.kv_rank > 0 ? 1 : few_rows;
}

Tensor row_of_tokens(const Tokens& tokens, int64_t begin, int64_t end) {
  return tensor_of(
      std::span(tokens).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)),
      {1, end - begin});
}

}  // namespace

DType kv_dtype(const Decoder& model, const std::string& kv) {
  if (kv == "model") {
    return model.dtype();
  }
  check(kv == "int8", ErrorKind::config, "kv: '", kv,
        "' is nothing that keys and values are kept in; give model or int8");
  check(model.dtype() != DType::f64, ErrorKind::config,
        "kv: int8 is for models in f32, bf16 or f16: got ", model.dtype());
  return DType::i8;
}

PagedDecoding::PagedDecoding(const Decoder& model, int64_t pages, int64_t page_tokens,
                             const std::string& kv)
    : model_(model),
      cache_(model.cache_shape(pages, page_tokens), kv_dtype(model, kv), cpu_device),
      pool_(pages),
      lead_(model.lead()),
      whole_(model.turns_anew(1, model.config().context)),
      rows_together_(rows_of_own_bits(model, whole_)) {}

int64_t PagedDecoding::pages_for(int64_t tokens) const {
  return (lead_ + tokens + page_tokens() - 1) / page_tokens();
}

bool PagedDecoding::begin(PagedText& text, int64_t tokens, Sharing sharing) {
  const std::span all(text.tokens);
  const int64_t size = page_tokens();
  const bool shared = sharing == Sharing::yes && lead_ == 0;
  while (shared && !whole_) {
    const int64_t from = text.start + text.held;
    if (from + size >= static_cast<int64_t>(all.size())) {
      break;  // one token at least is read for its logits
    }
    const auto found = pool_.find(text.name, all.subspan(static_cast<size_t>(from), size));
    if (!found) {
      break;
    }
    text.pages.push_back(found->page);
    text.name = found->name;
    text.held += size;
    ++text.named;
  }
  const auto needed = static_cast<size_t>(pages_for(tokens));
  if (static_cast<int64_t>(needed) - static_cast<int64_t>(text.pages.size()) > pool_.free()) {
    release(text);
    return false;
  }
  while (text.pages.size() < needed) {
    text.pages.push_back(pool_.take());
  }
  if (!shared) {
    text.named = -1;
  }
  return true;
}

std::optional<PagedText> PagedDecoding::fork(const PagedText& text) {
  const auto shared = static_cast<size_t>(stored(text.held) / page_tokens());
  if (static_cast<int64_t>(text.pages.size() - shared) > pool_.free()) {
    return std::nullopt;
  }
  PagedText out = text;
  for (size_t i = 0; i < out.pages.size(); ++i) {
    if (i < shared) {
      pool_.share(out.pages[i]);
    } else {
      out.pages[i] = pool_.take();
    }
  }
  if (const int64_t rest = stored(text.held) % page_tokens(); rest > 0) {
    cache_.copy_page(text.pages[shared], out.pages[shared], rest);
  }
  return out;
}

void PagedDecoding::release(PagedText& text) {
  for (auto page = text.pages.rbegin(); page != text.pages.rend(); ++page) {
    pool_.give_back(*page);  // the last first: so the beginning is kept longest
  }
  text.pages.clear();
  text.held = 0;
  text.name = PagePool::root;
  text.named = 0;
}

Tensor PagedDecoding::logits_after(const Tensor& hidden) const {
  return dense(converted(model_.logits_of(hidden), DType::f32));
}

std::optional<Tensor> PagedDecoding::read_page(PagedText& text, const OnHidden& each) {
  const NoGrad quiet;
  const int64_t size = page_tokens();
  const int64_t first = text.held;
  const int64_t page_end =
      whole_ ? first + text.unread() : (lead_ + first) / size * size + size - lead_;
  const int64_t end = std::min(page_end, first + text.unread());
  nn::PagedRows rows(cache_, {{text.pages, stored(first)}});
  const Tensor hidden =
      model_.hidden(row_of_tokens(text.tokens, text.start + first, text.start + end), rows);
  const Tensor states = reshape(hidden, {hidden.size(1), hidden.size(2)});
  text.held = end;
  const bool full = end - first == size && first == text.named * size;
  if (full && !whole_) {
    text.name = pool_.name(
        text.pages[static_cast<size_t>(text.named)], text.name,
        std::span(text.tokens)
            .subspan(static_cast<size_t>(text.start + first), static_cast<size_t>(size)));
    ++text.named;
  }
  if (each) {
    each(states, first);
  }
  if (text.unread() > 0) {
    return std::nullopt;
  }
  return reshape(logits_after(slice(states, 0, end - first - 1, end - first)),
                 {model_.config().vocab});
}

Tensor PagedDecoding::read_all(PagedText& text) {
  check(text.unread() > 0, ErrorKind::internal, "decoding: nothing of the text is unread");
  std::optional<Tensor> logits;
  while (!logits) {
    logits = read_page(text);
  }
  return *logits;
}

Tensor PagedDecoding::read_rows(std::span<const Row> rows) {
  std::vector<int64_t> ids;
  std::vector<nn::PagedRows::Row> places;
  for (const Row& row : rows) {
    ids.push_back(row.text->tokens[static_cast<size_t>(row.text->start + row.place)]);
    places.push_back({row.text->pages, stored(row.place)});
  }
  const auto count = static_cast<int64_t>(rows.size());
  nn::PagedRows cached(cache_, std::move(places));
  const Tensor hidden = model_.hidden(tensor_of(ids, {count, 1}), cached);  // [rows, 1, D]
  return logits_after(reshape(hidden, {count, hidden.size(2)}));
}

Tensor PagedDecoding::read_tokens(std::span<PagedText* const> texts) {
  const NoGrad quiet;
  std::vector<Row> rows;
  for (PagedText* text : texts) {
    check(lead_ == 0 || text->held > 0, ErrorKind::internal,
          "decoding: the vectors before a text are read with its first page");
    for (int64_t i = text->unread(); i > 0; --i, ++text->held) {
      rows.push_back({text, text->held});
    }
  }
  const std::span all(rows);
  TensorList logits;
  for (size_t at = 0; at < rows.size(); at += static_cast<size_t>(rows_together_)) {
    logits.push_back(
        read_rows(all.subspan(at, std::min(static_cast<size_t>(rows_together_), all.size() - at))));
  }
  return logits.size() == 1 ? logits.front() : concat(logits, int64_t{0});
}

bool PagedDecoding::outgrown(const PagedText& text) const {
  return text.held >= model_.config().context ||
         (text.held > 0 && model_.turns_anew(stored(text.held), stored(text.held) + 1));
}

void PagedDecoding::read_anew(PagedText& text) {
  const int64_t context = model_.config().context;
  if (text.held >= context) {
    text.start = static_cast<int64_t>(text.tokens.size()) - std::max<int64_t>(1, context / 2);
  }
  text.held = 0;
}

}  // namespace ingot
