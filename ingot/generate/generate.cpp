#include "ingot/generate/generate.h"

#include <algorithm>

#include "ingot/generate/scheduler.h"

namespace ingot {
namespace {

void check_prompts(const std::vector<Tokens>& prompts, int64_t context) {
  check(!prompts.empty(), ErrorKind::argument, "generate: no prompts");
  for (size_t row = 0; row < prompts.size(); ++row) {
    const auto size = static_cast<int64_t>(prompts[row].size());
    check(size > 0, ErrorKind::argument, "generate: prompt ", row, " is empty; give one token");
    check(size <= context, ErrorKind::argument, "generate: prompt ", row,
          " is longer than the model's context: ", size, " tokens, context ", context);
  }
}

// Room for as many rows as a step may hold, each as long as the longest gets.
SchedulerConfig room_of(const std::vector<Tokens>& prompts, int64_t max_tokens, int64_t context) {
  constexpr size_t most_rows = 64;
  size_t longest = 0;
  for (const Tokens& prompt : prompts) {
    longest = std::max(longest, prompt.size());
  }
  SchedulerConfig out =
      room_for(static_cast<int64_t>(std::min(prompts.size(), most_rows)),
               std::min(context, static_cast<int64_t>(longest) + std::min(max_tokens, context)));
  out.go_on = true;
  return out;
}

}  // namespace

int64_t drawn_token(std::span<const float> logits, const GenerateConfig& config, int64_t place,
                    int64_t choice) {
  if (config.sampling.temperature == 0) {
    return likeliest(logits);
  }
  const Philox random(
      {static_cast<uint64_t>(config.seed), static_cast<uint64_t>(place), site_named("generate")});
  return token_at(token_probabilities(logits, config.sampling),
                  random.uniform_f64(static_cast<uint64_t>(choice)));
}

bool is_stop(int64_t token, const GenerateConfig& config) {
  return std::find(config.stop_tokens.begin(), config.stop_tokens.end(), token) !=
         config.stop_tokens.end();
}

std::vector<Tokens> generate(const Decoder& model, const std::vector<Tokens>& prompts,
                             const GenerateConfig& config, const OnToken& on_token) {
  const int64_t context = model.config().context;
  check_prompts(prompts, context);
  std::vector<Tokens> out(prompts.size());
  Scheduler scheduler(model, room_of(prompts, config.max_tokens, context));
  for (size_t row = 0; row < prompts.size(); ++row) {
    Request request;
    request.prompt = prompts[row];
    request.config = config;
    request.choice = static_cast<int64_t>(row);
    if (on_token) {
      request.on_token = [&on_token, row](const Drawn& drawn) {
        return on_token(static_cast<int64_t>(row), drawn.token);
      };
    }
    request.on_end = [&out, row](const Answer& answer) {
      if (answer.failure) {
        throw Error(*answer.failure);
      }
      out[row] = answer.tokens;
    };
    scheduler.add(std::move(request));
  }
  while (scheduler.step()) {
  }
  return out;
}

}  // namespace ingot
