#include "ingot/generate/beam_search.h"

#include <algorithm>
#include <cmath>

#include "ingot/generate/log_probability.h"
#include "ingot/generate/paged_decoding.h"

namespace ingot {
namespace {

constexpr int64_t page_tokens = 64;

struct Beam {
  PagedText text;
  double log_probability = 0;
};

struct Candidate {
  size_t beam = 0;
  int64_t token = 0;
  double log_probability = 0;
};

double score_of(double log_probability, int64_t tokens, double penalty) {
  return log_probability / std::pow((5 + static_cast<double>(tokens)) / 6, penalty);
}

bool better(const Hypothesis& a, const Hypothesis& b) {
  return a.score != b.score ? a.score > b.score : a.tokens < b.tokens;
}

class BeamSearch {
 public:
  BeamSearch(const Decoder& model, const Tokens& prompt, const BeamConfig& config, int64_t tokens)
      : config_(config),
        prompt_(static_cast<int64_t>(prompt.size())),
        most_(tokens),
        // Beams and their successors stand side by side for a moment.
        decoding_(model, 2 * config.width * pages(prompt_ + tokens), page_tokens, config.kv) {
    Beam first;
    first.text.tokens = prompt;
    decoding_.begin(first.text, prompt_ + tokens);
    logits_ = decoding_.read_all(first.text);
    beams_.push_back(std::move(first));
  }

  std::vector<Hypothesis> run() {
    for (int64_t n = 1; n <= most_ && !beams_.empty() && !settled(); ++n) {
      advance(candidates(), n);
    }
    std::sort(ended_.begin(), ended_.end(), better);
    return std::move(ended_);
  }

 private:
  static int64_t pages(int64_t tokens) { return (tokens + page_tokens - 1) / page_tokens; }

  // Twice the width: as many may end as go on.
  std::vector<Candidate> candidates() const {
    const int64_t count = 2 * config_.width;
    const auto all = logits_.values<float>();
    const size_t vocab = all.size() / beams_.size();
    std::vector<Candidate> out;
    for (size_t beam = 0; beam < beams_.size(); ++beam) {
      const LogProbabilities own(all.subspan(beam * vocab, vocab));
      for (const auto& [token, log_probability] :
           own.best(count + static_cast<int64_t>(config_.stop_tokens.size()))) {
        out.push_back({beam, token, beams_[beam].log_probability + log_probability});
      }
    }
    std::stable_sort(out.begin(), out.end(), [](const Candidate& a, const Candidate& b) {
      return a.log_probability > b.log_probability;
    });
    return out;
  }

  void advance(const std::vector<Candidate>& candidates, int64_t n) {
    std::vector<Candidate> going;
    for (const Candidate& c : candidates) {
      const bool stops = std::find(config_.stop_tokens.begin(), config_.stop_tokens.end(),
                                   c.token) != config_.stop_tokens.end();
      if (stops || n == most_) {
        set_aside(c, n);
      } else if (static_cast<int64_t>(going.size()) < config_.width) {
        going.push_back(c);
      }
    }
    std::vector<Beam> next;
    for (const Candidate& c : going) {
      Beam beam{*decoding_.fork(beams_[c.beam].text), c.log_probability};
      beam.text.tokens.push_back(c.token);
      next.push_back(std::move(beam));
    }
    for (Beam& beam : beams_) {
      decoding_.release(beam.text);
    }
    beams_ = std::move(next);
    std::vector<PagedText*> texts;
    for (Beam& beam : beams_) {
      texts.push_back(&beam.text);
    }
    if (!texts.empty()) {
      logits_ = decoding_.read_tokens(texts);
    }
  }

  void set_aside(const Candidate& c, int64_t n) {
    const Tokens& text = beams_[c.beam].text.tokens;
    Hypothesis ended{Tokens(text.begin() + prompt_, text.end()), c.log_probability,
                     score_of(c.log_probability, n, config_.length_penalty)};
    ended.tokens.push_back(c.token);
    ended_.insert(std::upper_bound(ended_.begin(), ended_.end(), ended, better), std::move(ended));
    if (static_cast<int64_t>(ended_.size()) > config_.width) {
      ended_.pop_back();
    }
  }

  // Probabilities only fall, and the penalty divides by most at the end.
  bool settled() const {
    if (static_cast<int64_t>(ended_.size()) < config_.width) {
      return false;
    }
    double best = -HUGE_VAL;
    for (const Beam& beam : beams_) {
      best = std::max(best, beam.log_probability);
    }
    return score_of(best, most_, config_.length_penalty) <= ended_.back().score;
  }

  const BeamConfig& config_;
  int64_t prompt_, most_;
  PagedDecoding decoding_;
  std::vector<Beam> beams_;
  Tensor logits_;                  // [beams, V] after each
  std::vector<Hypothesis> ended_;  // best first
};

}  // namespace

std::vector<Hypothesis> beam_search(const Decoder& model, const Tokens& prompt,
                                    const BeamConfig& config) {
  const auto size = static_cast<int64_t>(prompt.size());
  const int64_t context = model.config().context;
  check(size > 0 && size < context, ErrorKind::argument, "beam search: the prompt has ", size,
        " tokens; give at least 1, and fewer than the context, ", context);
  check(!model.turns_anew(1, context), ErrorKind::argument,
        "beam search: the angles of this model ", "depend on the text's length (",
        model.config().rope.scaling, "), so that what was read cannot be kept");
  return BeamSearch(model, prompt, config, std::min(config.max_tokens, context - size)).run();
}

}  // namespace ingot
