#include "ingot/base/nearest.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace ingot {

int64_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<int64_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    int64_t diagonal = row[0];
    row[0] = static_cast<int64_t>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int64_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({substituted, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

std::string nearest_hint(std::string_view name, const std::vector<std::string>& candidates) {
  const std::string* best = nullptr;
  int64_t least = std::max<int64_t>(1, static_cast<int64_t>(name.size()) / 3) + 1;
  for (const std::string& candidate : candidates) {
    const int64_t distance = edit_distance(name, candidate);
    if (distance < least) {
      least = distance;
      best = &candidate;
    }
  }
  return best == nullptr ? "" : "; did you mean '" + *best + "'?";
}

}  // namespace ingot
