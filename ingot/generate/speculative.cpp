#include "ingot/generate/speculative.h"

#include <algorithm>

#include "ingot/generate/paged_decoding.h"

namespace ingot {
namespace {

// max(0, p − q), normalised.
std::vector<double> rest_of(const std::vector<double>& p, const std::vector<double>& q) {
  std::vector<double> out(p.size());
  double total = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    out[i] = std::max(0.0, p[i] - q[i]);
    total += out[i];
  }
  if (total <= 0) {
    return p;  // p and q agree up to rounding
  }
  for (double& value : out) {
    value /= total;
  }
  return out;
}

std::vector<double> distribution(std::span<const float> logits, const GenerateConfig& config,
                                 std::span<const int64_t> text, size_t prompt) {
  std::vector<float> changed(logits.begin(), logits.end());
  apply(config.rules, text, static_cast<int64_t>(prompt), changed);
  return token_probabilities(changed, config.sampling);
}

constexpr int64_t page_tokens = 64;

int64_t pages_of(int64_t tokens) { return (tokens + page_tokens - 1) / page_tokens; }

// One answer being written.
class Speculation {
 public:
  Speculation(const Decoder& model, const Decoder& draft, const Tokens& prompt,
              const GenerateConfig& config, int64_t draft_tokens, const std::string& kv)
      : config_(config),
        prompt_(prompt.size()),
        context_(std::min(model.config().context, draft.config().context)),
        draft_tokens_(draft_tokens),
        room_(std::min(context_, static_cast<int64_t>(prompt.size()) + draft_tokens +
                                     std::min(config.max_tokens, context_))),
        target_(model, pages_of(room_), page_tokens, kv),
        drafting_(draft, pages_of(room_), page_tokens, kv) {
    for (auto* side : {&text_, &drafted_}) {
      side->tokens = prompt;
    }
    target_.begin(text_, room_);
    drafting_.begin(drafted_, room_);
  }

  // The first token, from the prompt alone.
  int64_t first() {
    const Tensor logits = target_.read_all(text_);
    const auto p = distribution(logits.values<float>(), config_, text_.tokens, prompt_);
    return token_at(p, number("generate", place()));
  }

  void add(int64_t token) {
    text_.tokens.push_back(token);
    drafted_.tokens.push_back(token);
  }
  bool full() const { return place() > context_; }

  // The tokens of one round: what was kept of the proposals, and the next one.
  Tokens round(SpeculativeAnswer& answer) {
    const int64_t base = place();
    const int64_t count = std::min(draft_tokens_, context_ - base);
    const std::vector<std::vector<double>> q = propose(count);
    const Tokens proposals(drafted_.tokens.end() - count, drafted_.tokens.end());
    text_.tokens.insert(text_.tokens.end(), proposals.begin(), proposals.end());
    PagedText* const text = &text_;
    const Tensor logits = target_.read_tokens({&text, 1});
    std::vector<std::vector<double>> p;
    std::vector<double> keep, draw;
    for (int64_t i = 0; i <= count; ++i) {
      p.push_back(distribution(row(logits, i), config_,
                               std::span(text_.tokens).first(static_cast<size_t>(base + i)),
                               prompt_));
      keep.push_back(number("speculative.keep", base + i));
      draw.push_back(number("generate", base + i));
    }
    const Accepted verdict = judge(proposals, q, p, keep, draw);
    answer.proposed += count;
    answer.kept += verdict.kept;
    ++answer.readings;
    const int64_t read = base + verdict.kept;
    for (auto* side : {&text_, &drafted_}) {
      side->tokens.resize(static_cast<size_t>(base));
      PagedDecoding::rewind(*side, std::min(side->held, read));
    }
    Tokens out(proposals.begin(), proposals.begin() + verdict.kept);
    out.push_back(verdict.next);
    return out;
  }

