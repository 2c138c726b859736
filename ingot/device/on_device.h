#pragma once

#include <source_location>
#include <utility>

#include "ingot/base/device.h"
#include "ingot/device/profile.h"

namespace ingot {

// An execution tag says where a kernel runs. Kernel headers list one overload per tag, so a kernel
// that a device lacks does not compile.
struct Cpu {};

// Calls f with the tag of `device`: the only place in Ingot that branches on the device. On the
// meta device nothing runs: the shapes and allocations around the call are all there is. A recorded
// call is named after the caller, on the meta device too.
template <class F>
void on_device(Device device, F&& f,
               const std::source_location& caller = std::source_location::current()) {
  const KernelTimer timer(caller);
  if (device.kind == DeviceKind::cpu) {
    std::forward<F>(f)(Cpu{});
  }
}

}  // namespace ingot
