#include "tests/fuzz/driver.h"
#include "tests/fuzz/file_targets.h"

namespace ingot::testing {
namespace {

class Parsers : public ::testing::TestWithParam<FuzzTarget> {};

TEST_P(Parsers, SurviveSeedsAndChangedOnes) { run_changed(GetParam(), 2000, 0); }

INSTANTIATE_TEST_SUITE_P(All, Parsers, ::testing::ValuesIn(file_fuzz_targets()), fuzz_target_name);

}  // namespace
}  // namespace ingot::testing
