#include "ingot/base/text_size.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string_view>

namespace ingot {
namespace {

// Three significant digits; `value` below 1000 (or 1024) unless it is beyond the last unit.
std::string three_digits(double value) {
  const double size = std::abs(value);
  if (size < 9.995) {
    return fmt::format("{:.2f}", value);
  }
  return size < 99.95 ? fmt::format("{:.1f}", value) : fmt::format("{:.0f}", value);
}

}  // namespace

std::string text_bytes(int64_t bytes) {
  constexpr std::array<std::string_view, 7> units = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (std::abs(value) >= 1023.5 && unit + 1 < units.size()) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes)
                   : fmt::format("{} {}", three_digits(value), units[unit]);
}

std::string text_count(double count) {
  constexpr std::array<std::string_view, 5> units = {"", "K", "M", "B", "T"};
  size_t unit = 0;
  while (std::abs(count) >= 999.5 && unit + 1 < units.size()) {
    count /= 1000;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.4g}", count) : three_digits(count) + std::string(units[unit]);
}

std::string text_flops(double flops) {
  constexpr std::array<std::string_view, 7> prefixes = {"", "k", "M", "G", "T", "P", "E"};
  size_t prefix = 0;
  while (flops >= 999.5 && prefix + 1 < prefixes.size()) {
    flops /= 1000;
    ++prefix;
  }
  return (prefix == 0 ? fmt::format("{:.4g}", flops) : three_digits(flops)) + " " +
         std::string(prefixes[prefix]) + "FLOP";
}

std::string text_duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) {
    return "?";
  }
  if (seconds < 9.95) {
    return fmt::format("{:.1f} s", seconds);
  }
  const auto whole = static_cast<int64_t>(std::llround(std::min(seconds, 1e15)));
  constexpr int64_t minute = 60;
  constexpr int64_t hour = 60 * minute;
  constexpr int64_t day = 24 * hour;
  if (whole < minute) {
    return fmt::format("{} s", whole);
  }
  if (whole < hour) {
    return fmt::format("{} min {} s", whole / minute, whole % minute);
  }
  if (whole < day) {
    return fmt::format("{} h {} min", whole / hour, whole % hour / minute);
  }
  return fmt::format("{} d {} h", whole / day, whole % day / hour);
}

}  // namespace ingot
