#pragma once

#include <string>
#include <vector>

#include "ingot/base/describe.h"

namespace ingot {

// One key whose values differ between two configurations, each in TOML's spelling, or "not set", or
// "absent" where that configuration has no such key.
struct Difference {
  std::string path;
  std::string a;
  std::string b;

  friend bool operator==(const Difference&, const Difference&) = default;
};

// The differing keys in the order of `a`, then those that only `b` has.
std::vector<Difference> diff(const Fields& a, const Fields& b);

template <class Config>
std::vector<Difference> diff_configs(const Config& a, const Config& b) {
  Config a_copy = a;
  Config b_copy = b;
  return diff(fields_of(a_copy), fields_of(b_copy));
}

}  // namespace ingot