 private:
  int64_t place() const { return static_cast<int64_t>(text_.tokens.size()); }
  double number(std::string_view site, int64_t place) const {
    return Philox({static_cast<uint64_t>(config_.seed), static_cast<uint64_t>(place),
                   site_named(site)})
        .uniform_f64(0);
  }
  static std::span<const float> row(const Tensor& logits, int64_t i) {
    const auto vocab = static_cast<size_t>(logits.size(1));
    return logits.values<float>().subspan(static_cast<size_t>(i) * vocab, vocab);
  }

  std::vector<std::vector<double>> propose(int64_t count) {
    std::vector<std::vector<double>> q;
    for (int64_t i = 0; i < count; ++i) {
      q.push_back(distribution(draft_logits(), config_, drafted_.tokens, prompt_));
      const auto at = static_cast<int64_t>(drafted_.tokens.size());
      drafted_.tokens.push_back(token_at(q.back(), number("speculative.draft", at)));
    }
    return q;
  }

  std::span<const float> draft_logits() {
    if (drafted_.held == 0) {
      logits_ = drafting_.read_all(drafted_);
      return logits_.values<float>();
    }
    PagedText* const text = &drafted_;
    logits_ = drafting_.read_tokens({&text, 1});
    return row(logits_, logits_.size(0) - 1);
  }

  const GenerateConfig& config_;
  size_t prompt_;
  int64_t context_, draft_tokens_, room_;
  PagedDecoding target_, drafting_;
  PagedText text_, drafted_;
  Tensor logits_;  // of the draft, last read
};

}  // namespace

Accepted judge(std::span<const int64_t> proposals, Distributions q, Distributions p,
               std::span<const double> keep, std::span<const double> draw) {
  const size_t count = proposals.size();
  check(q.size() == count && p.size() == count + 1 && keep.size() >= count && draw.size() > count,
        ErrorKind::argument, "speculative decoding: ", count, " proposals have ", q.size(),
        " distributions of the draft and ", p.size(), " of the model; give as many, and one more");
  for (size_t i = 0; i < count; ++i) {
    const auto x = static_cast<size_t>(proposals[i]);
    if (keep[i] * q[i][x] >= p[i][x]) {
      return {static_cast<int64_t>(i), token_at(rest_of(p[i], q[i]), draw[i])};
    }
  }
  return {static_cast<int64_t>(count), token_at(p[count], draw[count])};
}

SpeculativeAnswer generate_speculatively(const Decoder& model, const Decoder& draft,
                                         const Tokens& prompt, const GenerateConfig& config,
                                         int64_t draft_tokens, const OnToken& on_token,
                                         const std::string& kv) {
  const int64_t vocab = model.config().vocab;
  check(draft.config().vocab == vocab, ErrorKind::argument, "speculative decoding: the draft has ",
        "another vocabulary: it has ", draft.config().vocab, " tokens, the model ", vocab);
  for (const Decoder* each : {&model, &draft}) {
    check(!each->turns_anew(1, each->config().context), ErrorKind::argument,
          "speculative decoding: the angles of this model depend on the text's length (",
          each->config().rope.scaling, "), so that what was read cannot be kept");
  }
  check(draft_tokens > 0, ErrorKind::argument, "speculative decoding: ", draft_tokens,
        " proposals at a time; give at least 1");
  const int64_t context = std::min(model.config().context, draft.config().context);
  const auto size = static_cast<int64_t>(prompt.size());
  check(size > 0 && size <= context, ErrorKind::argument, "generate: the prompt has ", size,
        " tokens; give between 1 and the shorter context, ", context);
  SpeculativeAnswer answer;
  if (config.max_tokens == 0) {
    return answer;
  }
  Speculation speculation(model, draft, prompt, config, draft_tokens, kv);
  // False when the text ends with this token.
  const auto write = [&](int64_t token) {
    speculation.add(token);
    answer.tokens.push_back(token);
    const bool wanted = !on_token || on_token(0, token);
    return wanted && !is_stop(token, config) && !speculation.full() &&
           static_cast<int64_t>(answer.tokens.size()) < config.max_tokens;
  };
  bool open = write(speculation.first());
  while (open) {
    for (const int64_t token : speculation.round(answer)) {
      open = open && write(token);
    }
  }
  return answer;
}

}  // namespace ingot
