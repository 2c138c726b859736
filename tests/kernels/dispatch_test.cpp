#include "ingot/kernels/cpu/dispatch.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <string>

#include "ingot/base/error.h"

namespace ingot::kernels {
namespace {

TEST(Dispatch, LevelsHaveTheNamesThatReadThem) {
  for (const SimdLevel level :
       {SimdLevel::avx2, SimdLevel::avx512, SimdLevel::avx512_bf16, SimdLevel::amx}) {
    EXPECT_EQ(simd_level_named(name(level)), level);
  }
  EXPECT_FALSE(simd_level_named("sse2").has_value());
}

// Each in a process of its own, for a level once chosen stays.
using DispatchDeathTest = ::testing::Test;

TEST(DispatchDeathTest, RestrictingTakesWiderTargetsFromHighway) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        unsetenv("INGOT_SIMD");
        restrict_simd(SimdLevel::avx2);
        const bool narrow = (hwy::SupportedTargets() & (HWY_AVX3 | HWY_AVX3_DL)) == 0;
        std::exit(narrow && simd_level() == SimdLevel::avx2 ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(DispatchDeathTest, TheEnvironmentIsReadOnFirstUse) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv("INGOT_SIMD", "avx2", 1);
        std::exit(simd_level() == SimdLevel::avx2 ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(DispatchDeathTest, AValueThatIsNoLevelIsRefused) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv("INGOT_SIMD", "fast", 1);
        std::string message;
        try {
          simd_level();
        } catch (const Error& error) {
          message = error.what();
        }
        std::exit(message ==
                          "INGOT_SIMD: no such level: got \"fast\"; it takes avx2, avx512, "
                          "avx512_bf16 or amx"
                      ? 0
                      : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace ingot::kernels
