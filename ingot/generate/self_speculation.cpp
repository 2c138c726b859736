#include "ingot/generate/self_speculation.h"

#include <algorithm>

#include "ingot/autograd/grad_mode.h"
#include "ingot/ops/reduce.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

Tensor row_of(const Tokens& text) {
  return tensor_of(text, {1, static_cast<int64_t>(text.size())});
}

// The likeliest token at each place from `first` on of hidden states [1, T, D].
Tokens likeliest(const Decoder& model, const Tensor& hidden, int64_t first) {
  const Tensor rows = contiguous(slice(hidden, 1, first, hidden.size(1)));
  const Tensor best = argmax(model.logits_of(rows), -1);
  const auto values = best.values<int64_t>();
  return {values.begin(), values.end()};
}

// What the heads propose after a text whose last token is the model's own: the k-th stands at the
// place before that token, for it predicts the token k + 1 ahead.
Tokens drafted(const Decoder& model, const Tokens& text) {
  const auto place = static_cast<int64_t>(text.size()) - 2;
  Tokens all = text;
  for (size_t k = 0; k < model.mtp.size(); ++k) {
    std::vector<nn::Routed> routed;
    const Decoder::Ahead made = model.hidden_ahead(row_of(all), {}, routed);
    const Tensor one = contiguous(slice(made.further[k], 1, place, place + 1));
    all.push_back(likeliest(model, one, 0).front());
  }
  return {all.begin() + static_cast<ptrdiff_t>(text.size()), all.end()};
}

}  // namespace

SelfSpeculated generate_self_speculatively(const Decoder& model, const Tokens& prompt,
                                           int64_t tokens,
                                           const std::vector<int64_t>& stop_tokens) {
  check(!model.mtp.empty(), ErrorKind::config,
        "generate: the model has no heads that predict further tokens: model.mtp.depth is 0");
  check(!prompt.empty(), ErrorKind::argument, "generate: the prompt is empty");
  const NoGrad quiet;
  SelfSpeculated out;
  Tokens text = prompt;
  // Adds a token of the model's own; whether the text ends with it.
  const auto write = [&](int64_t token) {
    text.push_back(token);
    out.tokens.push_back(token);
    return static_cast<int64_t>(out.tokens.size()) >= tokens ||
           std::ranges::count(stop_tokens, token) > 0 ||
           static_cast<int64_t>(text.size()) >= model.config().context;
  };
  bool ends = tokens <= 0 || static_cast<int64_t>(text.size()) >= model.config().context;
  Tokens drafts;
  while (!ends) {
    Tokens all = text;
    all.insert(all.end(), drafts.begin(), drafts.end());
    const auto room = static_cast<size_t>(model.config().context);
    all.resize(std::min(all.size(), room));
    const auto last = static_cast<int64_t>(text.size()) - 1;
    const Tokens own = likeliest(model, model.hidden(row_of(all)), last);
    ++out.rounds;
    // Proposals that are the model's own, then the token that follows them.
    for (size_t i = 0; i < own.size() && !ends; ++i) {
      ends = write(own[i]);
      if (i >= drafts.size() || own[i] != drafts[i]) {
        break;
      }
    }
    const bool room_left = text.size() + model.mtp.size() < room;
    drafts = ends || !room_left ? Tokens() : drafted(model, text);
  }
  return out;
}

}  // namespace ingot
