#include "ingot/device/profile.h"

#include <gtest/gtest.h>

#include "ingot/base/error.h"
#include "ingot/device/flops.h"
#include "ingot/device/on_device.h"

namespace ingot {
namespace {

std::source_location named_function() { return std::source_location::current(); }

template <class F>
std::source_location inside_template(F&&) {
  return std::source_location::current();
}

TEST(KernelName, IsTheFileAndTheFunction) {
  EXPECT_EQ(kernel_name(named_function()), "profile_test.named_function");
  const auto any = [] {};
  EXPECT_EQ(kernel_name(inside_template(any)), "profile_test.inside_template");
  const auto formula = [] { return std::source_location::current(); };
  EXPECT_EQ(kernel_name(formula()), "profile_test.backward");
}

TEST(Recording, HoldsEveryKernelCallWithItsWork) {
  on_device(cpu_device, [](const Cpu&) {});  // before: not seen
  Recording recording;
  count_flops(7);
  on_device(cpu_device, [](const Cpu&) { count_bytes(64); });
  count_bytes(1000);  // outside of a call: belongs to none
  count_flops(5);
  on_device(cpu_device, [](const Cpu&) { count_bytes(1); });
  count_flops(3);
  on_device(meta_device, [](const Cpu&) { count_bytes(1); });  // nothing runs, but it was called
  ASSERT_EQ(recording.calls().size(), 3);
  EXPECT_EQ(recording.calls()[2].flops, 3);
  EXPECT_EQ(recording.calls()[2].bytes, 0);
  EXPECT_EQ(recording.calls()[0].flops, 7);
  EXPECT_EQ(recording.calls()[0].bytes, 64);
  EXPECT_EQ(recording.calls()[1].flops, 5);
  EXPECT_EQ(recording.calls()[1].bytes, 1);
  EXPECT_LE(recording.calls()[0].begin + recording.calls()[0].seconds, recording.calls()[1].begin);
}

TEST(Recording, CountsTheTimeOfACallWithinACallOnce) {
  Recording recording;
  const auto wait = [] {
    const auto start = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - start < std::chrono::milliseconds(20)) {
    }
  };
  on_device(cpu_device, [&](const Cpu&) { on_device(cpu_device, [&](const Cpu&) { wait(); }); });
  ASSERT_EQ(recording.calls().size(), 2);
  EXPECT_GE(recording.calls()[0].seconds, 0.02);                          // the inner one
  EXPECT_LT(recording.calls()[1].seconds, recording.calls()[0].seconds);  // the outer one's rest
}

TEST(Recording, RefusesASecondOneOnTheSameThread) {
  const Recording first;
  EXPECT_THROW(Recording(), Error);
}

}  // namespace
}  // namespace ingot
