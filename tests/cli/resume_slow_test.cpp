#include "tests/cli/resume.h"

namespace ingot::testing {
namespace {

TEST(ResumeAtLength, SurvivesTwoHundredAndTenKills) {
  if (const std::string reason = no_program(); !reason.empty()) {
    GTEST_SKIP() << reason;
  }
  for (unsigned seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(seed);
    expect_survives({.settings = {seed == 2 ? "dtype=f32" : "dtype=bf16", "model.dropout=0.1"},
                     .steps = 600,
                     .every = seed,
                     .kills = 70,
                     .seed = 100 + seed});
  }
}

}  // namespace
}  // namespace ingot::testing
