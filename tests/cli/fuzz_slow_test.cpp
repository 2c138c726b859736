#include "tests/fuzz/driver.h"
#include "tests/fuzz/request_targets.h"

namespace ingot::testing {
namespace {

class RequestParsersForAMinute : public ::testing::TestWithParam<FuzzTarget> {};

TEST_P(RequestParsersForAMinute, SurviveSeedsAndChangedOnes) { run_changed(GetParam(), 1, 60); }

INSTANTIATE_TEST_SUITE_P(All, RequestParsersForAMinute, ::testing::ValuesIn(request_fuzz_targets()),
                         fuzz_target_name);

}  // namespace
}  // namespace ingot::testing
