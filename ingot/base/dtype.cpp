#include "ingot/base/dtype.h"

#include <array>
#include <ostream>

namespace ingot {
namespace {

struct Row {
  std::string_view name;
  int64_t bytes;
};

constexpr std::array<Row, 9> table = {{{"bool", 1},
                                       {"u8", 1},
                                       {"i8", 1},
                                       {"i32", 4},
                                       {"i64", 8},
                                       {"f16", 2},
                                       {"bf16", 2},
                                       {"f32", 4},
                                       {"f64", 8}}};

}  // namespace

int64_t size_of(DType type) { return table[static_cast<size_t>(type)].bytes; }

std::string_view name(DType type) { return table[static_cast<size_t>(type)].name; }

std::optional<DType> dtype_named(std::string_view name) {
  for (size_t i = 0; i < table.size(); ++i) {
    if (table[i].name == name) {
      return static_cast<DType>(i);
    }
  }
  return std::nullopt;
}

std::ostream& operator<<(std::ostream& out, DType type) { return out << name(type); }

}  // namespace ingot
