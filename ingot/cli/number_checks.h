#pragma once

#include <CLI/CLI.hpp>

namespace ingot {

// What the value of a numeric option must be; messages say "got X, allowed is …". NaN fits nowhere.
CLI::Validator at_least_zero();
CLI::Validator above_zero();
CLI::Validator whole_number();     // 0 … 2^63
CLI::Validator counting_number();  // 1 … 2^31
CLI::Validator from_zero_to_one();
CLI::Validator any_number();  // finite

}  // namespace ingot
