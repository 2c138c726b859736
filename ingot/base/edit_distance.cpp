#include "ingot/base/edit_distance.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace ingot {
namespace {

std::string_view last_part(std::string_view path) {
  const size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? path : path.substr(dot + 1);
}

template <class Distance>
std::string nearest(std::span<const std::string> words, const Distance& distance) {
  std::string best;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const std::string& word : words) {
    if (const int64_t d = distance(word); d < least) {
      least = d;
      best = word;
    }
  }
  return best;
}

}  // namespace

int64_t edit_distance(std::string_view a, std::string_view b) {
  const size_t width = b.size() + 1;
  std::vector<int64_t> d((a.size() + 1) * width);
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      int64_t& here = d[i * width + j];
      if (i == 0 || j == 0) {
        here = static_cast<int64_t>(i + j);
        continue;
      }
      const int64_t replace = d[(i - 1) * width + j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      here = std::min({d[(i - 1) * width + j] + 1, d[i * width + j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        here = std::min(here, d[(i - 2) * width + j - 2] + 1);
      }
    }
  }
  return d.back();
}

std::string nearest_word(std::string_view word, std::span<const std::string> words) {
  return nearest(words, [&](const std::string& other) { return edit_distance(word, other); });
}

std::string nearest_path(std::string_view path, std::span<const std::string> paths) {
  return nearest(paths, [&](const std::string& other) {
    const int64_t whole = 2 * edit_distance(path, other);
    const int64_t moved = 2 * edit_distance(last_part(path), last_part(other)) + 1;
    return std::min(whole, moved);
  });
}

}  // namespace ingot
