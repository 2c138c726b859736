#pragma once

#include <utility>

#include "ingot/base/device.h"

namespace ingot {

// An execution tag says where a kernel runs. Kernel headers list one overload per tag, so a kernel
// that a device lacks does not compile.
struct Cpu {};

// Calls f with the tag of `device`: the only place in Ingot that branches on the device. On the
// meta device nothing runs: the shapes and allocations around the call are all there is.
template <class F>
void on_device(Device device, F&& f) {
  if (device.kind == DeviceKind::cpu) {
    std::forward<F>(f)(Cpu{});
  }
}

}  // namespace ingot
