#include "ingot/base/config_diff.h"

namespace ingot {

std::vector<Difference> diff(const Fields& a, const Fields& b) {
  std::vector<Difference> out;
  for (const Field& field : a.all()) {
    const Field* other = b.find(field.path);
    const std::string left = text_of(field.get());
    const std::string right = other == nullptr ? "absent" : text_of(other->get());
    if (left != right) {
      out.push_back({field.path, left, right});
    }
  }
  for (const Field& field : b.all()) {
    if (a.find(field.path) == nullptr) {
      out.push_back({field.path, "absent", text_of(field.get())});
    }
  }
  return out;
}

}  // namespace ingot
