#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "ingot/base/files.h"
#include "tests/fuzz/targets.h"
#include "tests/support/paths.h"

// Runs the targets of targets.h over seeds with a few changes each: the same inputs on every
// machine.
namespace ingot::testing {

// A generator of its own, so that the inputs are the same on every machine (Steele et al. 2014,
// SplitMix64).
struct Draws {
  uint64_t state;

  uint64_t next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15U);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9U;
    z = (z ^ z >> 27) * 0x94d049bb133111ebU;
    return z ^ z >> 31;
  }
  size_t below(size_t limit) { return limit == 0 ? 0 : next() % limit; }
};

// A few changes of the kinds that break parsers: bits, extreme numbers, cuts, pieces twice.
inline std::string changed(std::string bytes, Draws& draws) {
  const size_t changes = 1 + draws.below(6);
  for (size_t i = 0; i < changes && !bytes.empty(); ++i) {
    const size_t at = draws.below(bytes.size());
    switch (draws.below(6)) {
      case 0: bytes[at] = static_cast<char>(bytes[at] ^ (1 << draws.below(8))); break;
      case 1: bytes[at] = static_cast<char>(draws.next()); break;
      case 2: {
        const uint64_t extremes[] = {0, 1, UINT32_MAX, INT64_MAX, UINT64_MAX, uint64_t{1} << 63};
        const uint64_t value = extremes[draws.below(6)];
        const size_t width = size_t{1} << draws.below(4);
        std::memcpy(bytes.data() + at, &value, std::min(width, bytes.size() - at));
        break;
      }
      case 3: bytes.resize(at); break;
      case 4: bytes.insert(at, bytes.substr(draws.below(bytes.size()), draws.below(64))); break;
      default: bytes.erase(at, draws.below(16)); break;
    }
  }
  return bytes;
}

inline std::string gguf_seed() {
  GgufHeader header;
  header.metadata.set("general.architecture", "llama");
  header.metadata.set_u32("general.alignment", 32);
  header.metadata.set_f32("llama.rope.freq_base", 10000);
  header.metadata.set("tokens", GgufValue{GgufArray{std::vector<std::string>{"a", "bc", ""}}});
  header.metadata.set("types", GgufValue{GgufArray{std::vector<int32_t>{1, 2, 3}}});
  header.metadata.set("nested", GgufValue{GgufArray{std::vector<GgufArray>{
                                    {std::vector<bool>{true}}, {std::vector<double>{0.5}}}}});
  header.tensors = {{"w", GgmlType::q4_0, Shape{2, 32}}, {"b", GgmlType::f32, Shape{3}}};
  return gguf_header_text(header) + std::string(96, '\x11');
}

inline std::string safetensors_seed() {
  SafetensorsHeader header;
  header.metadata = {{"format", "pt"}};
  header.entries = {{"a", DType::f32, Shape{2, 3}, 0, 24}, {"b", DType::bf16, Shape{20}, 24, 64}};
  return safetensors_header_text(header);
}

inline std::vector<std::string> config_seeds() {
  std::vector<std::string> out;
  for (const std::string& name : list_folder(oracle_folder() / "models")) {
    const auto file = oracle_folder() / "models" / name / "config.json";
    if (file_exists(file)) {
      out.push_back(read_file(file));
    }
  }
  return out;
}

// So many inputs, and more until so many seconds have gone: the fast suite asks for a number, the
// slow one for a minute.
inline void run_changed(const std::vector<std::string>& seeds, int inputs, double seconds,
                        void (*target)(std::span<const std::byte>)) {
  const auto start = std::chrono::steady_clock::now();
  const auto goes_on = [&](int done) {
    const std::chrono::duration<double> gone = std::chrono::steady_clock::now() - start;
    return done < inputs || gone.count() < seconds;
  };
  Draws draws{1};
  for (int i = 0; goes_on(i); ++i) {
    const std::string text = changed(seeds[draws.below(seeds.size())], draws);
    // In a block of its own size, so that a sanitizer sees a read beyond the end.
    const std::vector<std::byte> exact(
        reinterpret_cast<const std::byte*>(text.data()),
        reinterpret_cast<const std::byte*>(text.data()) + text.size());
    ASSERT_NO_THROW(target(exact)) << "input " << i;
  }
}

}  // namespace ingot::testing
