#include <gtest/gtest.h>

#include "ingot/cli/selftest_mup.h"

namespace ingot::testing {
namespace {

TEST(MupCoordinates, MoveAsFarAtEveryWidthAndFurtherWithoutIt) {
  for (const Growth& part : growth_of(coordinate_check({32, 128, 256}))) {
    EXPECT_LE(part.mup, 2) << part.part;
    if (part.part == "logits") {
      EXPECT_GT(part.usual, 2) << part.part;
    }
  }
}

}  // namespace
}  // namespace ingot::testing
