#include "ingot/eval/needle.h"

#include <algorithm>
#include <array>

#include "ingot/base/error.h"
#include "ingot/base/philox.h"

namespace ingot {
namespace {

constexpr std::array<const char*, 8> sentences = {
    " The road climbs between two rows of old elms and then turns towards the river.",
    " In the afternoon the wind dropped, and the boats lay still in the harbour.",
    " She kept the letters in a wooden box that her grandfather had made.",
    " Nobody in the village remembered when the bridge had been built.",
    " They bought bread, cheese and a bottle of milk, and ate under the trees.",
    " The train was late again, so we walked along the platform and talked about the weather.",
    " A cat slept on the wall while the children were playing in the yard.",
    " After the rain the hills looked closer than they were."};

std::string number_text(int64_t digit, const Philox& random) {
  return std::to_string(1000 + 900 * digit +
                        static_cast<int64_t>(random.bits(static_cast<uint64_t>(digit) + 10) % 900));
}

EvalModel::Ids filler_ids(const EvalModel& model, const NeedleConfig& config, int64_t count) {
  std::string text = config.filler;
  EvalModel::Ids out;
  for (size_t i = 0; static_cast<int64_t>(out.size()) < count; ++i) {
    if (config.filler.empty()) {
      text.clear();
      for (size_t j = 0; j < sentences.size(); ++j) {
        text += sentences[(i * 3 + j * 5 + i * j) % sentences.size()];
      }
    }
    const EvalModel::Ids more = model.encode(text, false, false);
    check(!more.empty(), ErrorKind::config, "needle: the filler has no tokens; give a text");
    out.insert(out.end(), more.begin(), more.end());
  }
  out.resize(static_cast<size_t>(count));
  return out;
}

void append(EvalModel::Ids& ids, const EvalModel::Ids& more) {
  ids.insert(ids.end(), more.begin(), more.end());
}

// Whether the hidden number was the likeliest of ten, and what the model would have written.
struct Found {
  bool right = false;
  bool greedy = false;
};

Found one_trial(const EvalModel& model, const NeedleConfig& config, int64_t length, double depth,
                const Philox& random) {
  const auto answer = static_cast<int64_t>(random.bits(0) % 10);
  const auto ids = [&](const std::string& text) { return model.encode(text, false, false); };
  const EvalModel::Ids needle =
      ids(concat(" The number of the house is ", number_text(answer, random), "."));
  const EvalModel::Ids question =
      ids(" What is the number of the house? The number of the house is");
  std::vector<EvalModel::Ids> candidates;
  size_t longest = 0;
  for (int64_t digit = 0; digit < 10; ++digit) {
    candidates.push_back(ids(concat(" ", number_text(digit, random))));
    longest = std::max(longest, candidates.back().size());
  }
  const int64_t room = length - static_cast<int64_t>(needle.size() + question.size() + longest);
  check(room >= 0, ErrorKind::config, "needle: a length of ", length,
        " tokens has no room for needle and question; give a longer one");
  const EvalModel::Ids filler = filler_ids(model, config, room);
  const auto at = static_cast<std::ptrdiff_t>(depth * static_cast<double>(room));
  EvalModel::Ids context(filler.begin(), filler.begin() + at);
  append(context, needle);
  context.insert(context.end(), filler.begin() + at, filler.end());
  append(context, question);
  std::vector<EvalModel::Question> questions;
  for (const EvalModel::Ids& candidate : candidates) {
    questions.push_back({context, candidate});
  }
  const auto scores = model.score(questions);
  const auto best = std::max_element(
      scores.begin(), scores.end(),
      [](const auto& a, const auto& b) { return a.log_probability < b.log_probability; });
  return {best - scores.begin() == answer, scores[static_cast<size_t>(answer)].greedy};
}

}  // namespace

std::vector<NeedleScore> needle_scores(
    const EvalModel& model, const NeedleConfig& config,
    const std::function<bool(int64_t done, int64_t all)>& on_done) {
  std::vector<int64_t> lengths = config.lengths;
  for (int64_t quarter = 1; lengths.size() < 4 && config.lengths.empty(); ++quarter) {
    lengths.push_back(model.context * quarter / 4);
  }
  std::vector<NeedleScore> out;
  int64_t done = 0;
  const int64_t all = static_cast<int64_t>(lengths.size()) * config.depths * config.trials;
  for (const int64_t length : lengths) {
    check(length <= model.context, ErrorKind::config, "needle: a length of ", length,
          " tokens is beyond the model's context of ", model.context);
    for (int64_t step = 0; step < config.depths; ++step) {
      const double depth = config.depths > 1
                               ? static_cast<double>(step) / static_cast<double>(config.depths - 1)
                               : 0.5;
      std::vector<double> right, greedy;
      for (int64_t trial = 0; trial < config.trials; ++trial) {
        const auto number = static_cast<uint64_t>((length * 1000 + step) * 1000 + trial);
        const Found found = one_trial(model, config, length, depth,
                                      Philox({config.seed, number, site_named("needle")}));
        right.push_back(found.right ? 1 : 0);
        greedy.push_back(found.greedy ? 1 : 0);
        if (on_done && !on_done(++done, all)) {
          return out;
        }
      }
      out.push_back({length, depth, mean_of(right), mean_of(greedy)});
    }
  }
  return out;
}

}  // namespace ingot
