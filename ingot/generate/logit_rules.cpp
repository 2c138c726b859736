#include "ingot/generate/logit_rules.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "ingot/base/error.h"

namespace ingot {
namespace {

float& logit_of(std::span<float> logits, int64_t token) {
  check(token >= 0 && token < static_cast<int64_t>(logits.size()), ErrorKind::argument,
        "logit rules: token ", token, " is outside the vocabulary of ", logits.size());
  return logits[static_cast<size_t>(token)];
}

void penalise_repetition(double penalty, std::span<const int64_t> text, std::span<float> logits) {
  for (const int64_t token : std::set<int64_t>(text.begin(), text.end())) {
    float& logit = logit_of(logits, token);
    logit = static_cast<float>(logit > 0 ? logit / penalty : logit * penalty);
  }
}

void penalise_written(const LogitRules& rules, std::span<const int64_t> written,
                      std::span<float> logits) {
  std::map<int64_t, int64_t> counts;
  for (const int64_t token : written) {
    ++counts[token];
  }
  for (const auto& [token, count] : counts) {
    float& logit = logit_of(logits, token);
    logit = static_cast<float>(logit - rules.presence_penalty -
                               rules.frequency_penalty * static_cast<double>(count));
  }
}

// Whether `text` ends with all of `sequence` but its last token.
bool is_due(const Tokens& sequence, std::span<const int64_t> text) {
  const size_t before = sequence.size() - 1;
  return before <= text.size() && std::equal(sequence.begin(), sequence.end() - 1,
                                             text.end() - static_cast<int64_t>(before));
}

}  // namespace

void apply(const LogitRules& rules, std::span<const int64_t> text, int64_t prompt,
           std::span<float> logits) {
  if (rules.repetition_penalty != 1) {
    penalise_repetition(rules.repetition_penalty, text, logits);
  }
  if (rules.presence_penalty != 0 || rules.frequency_penalty != 0) {
    penalise_written(rules, text.subspan(static_cast<size_t>(prompt)), logits);
  }
  for (const auto& [token, bias] : rules.bias) {
    float& logit = logit_of(logits, token);
    logit = static_cast<float>(logit + bias);
  }
  for (const Tokens& sequence : rules.banned) {
    if (!sequence.empty() && is_due(sequence, text)) {
      logit_of(logits, sequence.back()) = -HUGE_VALF;
    }
  }
}

}  // namespace ingot
