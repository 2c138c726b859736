#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "ingot/base/error.h"
#include "ingot/base/json.h"
#include "ingot/io/gguf.h"
#include "ingot/io/safetensors_header.h"
#include "ingot/models/architecture.h"

// What every parser of files from outside must survive: any bytes at all. Each target either
// accepts them or throws Error; anything else (another exception, a crash, a read beyond the end,
// hanging) is a finding. tests/models/fuzz_test.cpp runs them over changed seeds; libfuzzer.cpp is
// the entry point for clang's libFuzzer.
namespace ingot::testing {

template <class F>
void survives(F&& f) {
  try {
    f();
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): a refusal is an answer
  }
}

inline void fuzz_gguf(std::span<const std::byte> bytes) {
  survives([&] {
    const GgufHeader header = parse_gguf_header(bytes, "fuzz.gguf");
    for (const auto& [key, value] : header.metadata) {
      shown(value);
    }
  });
}

inline void fuzz_safetensors(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  survives([&] { parse_safetensors_header(text, 64, "fuzz.safetensors"); });
}

// config.json of every architecture.
inline void fuzz_config(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  survives([&] {
    const nlohmann::json json = parse_json(text, "fuzz.json");
    for (const Architecture& architecture : architectures()) {
      survives([&] { architecture.read(json, "fuzz.json"); });
    }
  });
}

}  // namespace ingot::testing
