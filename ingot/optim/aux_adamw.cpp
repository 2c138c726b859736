#include "ingot/optim/aux_adamw.h"

#include <algorithm>
#include <cmath>

namespace ingot {

double orthogonal_scale(const std::string& form, const Shape& shape) {
  const auto rows = static_cast<double>(shape.size(0));
  const auto columns = static_cast<double>(shape.size(1));
  if (form == "moonshot") {
    return 0.2 * std::sqrt(std::max(rows, columns));
  }
  return form == "keller" ? std::sqrt(std::max(1.0, rows / std::max(1.0, columns))) : 1;
}

}  // namespace ingot
