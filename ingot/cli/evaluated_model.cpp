#include "ingot/cli/evaluated_model.h"

#include <algorithm>

#include "ingot/cli/answer_text.h"
#include "ingot/generate/generate.h"
#include "ingot/generate/log_likelihood.h"

namespace ingot {
namespace {

using Ids = EvalModel::Ids;

Ids encoded(const TextCodec& codec, std::string_view text, bool begin, bool special) {
  const Tokenizer* tokenizer = codec.tokenizer();
  if (tokenizer == nullptr) {
    return text.empty() ? Ids() : codec.prompt(text);
  }
  Ids out;
  if (begin) {
    out.assign(tokenizer->frame().before.begin(), tokenizer->frame().before.end());
  }
  const TokenIds own = tokenizer->encode(text, {.add_special = false, .parse_special = special});
  out.insert(out.end(), own.begin(), own.end());
  return out;
}

// What a model writes after each prompt, up to the first of the texts that end it.
std::vector<EvalModel::Written> written(const LoadedModel& loaded,
                                        std::span<const EvalModel::Prompt> prompts) {
  GenerateConfig config;
  config.sampling.temperature = 0;
  config.stop_tokens = loaded.stops();
  config.max_tokens = 0;
  std::vector<Tokens> starts;
  std::vector<AnswerText> texts;
  for (const EvalModel::Prompt& prompt : prompts) {
    starts.push_back(prompt.ids);
    texts.emplace_back(loaded.text(), prompt.until, config.stop_tokens);
    config.max_tokens = std::max(config.max_tokens, prompt.max_tokens);
  }
  std::vector<EvalModel::Written> out(prompts.size());
  generate(loaded.decoder(), starts, config, [&](int64_t row, int64_t token) {
    const auto i = static_cast<size_t>(row);
    out[i].text += texts[i].add(token);
    out[i].ended = texts[i].ended() ||
                   std::find(config.stop_tokens.begin(), config.stop_tokens.end(), token) !=
                       config.stop_tokens.end();
    return !out[i].ended;
  });
  for (size_t i = 0; i < out.size(); ++i) {
    out[i].text += texts[i].finish();
    out[i].ended = out[i].ended || texts[i].ended();
  }
  return out;
}

}  // namespace

EvalModel EvaluatedModel::functions() const {
  EvalModel out;
  const TextCodec& codec = loaded.text();
  out.context = loaded.decoder().config().context;
  const Tokenizer* tokenizer = codec.tokenizer();
  out.empty_context = tokenizer == nullptr ? '\n'
                      : tokenizer->bos()   ? *tokenizer->bos()
                      : tokenizer->eos()   ? *tokenizer->eos()
                                           : codec.prompt("\n").front();
  out.encode = [&codec](std::string_view text, bool begin, bool special) {
    return encoded(codec, text, begin, special);
  };
  out.score = [this](std::span<const EvalModel::Question> questions) {
    std::vector<Continuation> all;
    for (const EvalModel::Question& question : questions) {
      all.push_back({question.context, question.continuation});
    }
    std::vector<EvalModel::Score> scores;
    for (const Likelihood& one : log_likelihoods(loaded.decoder(), all)) {
      scores.push_back({one.log_probability, one.greedy});
    }
    return scores;
  };
  out.text_score = [this](std::span<const int64_t> ids, int64_t known) {
    return text_log_probability(loaded.decoder(), ids, known);
  };
  out.write = [this](std::span<const EvalModel::Prompt> prompts) {
    constexpr size_t at_once = 16;  // rows side by side
    std::vector<EvalModel::Written> texts;
    for (size_t begin = 0; begin < prompts.size(); begin += at_once) {
      const size_t count = std::min(at_once, prompts.size() - begin);
      for (EvalModel::Written& text : written(loaded, prompts.subspan(begin, count))) {
        texts.push_back(std::move(text));
      }
    }
    return texts;
  };
  if (loaded.chat) {
    out.chat = [this](const std::string& user) {
      ApplyOptions apply;
      apply.add_generation_prompt = true;
      return loaded.chat->apply({{make_message("user", user)}, {}}, apply);
    };
  }
  return out;
}

EvaluatedModel load_evaluated(const std::string& path, const std::string& dtype) {
  EvaluatedModel out;
  out.path = path;
  ModelArguments arguments;
  arguments.path = path;
  arguments.dtype = dtype;
  out.loaded = load_model(arguments);
  const Tokenizer* tokenizer = out.loaded.text().tokenizer();
  out.dtype = concat(out.loaded.decoder().dtype());
  out.tokenizer_hash = tokenizer == nullptr ? "bytes" : tokenizer->hash();
  out.template_hash = out.loaded.chat ? out.loaded.chat->hash() : "";
  return out;
}

}  // namespace ingot
