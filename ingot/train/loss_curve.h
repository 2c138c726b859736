#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ingot/train/run_log.h"

namespace ingot {

// The losses as a plot for the terminal, `width` columns and `height` lines of braille dots (2×4
// each) with the largest and smallest loss at the left and the first and last step below. Several
// steps in one column are averaged.
std::string loss_curve(const std::vector<LoggedStep>& steps, int64_t width = 64,
                       int64_t height = 10);

}  // namespace ingot
