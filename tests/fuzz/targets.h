#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ingot/base/error.h"

namespace ingot::testing {

// What every parser of files from outside must survive: any bytes at all. Each target either
// accepts them or throws Error; anything else (another exception, a crash, a read beyond the end,
// hanging, memory that a number in the file asks for) is a finding. The tests run them over changed
// seeds (driver.h), scripts/fuzz.sh under clang's libFuzzer (libfuzzer.cpp). A target's seeds are
// the files in tests/fuzz/seeds/NAME.
struct FuzzTarget {
  std::string_view name;
  void (*run)(std::span<const std::byte> bytes);
};

template <class F>
void survives(F&& f) {
  try {
    f();
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): a refusal is an answer
  }
}

inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace ingot::testing
