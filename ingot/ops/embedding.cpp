#include "ingot/ops/embedding.h"

#include "ingot/autograd/record.h"
#include "ingot/device/on_device.h"
#include "ingot/kernels/embedding.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"

namespace ingot {
namespace {

void check_ids(const Tensor& ids, int64_t vocabulary) {
  if (ids.device().kind == DeviceKind::meta) {
    return;
  }
  const auto values = ids.values<int64_t>();
  for (size_t n = 0; n < values.size(); ++n) {
    check(values[n] >= 0 && values[n] < vocabulary, ErrorKind::argument, "embedding: id ",
          values[n], " at position ", n, " is outside the vocabulary of ", vocabulary);
  }
}

// Σ_n dy[n] into row ids[n]. The gradient is linear in dy, with an embedding as its own gradient.
Tensor scattered_rows(const Tensor& ids, const Tensor& dy, const Shape& table) {
  Tensor dweight = zeros(table, accumulator(dy.dtype()), dy.device());
  const Tensor rows = contiguous(dy);
  on_device(dy.device(), [&](const auto& on) {
    kernels::embedding_backward(on, ids.view(), rows.view(), dweight.fresh_view());
  });
  return record("embedding backward", dweight,
                wrt(dy, [ids, shape = dy.shape(), dtype = dy.dtype()](const Tensor& dtable) {
                  return reshape(embedding(cast(dtable, dtype), ids), shape);
                }));
}

}  // namespace

Tensor embedding(const Tensor& weight, const Tensor& ids) {
  check(weight.rank() == 2, ErrorKind::shape, "embedding: weight must be [V, D]: got ",
        weight.shape());
  check(ids.dtype() == DType::i64 || ids.dtype() == DType::i32, ErrorKind::dtype,
        "embedding: ids must be i64 or i32: got ", ids.dtype());
  const Tensor index = dense(converted(ids, DType::i64));
  check_ids(index, weight.size(0));
  const Tensor table = contiguous(weight);
  Shape shape = ids.shape();
  shape.push_back(weight.size(1));
  Tensor y = empty(shape, weight.dtype(), weight.device());
  on_device(weight.device(), [&](const auto& on) {
    kernels::embedding(on, table.view(), index.view(), y.fresh_view());
  });
  return record("embedding", y, wrt(table, [index, shape = weight.shape()](const Tensor& dy) {
                  return scattered_rows(index, dy, shape);
                }));
}

}  // namespace ingot
