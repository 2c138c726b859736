#include "ingot/eval/needle.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "ingot/base/error.h"
#include "ingot/base/philox.h"

namespace ingot {
namespace {

const std::vector<std::string>& usual_filling() {
  static const std::vector<std::string> sentences = {
      "The grass is green.",       "The sky is blue.",
      "The sun is warm.",          "Here we go.",
      "There and back again.",     "The river runs to the sea.",
      "A door opens and closes.",  "Somebody walks down a road.",
      "It is quiet in the garden."};
  return sentences;
}

constexpr const char* words[] = {"amber", "birch",  "cedar",  "delta",  "ember", "flint",
                                 "grove", "heron",  "indigo", "jasper", "kelp",  "lotus",
                                 "maple", "nickel", "opal",   "pearl"};

class Draws {
 public:
  explicit Draws(uint64_t seed) : random_({seed, 0, site_named("eval.needle")}) {}
  int64_t below(int64_t limit) { return static_cast<int64_t>(random_.word(at_++)) % limit; }

 private:
  Philox random_;
  uint64_t at_ = 0;
};

std::string drawn_key(Draws& draws) {
  const auto word = [&] { return std::string(words[draws.below(std::ssize(words))]); };
  return word() + "-" + word() + "-" + std::to_string(draws.below(90) + 10);
}

std::string drawn_value(Draws& draws, int64_t digits) {
  std::string out(1, static_cast<char>('1' + draws.below(9)));
  while (static_cast<int64_t>(out.size()) < digits) {
    out += static_cast<char>('0' + draws.below(10));
  }
  return out;
}

std::string told(const std::string& key, const std::string& value) {
  return "The number of " + key + " is " + value + ".";
}

// The prompt with so many filling sentences.
Needle assembled(const NeedleConfig& config, uint64_t seed, int64_t sentences) {
  Draws draws(seed);
  Needle out;
  out.key = drawn_key(draws);
  out.answer = drawn_value(draws, config.digits);
  const auto& filling = config.filling.empty() ? usual_filling() : config.filling;
  const int64_t start = draws.below(std::ssize(filling));
  const auto place = static_cast<int64_t>(config.depth * static_cast<double>(sentences) + 0.5);
  int64_t others = 0;
  for (int64_t i = 0; i <= sentences; ++i) {
    for (; others < config.distractors && others * (sentences + 1) <= i * config.distractors;
         ++others) {
      std::string key = drawn_key(draws);
      key += key == out.key ? "0" : "";
      out.prompt += told(key, drawn_value(draws, config.digits)) + " ";
    }
    if (i == place) {
      out.at = static_cast<int64_t>(out.prompt.size());
      out.prompt += told(out.key, out.answer) + " ";
    }
    if (i < sentences) {
      out.prompt += filling[static_cast<size_t>((start + i) % std::ssize(filling))] + " ";
    }
  }
  out.prompt += "The number of " + out.key + " is";
  return out;
}

}  // namespace

Needle make_needle(const NeedleConfig& config, uint64_t seed, const TextMeasure& measure) {
  check(config.depth >= 0 && config.depth <= 1, ErrorKind::config,
        "needle: depth must be within 0 and 1: got ", config.depth);
  check(config.digits > 0 && config.distractors >= 0, ErrorKind::config,
        "needle: digits must be above 0 and distractors at least 0: digits is ", config.digits,
        ", distractors is ", config.distractors);
  Needle out = assembled(config, seed, 0);
  const int64_t least = measure(out.prompt);
  check(least <= config.length, ErrorKind::config,
        "needle: the length has no room for the needle and the question: length is ", config.length,
        ", they take ", least);
  // Lengths grow with the number of sentences: the largest that fits, by halving.
  int64_t fits = 0;
  int64_t too_many = 1;
  while (measure(assembled(config, seed, too_many).prompt) <= config.length) {
    fits = too_many;
    too_many *= 2;
  }
  while (too_many - fits > 1) {
    const int64_t middle = fits + (too_many - fits) / 2;
    (measure(assembled(config, seed, middle).prompt) <= config.length ? fits : too_many) = middle;
  }
  return assembled(config, seed, fits);
}

bool found_needle(const Needle& needle, std::string_view written) {
  const size_t begin = std::min(written.find_first_not_of(" \n\t"), written.size());
  const std::string_view text = written.substr(begin);
  if (!text.starts_with(needle.answer)) {
    return false;
  }
  const char next = text.size() > needle.answer.size() ? text[needle.answer.size()] : ' ';
  return next < '0' || next > '9';
}

std::vector<NeedleCell> search_needles(const NeedleGrid& grid, const NeedleConfig& config,
                                       uint64_t seed, const TextMeasure& measure,
                                       const NeedleWriter& writer) {
  std::vector<NeedleCell> out;
  for (const int64_t length : grid.lengths) {
    for (const double depth : grid.depths) {
      NeedleConfig one = config;
      one.length = length;
      one.depth = depth;
      std::vector<Needle> needles;
      for (int64_t i = 0; i < grid.samples; ++i) {
        const Philox mix({seed, static_cast<uint64_t>(length), std::bit_cast<uint64_t>(depth)});
        needles.push_back(make_needle(one, mix.bits(static_cast<uint64_t>(i)), measure));
      }
      const std::vector<std::string> written = writer(needles);
      check(written.size() == needles.size(), ErrorKind::argument, "needle: ", needles.size(),
            " prompts were asked, ", written.size(), " were answered");
      NeedleCell cell{length, depth, 0, grid.samples};
      for (size_t i = 0; i < needles.size(); ++i) {
        cell.found += found_needle(needles[i], written[i]) ? 1 : 0;
      }
      out.push_back(cell);
    }
  }
  return out;
}

std::string needle_table(const std::vector<NeedleCell>& cells) {
  std::string head = "length";
  std::string rows;
  int64_t length = -1;
  for (const NeedleCell& cell : cells) {
    if (cells.front().length == cell.length) {
      head += fmt::format(" {:>7}", fmt::format("{:.0f} %", 100 * cell.depth));
    }
    if (cell.length != length) {
      rows += fmt::format("\n{:>6}", cell.length);
      length = cell.length;
    }
    rows += fmt::format(" {:>7.1f}", 100 * cell.accuracy());
  }
  return head + rows + "\n";
}

}  // namespace ingot
