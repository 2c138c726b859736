#include "ingot/cli/number_checks.h"

#include <cmath>
#include <functional>
#include <string>

#include "ingot/base/error.h"

namespace ingot {
namespace {

// A number whose value `fits`; the message names the range in words.
CLI::Validator number_that(const std::function<bool(double)>& fits, const std::string& range) {
  return CLI::Validator(
      [fits, range](std::string& text) {
        double value = 0;
        const bool good = CLI::detail::lexical_cast(text, value) && fits(value);
        return good ? std::string() : concat("got ", text, ", allowed is ", range);
      },
      "");
}

}  // namespace

CLI::Validator at_least_zero() {
  return number_that([](double value) { return value >= 0 && std::isfinite(value); }, "at least 0");
}

CLI::Validator above_zero() {
  return number_that([](double value) { return value > 0 && std::isfinite(value); }, "above 0");
}

CLI::Validator whole_number() {
  return number_that(
      [](double value) { return value >= 0 && value < 0x1p63 && value == std::floor(value); },
      "a whole number from 0 and below 2^63");
}

CLI::Validator counting_number() {
  return number_that(
      [](double value) { return value >= 1 && value < 0x1p31 && value == std::floor(value); },
      "a whole number from 1 and below 2^31");
}

CLI::Validator from_zero_to_one() {
  return number_that([](double value) { return value >= 0 && value <= 1; }, "0 to 1");
}

CLI::Validator any_number() {
  return number_that([](double value) { return std::isfinite(value); }, "a finite number");
}

}  // namespace ingot
