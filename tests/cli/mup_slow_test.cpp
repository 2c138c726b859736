#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "ingot/cli/selftest_mup.h"

namespace ingot::testing {
namespace {

// On a grid of factors of two the best rate stays, or moves by one, when the width grows eightfold.
TEST(MupTransfer, TheBestRateIsThatOfTheNarrowModel) {
  const std::vector<double> rates = {1.0 / 512, 1.0 / 256, 1.0 / 128, 1.0 / 64, 1.0 / 32, 1.0 / 16};
  const auto best = [&](int64_t width, bool mup) {
    const std::vector<double> losses = losses_by_rate(width, mup, rates, 40);
    return std::ranges::min_element(losses) - losses.begin();
  };
  EXPECT_LE(std::abs(best(32, true) - best(256, true)), 1);
  EXPECT_GT(best(32, false), best(256, false));
}

}  // namespace
}  // namespace ingot::testing
