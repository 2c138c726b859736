#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ingot/eval/statistics.h"

namespace ingot {

// Two models' answers compared by a judge, each pair in both orders (Zheng et al. 2023, "Judging
// LLM-as-a-judge with MT-Bench and Chatbot Arena", arXiv:2306.05685, sections 3.3 and 3.4).

enum class Verdict : uint8_t { first, second, tie, none };

// The last of [[A]], [[B]] and [[C]] (a tie) in what a judge wrote; none where there is none.
Verdict verdict_of(std::string_view written);

// What the judge is asked about two answers.
std::string judge_prompt(std::string_view question, std::string_view first,
                         std::string_view second);

struct Comparison {
  Verdict forward = Verdict::none;   // our answer stood first
  Verdict backward = Verdict::none;  // it stood second
  double length_difference = 0;      // characters of our answer less those of the other
};

struct WinRate {
  int64_t wins = 0, losses = 0, ties = 0;  // a verdict that the order turns is a tie
  int64_t unparsable = 0;                  // pairs with a verdict that could not be read: left out
  int64_t first_preferred = 0;             // pairs of which the first answer won in both orders
  int64_t second_preferred = 0;            // and the second one
  double rate = 0;                         // (wins + ties/2) / all
  Interval interval;                       // 95 %, Wilson's
  // What the rate would be between answers of equal length: σ(a) of the fit
  // P(win) = σ(a + b·tanh(Δ/s)), s the deviation of the length differences Δ (Dubois et al. 2024,
  // "Length-controlled AlpacaEval", arXiv:2404.04475, equation 2, with these two terms).
  double length_controlled = 0;

  int64_t pairs() const { return wins + losses + ties; }
  double position_bias() const;  // share of pairs decided by the place alone
};
WinRate win_rate(std::span<const Comparison> comparisons);

// The share of pairs whose chosen answer has the higher score, an equal one counted as half, with
// its standard error: the accuracy of a reward model.
Estimate pair_accuracy(std::span<const double> chosen, std::span<const double> rejected);

}  // namespace ingot
