#include "ingot/generate/best_of.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "ingot/generate/scheduler.h"

namespace ingot {

double mean_log_probability(const Sampled& answer) {
  const auto tokens = std::max<size_t>(answer.tokens.size(), 1);
  return answer.log_probability / static_cast<double>(tokens);
}

std::vector<Sampled> sampled_answers(const Decoder& model, const Tokens& prompt,
                                     const GenerateConfig& config, int64_t n, const Scorer& scorer,
                                     const std::string& kv) {
  check(n > 0, ErrorKind::argument, "best of n: n is ", n, "; give at least 1");
  std::vector<Sampled> out(static_cast<size_t>(n));
  const int64_t context = model.config().context;
  constexpr int64_t most_rows = 16;
  const int64_t tokens =
      std::min(context, static_cast<int64_t>(prompt.size()) + std::min(config.max_tokens, context));
  Scheduler scheduler(model, room_for(std::min(n, most_rows), tokens, kv));
  for (int64_t choice = 0; choice < n; ++choice) {
    Sampled& answer = out[static_cast<size_t>(choice)];
    Request request;
    request.prompt = prompt;
    request.config = config;
    request.choice = choice;
    request.log_probabilities = 0;
    request.on_token = [&answer](const Drawn& drawn) {
      answer.log_probability += drawn.log_probability.value_or(0);
      return true;
    };
    request.on_end = [&answer](const Answer& ended) {
      if (ended.failure) {
        throw Error(*ended.failure);
      }
      answer.tokens = ended.tokens;
    };
    scheduler.add(std::move(request));
  }
  while (scheduler.step()) {
  }
  for (Sampled& answer : out) {
    answer.score = scorer(answer);
  }
  return out;
}

size_t best_of(std::span<const Sampled> answers) {
  check(!answers.empty(), ErrorKind::argument, "best of n: no answers");
  const auto best =
      std::max_element(answers.begin(), answers.end(),
                       [](const Sampled& a, const Sampled& b) { return a.score < b.score; });
  return static_cast<size_t>(best - answers.begin());
}

double best_of_divergence(int64_t n) {
  const auto count = static_cast<double>(n);
  return std::log(count) - (count - 1) / count;
}

std::optional<Vote> majority(std::span<const std::optional<std::string>> answers) {
  std::map<std::string, int64_t> votes;
  int64_t counted = 0;
  for (const auto& answer : answers) {
    if (answer) {
      ++votes[*answer];
      ++counted;
    }
  }
  std::optional<Vote> out;
  for (const auto& answer : answers) {
    if (answer && (!out || votes[*answer] > out->votes)) {
      out = Vote{*answer, votes[*answer], counted};
    }
  }
  return out;
}

}  // namespace ingot
