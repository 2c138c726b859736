#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "ingot/base/files.h"
#include "tests/fuzz/targets.h"
#include "tests/support/paths.h"

// Runs a target over its seeds with a few changes each: the same inputs on every machine.
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

// The files of a target below tests/fuzz/seeds.
inline std::vector<std::string> seeds_of(std::string_view target) {
  std::vector<std::string> out;
  for (const std::string& name : list_folder(fuzz_seeds() / target)) {
    out.push_back(read_file(fuzz_seeds() / target / name));
  }
  return out;
}

// The seeds as they are, and then so many changed ones, and more until so many seconds have gone:
// the fast suite asks for a number, the slow one for a minute.
inline void run_changed(const FuzzTarget& target, int inputs, double seconds) {
  const std::vector<std::string> seeds = seeds_of(target.name);
  ASSERT_FALSE(seeds.empty());
  const auto start = std::chrono::steady_clock::now();
  const auto goes_on = [&](int done) {
    const std::chrono::duration<double> gone = std::chrono::steady_clock::now() - start;
    return done < inputs || gone.count() < seconds;
  };
  Draws draws{1};
  const auto as_they_are = static_cast<int>(seeds.size());
  for (int i = 0; goes_on(i - as_they_are); ++i) {
    const std::string text = i < as_they_are ? seeds[static_cast<size_t>(i)]
                                             : changed(seeds[draws.below(seeds.size())], draws);
    // In a block of its own size, so that a sanitizer sees a read beyond the end.
    const std::vector<std::byte> exact(
        reinterpret_cast<const std::byte*>(text.data()),
        reinterpret_cast<const std::byte*>(text.data()) + text.size());
    ASSERT_NO_THROW(target.run(exact)) << "input " << i;
  }
}

inline std::string fuzz_target_name(const ::testing::TestParamInfo<FuzzTarget>& info) {
  return std::string(info.param.name);
}

}  // namespace ingot::testing
