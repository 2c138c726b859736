#include "ingot/posttrain/best_of_n.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "ingot/base/error.h"

namespace ingot {
namespace {

void check_scores(std::span<const double> scores, int64_t n) {
  check(n >= 1 && static_cast<int64_t>(scores.size()) % n == 0, ErrorKind::argument,
        "best_of_n: ", scores.size(), " scores are no whole groups of ", n);
  const auto wrong = std::ranges::find_if(scores, [](double x) { return std::isnan(x); });
  check(wrong == scores.end(), ErrorKind::argument, "best_of_n: score ", wrong - scores.begin(),
        " is no number");
}

}  // namespace

std::vector<int64_t> best_of_n(std::span<const double> scores, int64_t n) {
  check_scores(scores, n);
  std::vector<int64_t> out;
  for (size_t begin = 0; begin < scores.size(); begin += static_cast<size_t>(n)) {
    const auto group = scores.subspan(begin, static_cast<size_t>(n));
    out.push_back(static_cast<int64_t>(begin) + (std::ranges::max_element(group) - group.begin()));
  }
  return out;
}

std::vector<int64_t> accepted(std::span<const double> scores, std::span<const uint64_t> answers,
                              int64_t n, const Rejection& rule) {
  check_scores(scores, n);
  check(answers.size() == scores.size(), ErrorKind::argument, "accepted: ", scores.size(),
        " scores for ", answers.size(), " answers");
  std::vector<int64_t> out;
  for (size_t begin = 0; begin < scores.size(); begin += static_cast<size_t>(n)) {
    std::vector<size_t> order(static_cast<size_t>(n));
    std::iota(order.begin(), order.end(), begin);
    std::ranges::stable_sort(order, [&](size_t a, size_t b) { return scores[a] > scores[b]; });
    std::set<uint64_t> seen;
    int64_t kept = 0;
    for (const size_t i : order) {
      const bool room = rule.most == 0 || kept < rule.most;
      if (room && scores[i] >= rule.least && seen.insert(answers[i]).second) {
        out.push_back(static_cast<int64_t>(i));
        ++kept;
      }
    }
  }
  return out;
}

}  // namespace ingot
