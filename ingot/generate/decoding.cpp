#include "ingot/generate/decoding.h"

#include <algorithm>

#include "ingot/autograd/grad_mode.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

int64_t size_of_longest(const std::vector<Tokens>& texts) {
  int64_t most = 0;
  for (const Tokens& text : texts) {
    most = std::max(most, static_cast<int64_t>(text.size()));
  }
  return most;
}

void check_prompts(const std::vector<Tokens>& prompts, int64_t context) {
  check(!prompts.empty(), ErrorKind::argument, "generate: no prompts");
  for (size_t row = 0; row < prompts.size(); ++row) {
    const auto size = static_cast<int64_t>(prompts[row].size());
    check(size > 0, ErrorKind::argument, "generate: prompt ", row, " is empty; give one token");
    check(size <= context, ErrorKind::argument, "generate: prompt ", row,
          " is longer than the model's context: ", size, " tokens, context ", context);
  }
}

// The ends of the texts, padded on the right with 0.
Tensor padded_ends(const std::vector<Tokens>& texts, const std::vector<int64_t>& sizes) {
  const int64_t longest = *std::max_element(sizes.begin(), sizes.end());
  std::vector<int64_t> ids;
  for (size_t row = 0; row < texts.size(); ++row) {
    ids.insert(ids.end(), texts[row].end() - sizes[row], texts[row].end());
    ids.resize((row + 1) * static_cast<size_t>(longest), 0);
  }
  return tensor_of(ids, {static_cast<int64_t>(texts.size()), longest});
}

}  // namespace

Decoding::Decoding(const Decoder& model, std::vector<Tokens> prompts, int64_t reserve)
    : model_(model), texts_(std::move(prompts)), cache_({}, model.dtype(), cpu_device) {
  check_prompts(texts_, model.config().context);
  const int64_t longest = size_of_longest(texts_);
  cache_ = model.make_cache(static_cast<int64_t>(texts_.size()),
                            std::min(model.config().context, longest + reserve));
  read(longest);
}

void Decoding::feed(std::span<const int64_t> tokens) {
  check(tokens.size() == texts_.size(), ErrorKind::argument, "generate: ", tokens.size(),
        " tokens for ", texts_.size(), " rows");
  for (size_t row = 0; row < texts_.size(); ++row) {
    texts_[row].push_back(tokens[row]);
  }
  const int64_t held = cache_.longest();
  if (held == cache_.capacity()) {
    read(std::max<int64_t>(1, model_.config().context / 2));
  } else if (model_.turns_anew(held, held + 1)) {
    read(held + 1);
  } else {
    read_next();
  }
}

void Decoding::read(int64_t longest) {
  const NoGrad quiet;
  std::vector<int64_t> sizes;
  for (const Tokens& text : texts_) {
    sizes.push_back(std::min(longest, static_cast<int64_t>(text.size())));
  }
  cache_.set_lengths(std::vector<int64_t>(texts_.size(), 0));
  const Tensor hidden = model_.hidden(padded_ends(texts_, sizes), cache_);  // [B, T, D]
  std::vector<int64_t> held = sizes;  // with what stands before every text
  for (int64_t& size : held) {
    size += model_.lead();
  }
  cache_.set_lengths(held);
  TensorList last;
  for (int64_t row = 0; row < hidden.size(0); ++row) {
    const int64_t end = sizes[static_cast<size_t>(row)];
    last.push_back(slice(slice(hidden, 0, row, row + 1), 1, end - 1, end));
  }
  const Tensor ends = reshape(concat(last, int64_t{0}), {hidden.size(0), hidden.size(2)});
  logits_ = dense(converted(model_.logits_of(ends), DType::f32));
}

void Decoding::read_next() {
  const NoGrad quiet;
  const Tensor ids = padded_ends(texts_, std::vector<int64_t>(texts_.size(), 1));
  const Tensor hidden = model_.hidden(ids, cache_);  // [B, 1, D]
  const Tensor ends = reshape(hidden, {hidden.size(0), hidden.size(2)});
  logits_ = dense(converted(model_.logits_of(ends), DType::f32));
}

}  // namespace ingot
