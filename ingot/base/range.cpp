#include "ingot/base/range.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ingot/base/error.h"

namespace ingot {

bool Range::contains(const Scalar& value) const {
  if (const auto* text = std::get_if<std::string>(&value)) {
    return choices.empty() || std::find(choices.begin(), choices.end(), *text) != choices.end();
  }
  if (std::holds_alternative<bool>(value)) {
    return true;
  }
  const auto* whole = std::get_if<int64_t>(&value);
  const double x = whole != nullptr ? static_cast<double>(*whole) : std::get<double>(value);
  return !std::isnan(x) && (low_open ? x > low : x >= low) && (high_open ? x < high : x <= high);
}

bool Range::bounded() const {
  return std::isfinite(low) || std::isfinite(high) || !choices.empty();
}

std::string Range::text() const {
  if (!choices.empty()) {
    std::string out = "one of ";
    for (size_t i = 0; i < choices.size(); ++i) {
      out += (i == 0 ? "" : ", ") + choices[i];
    }
    return out;
  }
  if (std::isfinite(low) && std::isfinite(high)) {
    return concat(low_open ? "(" : "[", low, ", ", high, high_open ? ")" : "]");
  }
  if (std::isfinite(low)) {
    return concat(low_open ? "above " : "at least ", low);
  }
  if (std::isfinite(high)) {
    return concat(high_open ? "below " : "at most ", high);
  }
  return "";
}

Range any() { return {}; }
Range in(double low, double high) { return {.low = low, .high = high, .choices = {}}; }
Range half_open(double low, double high) {
  return {.low = low, .high = high, .high_open = true, .choices = {}};
}
Range at_least(double low) { return {.low = low, .choices = {}}; }
Range above(double low) { return {.low = low, .low_open = true, .choices = {}}; }
Range at_most(double high) { return {.high = high, .choices = {}}; }
Range one_of(std::vector<std::string> choices) { return {.choices = std::move(choices)}; }

}  // namespace ingot
