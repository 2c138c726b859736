#include "ingot/eval/win_rate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "ingot/base/error.h"

namespace ingot {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// Newton's method on the log-likelihood of outcomes in [0, 1], with a little weight decay so that
// outcomes which a plane separates have a finite fit.
double fitted_intercept(std::span<const double> outcomes, std::span<const double> features) {
  constexpr double decay = 1e-3;
  double a = 0, b = 0;
  for (int step = 0; step < 50; ++step) {
    double ga = -decay * a, gb = -decay * b, haa = decay, hab = 0, hbb = decay;
    for (size_t i = 0; i < outcomes.size(); ++i) {
      const double p = sigmoid(a + b * features[i]);
      const double weight = p * (1 - p);
      ga += outcomes[i] - p;
      gb += (outcomes[i] - p) * features[i];
      haa += weight;
      hab += weight * features[i];
      hbb += weight * features[i] * features[i];
    }
    const double determinant = haa * hbb - hab * hab;
    const double da = (hbb * ga - hab * gb) / determinant;
    const double db = (haa * gb - hab * ga) / determinant;
    a += da;
    b += db;
    if (std::abs(da) + std::abs(db) < 1e-12) {
      break;
    }
  }
  return a;
}

}  // namespace

Verdict verdict_of(std::string_view written) {
  constexpr std::array<std::pair<std::string_view, Verdict>, 3> marks = {
      {{"[[A]]", Verdict::first}, {"[[B]]", Verdict::second}, {"[[C]]", Verdict::tie}}};
  Verdict out = Verdict::none;
  size_t last = 0;
  for (const auto& [mark, verdict] : marks) {
    const size_t at = written.rfind(mark);
    if (at != std::string_view::npos && (out == Verdict::none || at > last)) {
      out = verdict;
      last = at;
    }
  }
  return out;
}

std::string judge_prompt(std::string_view question, std::string_view first,
                         std::string_view second) {
  return concat(
      "Two assistants answered the question below. Judge which answer helps the person who asked "
      "more: whether it is right, to the point, complete and clear. Neither its length nor its "
      "place counts. Give your reasons in a few sentences, then end with [[A]] if the first answer "
      "is better, [[B]] if the second is, or [[C]] if they are equally good.\n\n<question>\n",
      question, "\n</question>\n\n<answer A>\n", first, "\n</answer A>\n\n<answer B>\n", second,
      "\n</answer B>\n");
}

double WinRate::position_bias() const {
  return pairs() > 0 ? static_cast<double>(first_preferred + second_preferred) /
                           static_cast<double>(pairs())
                     : 0;
}

WinRate win_rate(std::span<const Comparison> comparisons) {
  WinRate out;
  std::vector<double> outcomes, differences;
  for (const Comparison& one : comparisons) {
    if (one.forward == Verdict::none || one.backward == Verdict::none) {
      ++out.unparsable;
      continue;
    }
    out.first_preferred += one.forward == Verdict::first && one.backward == Verdict::first ? 1 : 0;
    out.second_preferred +=
        one.forward == Verdict::second && one.backward == Verdict::second ? 1 : 0;
    const bool won = one.forward == Verdict::first && one.backward == Verdict::second;
    const bool lost = one.forward == Verdict::second && one.backward == Verdict::first;
    ++(won ? out.wins : lost ? out.losses : out.ties);
    outcomes.push_back(won ? 1 : lost ? 0 : 0.5);
    differences.push_back(one.length_difference);
  }
  const auto n = static_cast<double>(out.pairs());
  if (n == 0) {
    out.interval = {0, 1};
    return out;
  }
  out.rate = mean_of(outcomes).value;
  out.interval = wilson_interval(out.rate, n);
  double squares = 0;
  for (const double difference : differences) {
    squares += difference * difference;
  }
  const double spread = std::sqrt(squares / n);
  for (double& difference : differences) {
    difference = spread > 0 ? std::tanh(difference / spread) : 0;
  }
  out.length_controlled = sigmoid(fitted_intercept(outcomes, differences));
  return out;
}

Estimate pair_accuracy(std::span<const double> chosen, std::span<const double> rejected) {
  check(chosen.size() == rejected.size(), ErrorKind::argument, "pair_accuracy: ", chosen.size(),
        " chosen scores, ", rejected.size(), " rejected ones; give one each");
  std::vector<double> right;
  for (size_t i = 0; i < chosen.size(); ++i) {
    check(std::isfinite(chosen[i]) && std::isfinite(rejected[i]), ErrorKind::numeric,
          "pair_accuracy: the scores of pair ", i, " are ", chosen[i], " and ", rejected[i]);
    right.push_back(chosen[i] > rejected[i] ? 1 : chosen[i] == rejected[i] ? 0.5 : 0);
  }
  return mean_of(right);
}

}  // namespace ingot
