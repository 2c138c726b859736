#include "ingot/nn/embedding.h"

#include "ingot/autograd/record.h"
#include "ingot/nn/linear.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/embedding.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/factories.h"

namespace ingot::nn {

Embedding::Embedding(int64_t vocabulary, int64_t width, DType dtype, Device device, int64_t padding)
    : weight(parameter({vocabulary, width}, dtype, device)), padding_(padding) {}

Tensor Embedding::operator()(const Tensor& ids) const {
  Tensor rows = embedding(weight, ids);
  if (padding_ < 0 || !needs_grad(rows)) {
    return rows;
  }
  const Tensor is_padding =
      equal(ids, full(Shape{}, static_cast<double>(padding_), ids.dtype(), ids.device()));
  return where(unsqueeze(is_padding, -1), detach(rows), rows);
}

void Embedding::visit(Visitor& v) { v("weight", weight, Role::embedding); }

}  // namespace ingot::nn
