#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "ingot/base/value.h"

namespace ingot {

// What a configuration field may hold: an interval for numbers, a list of words for texts. For a
// list field it holds for each item. NaN is in no range.
struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false;   // low itself excluded
  bool high_open = false;  // high itself excluded
  std::vector<std::string> choices;

  bool contains(const Scalar& value) const;
  bool bounded() const;      // says anything at all
  std::string text() const;  // "[0, 1)", "at least 1", "above 0", "one of gpt2, llama"; "" for any
};

Range any();
Range in(double low, double high);         // low ≤ x ≤ high
Range half_open(double low, double high);  // low ≤ x < high
Range at_least(double low);
Range above(double low);  // x > low
Range at_most(double high);
Range one_of(std::vector<std::string> choices);

}  // namespace ingot
