#include "ingot/base/device.h"

#include <ostream>

namespace ingot {

std::string_view name(DeviceKind kind) { return kind == DeviceKind::cpu ? "cpu" : "meta"; }

std::ostream& operator<<(std::ostream& out, Device device) {
  out << name(device.kind);
  return device.index == 0 ? out : out << ':' << device.index;
}

}  // namespace ingot
