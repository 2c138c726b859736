#include "ingot/ops/counted_places.h"

#include <vector>

#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot {

Tensor counted_places(const Tensor& labels, int64_t ignored) {
  if (labels.device().kind == DeviceKind::meta) {
    return arange(labels.elements(), DType::i64, labels.device());
  }
  const Tensor flat = dense(labels);
  const auto values = flat.values<int64_t>();
  std::vector<int64_t> places;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] != ignored) {
      places.push_back(static_cast<int64_t>(i));
    }
  }
  return tensor_of(places, {static_cast<int64_t>(places.size())});
}

}  // namespace ingot
