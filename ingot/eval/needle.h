#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace ingot {

// Needle in a haystack: a number that belongs to a key is said once somewhere in a long text, and
// asked for at its end. Kamradt 2023 ("LLMTest_NeedleInAHaystack"); with a random key and value, as
// the passkey of Mohtashami & Jaggi 2023, arXiv:2305.16300, section 4.2, so that no model knows the
// answer beforehand.
struct NeedleConfig {
  int64_t length = 1024;    // of the whole prompt at most, as the measure counts
  double depth = 0.5;       // of the needle among the filling sentences: 0 first, 1 last
  int64_t digits = 5;       // of the value
  int64_t distractors = 0;  // other keys with other values, evenly spread
  // Sentences that fill the text, taken in turns; empty: a few that say nothing.
  std::vector<std::string> filling = {};
};

struct Needle {
  std::string prompt;  // ends where the value is to be written
  std::string answer;  // the value
  std::string key;
  int64_t at = 0;  // byte of the prompt at which the sentence with the value begins
};

// How long a text is: bytes, or the tokens of a tokenizer.
using TextMeasure = std::function<int64_t(std::string_view)>;

// The needle of a seed: as many filling sentences as fit into the length. Throws Error(config)
// where not even the needle and the question do, or the depth is not within 0 and 1.
Needle make_needle(const NeedleConfig& config, uint64_t seed, const TextMeasure& measure);

// Whether a text that a model wrote after the prompt begins with the value: spaces before it and
// whatever follows it do not count, more digits do.
bool found_needle(const Needle& needle, std::string_view written);

struct NeedleGrid {
  std::vector<int64_t> lengths;
  std::vector<double> depths = {0, 0.25, 0.5, 0.75, 1};
  int64_t samples = 4;  // needles of each length and depth
};

struct NeedleCell {
  int64_t length = 0;
  double depth = 0;
  int64_t found = 0;
  int64_t asked = 0;
  double accuracy() const { return static_cast<double>(found) / static_cast<double>(asked); }
};

// Continues each prompt; asked for the prompts of one cell at a time.
using NeedleWriter = std::function<std::vector<std::string>(const std::vector<Needle>& needles)>;

// Every length at every depth, lengths first. The needles are a function of seed, length, depth and
// number alone. Throws Error(argument) for a writer that answers another number of prompts.
std::vector<NeedleCell> search_needles(const NeedleGrid& grid, const NeedleConfig& config,
                                       uint64_t seed, const TextMeasure& measure,
                                       const NeedleWriter& writer);

// A row a length, a column a depth, accuracies in per cent.
std::string needle_table(const std::vector<NeedleCell>& cells);

}  // namespace ingot
