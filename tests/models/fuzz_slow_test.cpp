#include "tests/fuzz/driver.h"
#include "tests/fuzz/file_targets.h"

namespace ingot::testing {
namespace {

class ParsersForAMinute : public ::testing::TestWithParam<FuzzTarget> {};

TEST_P(ParsersForAMinute, SurviveSeedsAndChangedOnes) { run_changed(GetParam(), 1, 60); }

INSTANTIATE_TEST_SUITE_P(All, ParsersForAMinute, ::testing::ValuesIn(file_fuzz_targets()),
                         fuzz_target_name);

}  // namespace
}  // namespace ingot::testing
