#include "ingot/train/loss_curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace ingot {
namespace {

// A grid of dots drawn with the characters U+2800 … U+28FF, each two dots wide and four high.
class Braille {
 public:
  Braille(int64_t columns, int64_t lines)
      : columns_(columns), cells_(static_cast<size_t>(columns * lines), 0) {}

  void dot(int64_t x, int64_t y) {
    constexpr uint8_t bits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    uint8_t& cell = cells_[static_cast<size_t>(y / 4 * columns_ + x / 2)];
    cell = static_cast<uint8_t>(cell | bits[y % 4][x % 2]);
  }

  std::string line(int64_t index) const {
    std::string out;
    for (int64_t column = 0; column < columns_; ++column) {
      const uint8_t cell = cells_[static_cast<size_t>(index * columns_ + column)];
      out +=
          {'\xe2', static_cast<char>(0xa0 + (cell >> 6)), static_cast<char>(0x80 + (cell & 0x3f))};
    }
    return out;
  }

 private:
  int64_t columns_;
  std::vector<uint8_t> cells_;
};

// The mean finite loss of each of `count` equal spans of steps; empty where a span has none.
std::vector<std::optional<double>> spans(const std::vector<LoggedStep>& steps, int64_t count) {
  std::vector<double> sums(static_cast<size_t>(count), 0);
  std::vector<int64_t> counts(static_cast<size_t>(count), 0);
  const int64_t first = steps.front().step;
  const int64_t range = std::max<int64_t>(1, steps.back().step - first);
  for (const LoggedStep& entry : steps) {
    if (std::isfinite(entry.loss)) {
      const auto at = static_cast<size_t>((entry.step - first) * (count - 1) / range);
      sums[at] += entry.loss;
      ++counts[at];
    }
  }
  std::vector<std::optional<double>> means;
  for (size_t i = 0; i < sums.size(); ++i) {
    means.push_back(counts[i] == 0 ? std::nullopt
                                   : std::optional(sums[i] / static_cast<double>(counts[i])));
  }
  return means;
}

}  // namespace

std::string loss_curve(const std::vector<LoggedStep>& steps, int64_t width, int64_t height) {
  if (steps.size() < 2) {
    return "";
  }
  const std::vector<std::optional<double>> means = spans(steps, width * 2);
  double low = HUGE_VAL;
  double high = -HUGE_VAL;
  for (const std::optional<double>& mean : means) {
    low = mean ? std::min(low, *mean) : low;
    high = mean ? std::max(high, *mean) : high;
  }
  if (low > high) {
    return "";
  }
  Braille grid(width, height);
  const double span = std::max(high - low, 1e-9);
  for (size_t x = 0; x < means.size(); ++x) {
    if (means[x]) {
      const double y = (high - *means[x]) / span * static_cast<double>(height * 4 - 1);
      grid.dot(static_cast<int64_t>(x), std::lround(y));
    }
  }
  std::string out;
  for (int64_t line = 0; line < height; ++line) {
    const std::string label = line == 0            ? fmt::format("{:8.4f}", high)
                              : line == height - 1 ? fmt::format("{:8.4f}", low)
                                                   : std::string(8, ' ');
    out += label + " ┤" + grid.line(line) + "\n";
  }
  const std::string last = std::to_string(steps.back().step);
  out += fmt::format("         └{:─<{}}\n", "", width);
  out += fmt::format("          {:<{}}{}\n", steps.front().step,
                     width - static_cast<int64_t>(last.size()), last);
  return out;
}

}  // namespace ingot
