#pragma once

#include <cstdint>
#include <iosfwd>
#include <string_view>

namespace ingot {

// cpu   host memory, computed by the processor
// meta  no memory and no arithmetic: shapes, allocation sizes and FLOPs only (what `ingot plan`
// runs on)
enum class DeviceKind : uint8_t { cpu, meta };

struct Device {
  DeviceKind kind = DeviceKind::cpu;
  int32_t index = 0;

  friend bool operator==(const Device&, const Device&) = default;
};

inline constexpr Device cpu_device{DeviceKind::cpu, 0};
inline constexpr Device meta_device{DeviceKind::meta, 0};

std::string_view name(DeviceKind kind);
std::ostream& operator<<(std::ostream& out, Device device);  // "cpu", "meta"

}  // namespace ingot
