#include <fmt/format.h>

#include <iostream>

#include "ingot/base/json_library.h"
#include "ingot/base/log.h"
#include "ingot/cli/answer_text.h"
#include "ingot/cli/generate_arguments.h"
#include "ingot/cli/token_json.h"
#include "ingot/generate/beam_search.h"
#include "ingot/generate/best_of.h"
#include "ingot/generate/self_speculation.h"
#include "ingot/generate/speculative.h"
#include "ingot/text/regex.h"
#include "ingot/text/utf8.h"

namespace ingot {
namespace {

using Json = nlohmann::ordered_json;

// What one run joins: the settings and how tokens become text.
struct Strategy {
  const GenerateArguments& arguments;
  const LoadedModel& loaded;
  const Tokens& prompt;
  GenerateConfig config;

  std::string text_of(const Tokens& tokens) const {
    AnswerText text(loaded.text(), arguments.sampling.stop_texts, config.stop_tokens);
    std::string out;
    for (const int64_t token : tokens) {
      out += text.add(token);
    }
    return out + text.finish();
  }
};

// The last match of the expression in a text.
std::optional<std::string> last_match(const Regex& regex, const std::string& text) {
  std::optional<std::string> out;
  regex.for_each_match(with_replacements(text), [&](size_t begin, size_t end) {
    out = with_replacements(text).substr(begin, end - begin);
  });
  return out;
}

void print_best_of(const Strategy& s) {
  const std::optional<Regex> match =
      s.arguments.match.empty() ? std::nullopt
                                : std::optional<Regex>(Regex(s.arguments.match, "--match"));
  // A match beats any log-probability, which is never above 0.
  const auto scorer = [&](const Sampled& answer) {
    const bool good = match && last_match(*match, s.text_of(answer.tokens)).has_value();
    return mean_log_probability(answer) + (good ? 1e6 : 0);
  };
  const int64_t n = s.arguments.best_of;
  const auto answers =
      sampled_answers(s.loaded.decoder(), s.prompt, s.config, n, scorer, s.arguments.model.kv);
  const size_t best = best_of(answers);
  if (!s.arguments.json) {
    std::cout << s.text_of(answers[best].tokens) << '\n';
    return;
  }
  Json all = Json::array();
  for (const Sampled& answer : answers) {
    Json entry = {{"text", s.text_of(answer.tokens)},
                  {"ids", answer.tokens},
                  {"log_probability", answer.log_probability},
                  {"mean_log_probability", mean_log_probability(answer)}};
    if (match) {
      entry["matches"] = answer.score > 1e5;
    }
    all.push_back(std::move(entry));
  }
  std::cout << text_of({{"best", best},
                        {"text", s.text_of(answers[best].tokens)},
                        {"divergence_bound", best_of_divergence(n)},
                        {"answers", std::move(all)}})
            << '\n';
}

void print_votes(const Strategy& s) {
  const Regex regex(s.arguments.answer, "--answer");
  const auto answers = sampled_answers(s.loaded.decoder(), s.prompt, s.config, s.arguments.votes,
                                       mean_log_probability, s.arguments.model.kv);
  std::vector<std::optional<std::string>> said;
  Json all = Json::array();
  for (const Sampled& answer : answers) {
    said.push_back(last_match(regex, s.text_of(answer.tokens)));
    all.push_back({{"text", s.text_of(answer.tokens)},
                   {"answer", said.back() ? Json(*said.back()) : Json(nullptr)}});
  }
  const std::optional<Vote> vote = majority(said);
  if (s.arguments.json) {
    std::cout << text_of({{"answer", vote ? Json(vote->answer) : Json(nullptr)},
                          {"votes", vote ? vote->votes : 0},
                          {"counted", vote ? vote->counted : 0},
                          {"answers", std::move(all)}})
              << '\n';
    return;
  }
  check(vote, ErrorKind::config, "--answer: '", s.arguments.answer, "' matches none of the ",
        s.arguments.votes, " answers");
  std::cout << vote->answer << '\n';
  fmt::print(stderr, "{} of {} votes\n", vote->votes, vote->counted);
}

void print_beams(const Strategy& s) {
  BeamConfig config;
  config.width = s.arguments.beams;
  config.max_tokens = std::max<int64_t>(s.config.max_tokens, 1);
  config.length_penalty = s.arguments.length_penalty;
  config.stop_tokens = s.config.stop_tokens;
  config.kv = s.arguments.model.kv;
  const auto found = beam_search(s.loaded.decoder(), s.prompt, config);
  if (!s.arguments.json) {
    std::cout << s.text_of(found.front().tokens) << '\n';
    return;
  }
  Json all = Json::array();
  for (const Hypothesis& each : found) {
    all.push_back({{"text", s.text_of(each.tokens)},
                   {"ids", each.tokens},
                   {"log_probability", each.log_probability},
                   {"score", each.score}});
  }
  std::cout << text_of({{"text", s.text_of(found.front().tokens)}, {"beams", std::move(all)}})
            << '\n';
}

void print_speculative(const Strategy& s) {
  ModelArguments where = s.arguments.model;
  where.path = s.arguments.draft;
  const LoadedModel draft = load_model(where);
  AnswerText text(s.loaded.text(), s.arguments.sampling.stop_texts, s.config.stop_tokens);
  std::string written;
  const auto put = [&](const std::string& part) {
    written += part;
    if (!s.arguments.json) {
      std::cout << part << std::flush;
    }
  };
  const SpeculativeAnswer answer = generate_speculatively(
      s.loaded.decoder(), draft.decoder(), s.prompt, s.config, s.arguments.draft_tokens,
      [&](int64_t, int64_t token) {
        put(text.add(token));
        return !text.ended();
      },
      s.arguments.model.kv);
  put(text.finish());
  if (s.arguments.json) {
    std::cout << text_of({{"text", written},
                          {"ids", answer.tokens},
                          {"proposed", answer.proposed},
                          {"kept", answer.kept},
                          {"readings", answer.readings}});
  }
  std::cout << '\n';
}

// The likeliest text, drafted by the model's own heads.
void print_self_speculative(const Strategy& s) {
  check(s.config.sampling.temperature == 0, ErrorKind::config,
        "--self-speculative: writes the likeliest text: temperature is ",
        s.config.sampling.temperature, "; set --temperature 0");
  const SelfSpeculated found = generate_self_speculatively(
      s.loaded.decoder(), s.prompt, s.config.max_tokens, s.config.stop_tokens);
  if (s.arguments.json) {
    std::cout << text_of({{"text", s.text_of(found.tokens)},
                          {"ids", found.tokens},
                          {"tokens_per_round", found.tokens_per_round()}})
              << '\n';
    return;
  }
  std::cout << s.text_of(found.tokens) << '\n';
  log_info(found.tokens_per_round(), " tokens a round");
}

}  // namespace

void generate_by_strategy(const GenerateArguments& arguments, const LoadedModel& loaded,
                          const Tokens& prompt) {
  const Strategy strategy{arguments, loaded, prompt, settings_for(arguments.sampling, loaded)};
  if (arguments.beams > 0) {
    print_beams(strategy);
  } else if (arguments.best_of > 0) {
    print_best_of(strategy);
  } else if (arguments.votes > 0) {
    print_votes(strategy);
  } else if (arguments.self_speculative) {
    print_self_speculative(strategy);
  } else {
    print_speculative(strategy);
  }
}

}  // namespace ingot
