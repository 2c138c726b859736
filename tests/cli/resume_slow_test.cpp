#include "tests/cli/resume.h"

namespace ingot::testing {
namespace {

TEST(ResumeAtLength, SurvivesSixtyKills) {
  if (const std::string reason = no_program(); !reason.empty()) {
    GTEST_SKIP() << reason;
  }
  for (unsigned seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(seed);
    expect_survives({.settings = {seed == 2 ? "dtype=f32" : "dtype=bf16", "model.dropout=0.1"},
                     .steps = 200,
                     .every = seed,
                     .kills = 20,
                     .seed = 100 + seed});
  }
}

}  // namespace
}  // namespace ingot::testing
