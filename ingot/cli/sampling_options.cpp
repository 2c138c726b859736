#include "ingot/cli/sampling_options.h"

#include <algorithm>
#include <cstdlib>

#include "ingot/cli/number_checks.h"

namespace ingot {
namespace {

// "12=-3.5"
std::pair<int64_t, double> bias_named(const std::string& text, int64_t vocab) {
  const size_t equals = text.find('=');
  const std::string id = text.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : text.substr(equals + 1);
  char* end = nullptr;
  const double bias = std::strtod(value.c_str(), &end);
  const bool good = !id.empty() && id.size() < 10 &&
                    id.find_first_not_of("0123456789") == std::string::npos && !value.empty() &&
                    *end == '\0' && bias >= -1000 && bias <= 1000;
  check(good, ErrorKind::config, "--logit-bias: '", text,
        "' is no token id with a number from -1000 to 1000; give such as 42=-100");
  check(std::stoll(id) < vocab, ErrorKind::config, "--logit-bias: token ", id,
        " is outside the model's vocabulary of ", vocab);
  return {std::stoll(id), bias};
}

}  // namespace

void add_sampling_options(CLI::App& verb, SamplingArguments& arguments) {
  GenerateConfig& config = arguments.config;
  SamplingConfig& sampling = config.sampling;
  LogitRules& rules = config.rules;
  verb.add_option("--tokens", config.max_tokens, "tokens to write at most")->check(whole_number());
  verb.add_option("--temperature", sampling.temperature, "0 takes the likeliest token each time")
      ->check(at_least_zero());
  verb.add_option("--top-k", sampling.top_k, "draw from the k likeliest; 0: all")
      ->check(whole_number());
  verb.add_option("--top-p", sampling.top_p, "draw from the fewest that have this probability")
      ->check(from_zero_to_one());
  verb.add_option("--min-p", sampling.min_p,
                  "drop tokens less likely than this share of the likeliest")
      ->check(from_zero_to_one());
  verb.add_option("--typical-p", sampling.typical_p,
                  "draw from the tokens of most usual surprise that have this probability")
      ->check(from_zero_to_one());
  verb.add_option("--repetition-penalty", rules.repetition_penalty,
                  "divides positive logits of tokens in the text, multiplies negative ones; 1: off")
      ->check(above_zero());
  verb.add_option("--presence-penalty", rules.presence_penalty,
                  "taken from the logits of tokens that were written")
      ->check(any_number());
  verb.add_option("--frequency-penalty", rules.frequency_penalty,
                  "taken from the logits of written tokens, once for each time")
      ->check(any_number());
  verb.add_option("--logit-bias", arguments.bias, "added to a token's logit, as ID=VALUE");
  verb.add_option("--ban", arguments.banned, "words that are not written");
  verb.add_option("--seed", config.seed, "the same seed writes the same text")
      ->check(whole_number());
  verb.add_option("--stop", config.stop_tokens, "token ids that end the text");
  verb.add_option("--stop-text", arguments.stop_texts,
                  "strings that end the text, which does not hold them");
}

std::vector<Tokens> banned_sequences(const TextCodec& codec, const std::string& word) {
  std::vector<Tokens> out;
  for (const std::string& spelling : {word, " " + word}) {
    Tokens tokens = codec.plain(spelling);
    if (!tokens.empty() && std::find(out.begin(), out.end(), tokens) == out.end()) {
      out.push_back(std::move(tokens));
    }
  }
  return out;
}

GenerateConfig settings_for(const SamplingArguments& arguments, const LoadedModel& loaded) {
  GenerateConfig out = arguments.config;
  const int64_t vocab = loaded.decoder().config().vocab;
  if (out.stop_tokens.empty()) {
    out.stop_tokens = loaded.stops();
  }
  for (const std::string& text : arguments.bias) {
    out.rules.bias.insert(bias_named(text, vocab));
  }
  for (const std::string& word : arguments.banned) {
    check(!word.empty(), ErrorKind::config, "--ban: an empty word; give one that has letters");
    for (Tokens& sequence : banned_sequences(loaded.text(), word)) {
      out.rules.banned.push_back(std::move(sequence));
    }
  }
  return out;
}

}  // namespace ingot
