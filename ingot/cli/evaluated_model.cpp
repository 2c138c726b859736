#include "ingot/cli/evaluated_model.h"

#include <algorithm>

#include "ingot/base/files.h"
#include "ingot/cli/model_source.h"
#include "ingot/generate/log_likelihood.h"
#include "ingot/models/pretrained.h"
#include "ingot/models/stored_model.h"

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
class Writer {
 public:
  Writer(const EvaluatedModel& model, std::span<const EvalModel::Prompt> prompts)
      : model_(model), prompts_(prompts), texts_(prompts.size()) {
    for (size_t i = 0; i < prompts.size(); ++i) {
      streams_.emplace_back(model.codec);
    }
  }

  std::vector<EvalModel::Written> write() {
    std::vector<Tokens> starts;
    GenerateConfig config;
    config.sampling.temperature = 0;
    config.stop_tokens = model_.codec.stops();
    config.max_tokens = 0;
    for (const EvalModel::Prompt& prompt : prompts_) {
      starts.push_back(prompt.ids);
      config.max_tokens = std::max(config.max_tokens, prompt.max_tokens);
    }
    generate(*model_.model, starts, config,
             [&](int64_t row, int64_t token) { return take(row, token); });
    for (size_t i = 0; i < texts_.size(); ++i) {
      texts_[i].text += streams_[i].finish();
      cut(i);
    }
    return std::move(texts_);
  }

 private:
  bool take(int64_t row, int64_t token) {
    const auto i = static_cast<size_t>(row);
    const std::vector<int64_t> stops = model_.codec.stops();
    if (std::find(stops.begin(), stops.end(), token) != stops.end()) {
      texts_[i].ended = true;
      return false;
    }
    texts_[i].text += streams_[i].add(token);
    return !cut(i);
  }

  bool cut(size_t i) {
    size_t end = std::string::npos;
    for (const std::string& stop : prompts_[i].until) {
      end = stop.empty() ? end : std::min(end, texts_[i].text.find(stop));
    }
    if (end == std::string::npos) {
      return false;
    }
    texts_[i].text.resize(end);
    texts_[i].ended = true;
    return true;
  }

  const EvaluatedModel& model_;
  std::span<const EvalModel::Prompt> prompts_;
  std::vector<CodecStream> streams_;
  std::vector<EvalModel::Written> texts_;
};

}  // namespace

EvalModel EvaluatedModel::functions() const {
  EvalModel out;
  out.context = model->config().context;
  const Tokenizer* tokenizer = codec.tokenizer();
  out.empty_context = tokenizer == nullptr ? '\n'
                      : tokenizer->bos()   ? *tokenizer->bos()
                      : tokenizer->eos()   ? *tokenizer->eos()
                                           : codec.prompt("\n").front();
  out.encode = [this](std::string_view text, bool begin, bool special) {
    return encoded(codec, text, begin, special);
  };
  out.score = [this](std::span<const EvalModel::Question> questions) {
    std::vector<Continuation> all;
    for (const EvalModel::Question& question : questions) {
      all.push_back({question.context, question.continuation});
    }
    std::vector<EvalModel::Score> scores;
    for (const Likelihood& one : log_likelihoods(*model, all)) {
      scores.push_back({one.log_probability, one.greedy});
    }
    return scores;
  };
  out.text_score = [this](std::span<const int64_t> ids, int64_t known) {
    return text_log_probability(*model, ids, known);
  };
  out.write = [this](std::span<const EvalModel::Prompt> prompts) {
    constexpr size_t at_once = 16;  // rows side by side
    std::vector<EvalModel::Written> texts;
    for (size_t begin = 0; begin < prompts.size(); begin += at_once) {
      const size_t count = std::min(at_once, prompts.size() - begin);
      for (EvalModel::Written& text : Writer(*this, prompts.subspan(begin, count)).write()) {
        texts.push_back(std::move(text));
      }
    }
    return texts;
  };
  if (chat != nullptr) {
    out.chat = [this](const std::string& user) {
      ApplyOptions apply;
      apply.add_generation_prompt = true;
      return chat->apply({{make_message("user", user)}, {}}, apply);
    };
  }
  return out;
}

EvaluatedModel load_evaluated(const std::string& path, const std::string& dtype) {
  EvaluatedModel out;
  out.path = path;
  const ModelSource source = open_source(path);
  check(source.reads_bytes || source.tokenizer != nullptr, ErrorKind::config, path,
        ": it holds no tokenizer and does not say that this model reads bytes; put tokenizer.json "
        "into the folder");
  std::optional<DType> type;
  if (!dtype.empty()) {
    type = dtype_named(dtype);
  }
  out.model = is_folder(path) ? std::move(load_pretrained(path, type).model)
                              : std::move(load_stored(open_model(path), type).model);
  if (source.tokenizer != nullptr) {
    check_vocabulary(*source.tokenizer, out.model->config().vocab, path);
    out.codec = TextCodec(source.tokenizer);
  }
  out.chat = source.chat;
  out.dtype = concat(out.model->dtype());
  out.tokenizer_hash = source.tokenizer == nullptr ? "bytes" : source.tokenizer->hash();
  out.template_hash = source.chat == nullptr ? "" : source.chat->hash();
  return out;
}

}  // namespace ingot
