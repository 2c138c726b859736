#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

#include "ingot/kernels/cpu/dispatch.h"

namespace ingot::testing {
namespace {

// Reads INGOT_SIMD before any test of this program computes: ctest runs the program once more with
// INGOT_SIMD=avx2, see tests/CMakeLists.txt.
class ReadsSimdLevel : public ::testing::Environment {
 public:
  void SetUp() override { kernels::simd_level(); }
};
const ::testing::Environment* const reads_simd_level =
    ::testing::AddGlobalTestEnvironment(std::make_unique<ReadsSimdLevel>().release());

TEST(Simd, TheLevelInForceIsNoWiderThanTheEnvironmentAllows) {
  const char* wanted = std::getenv("INGOT_SIMD");
  if (wanted == nullptr) {
    GTEST_SKIP() << "INGOT_SIMD is not set: nothing is restricted";
  }
  EXPECT_LE(kernels::simd_level(), kernels::simd_level_named(wanted).value());
}

}  // namespace
}  // namespace ingot::testing
