#include "tests/fuzz/driver.h"
#include "tests/fuzz/request_targets.h"

namespace ingot::testing {
namespace {

class RequestParsers : public ::testing::TestWithParam<FuzzTarget> {};

TEST_P(RequestParsers, SurviveSeedsAndChangedOnes) { run_changed(GetParam(), 2000, 0); }

INSTANTIATE_TEST_SUITE_P(All, RequestParsers, ::testing::ValuesIn(request_fuzz_targets()),
                         fuzz_target_name);

}  // namespace
}  // namespace ingot::testing
