#include "ingot/generate/generate.h"

#include <algorithm>

namespace ingot {
namespace {

int64_t drawn_token(std::span<const float> logits, const GenerateConfig& config, size_t place,
                    size_t row) {
  if (config.sampling.temperature == 0) {
    return likeliest(logits);
  }
  const Philox random({static_cast<uint64_t>(config.seed), place, site_named("generate")});
  return token_at(token_probabilities(logits, config.sampling), random.uniform_f64(row));
}

bool ends(int64_t token, const GenerateConfig& config) {
  return std::find(config.stop_tokens.begin(), config.stop_tokens.end(), token) !=
         config.stop_tokens.end();
}

}  // namespace

std::vector<Tokens> generate(const Decoder& model, const std::vector<Tokens>& prompts,
                             const GenerateConfig& config, const OnToken& on_token) {
  std::vector<Tokens> out(prompts.size());
  if (config.max_tokens == 0) {
    return out;
  }
  Decoding decoding(model, prompts, config.max_tokens);
  const auto vocabulary = static_cast<size_t>(model.config().vocab);
  std::vector<bool> done(prompts.size(), false);
  Tokens next(prompts.size());
  for (int64_t count = 0;; ++count) {
    const auto logits = decoding.logits().values<float>();
    for (size_t row = 0; row < out.size(); ++row) {
      if (done[row]) {
        continue;  // its place in the batch is fed the same token again, and not looked at
      }
      next[row] = drawn_token(logits.subspan(row * vocabulary, vocabulary), config,
                              decoding.texts()[row].size(), row);
      out[row].push_back(next[row]);
      const bool wanted = !on_token || on_token(static_cast<int64_t>(row), next[row]);
      done[row] = !wanted || ends(next[row], config);
    }
    if (count + 1 == config.max_tokens ||
        std::find(done.begin(), done.end(), false) == done.end()) {
      return out;
    }
    decoding.feed(next);
  }
}

}  // namespace ingot
