#include "ingot/ops/matmul.h"

#include "ingot/autograd/record.h"
#include "ingot/device/flops.h"
#include "ingot/device/on_device.h"
#include "ingot/kernels/matmul.h"
#include "ingot/ops/operands.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"

namespace ingot {
namespace {

void check_inputs(const Tensor& a, const Tensor& b) {
  check(is_float(a.dtype()), ErrorKind::dtype, "matmul: takes floating-point tensors: got ",
        a.dtype());
  check_operands("matmul", a, b);
  check(a.rank() >= 2 && b.rank() >= 2, ErrorKind::shape,
        "matmul: takes at least two dimensions: a is ", a.shape(), ", b is ", b.shape());
  check(a.size(-1) == b.size(-2), ErrorKind::shape, "matmul: inner dimensions differ: a is ",
        a.shape(), ", b is ", b.shape());
}

Shape leading(const Tensor& x) {
  Shape shape = x.shape();
  shape.erase(x.rank() - 1);
  shape.erase(x.rank() - 2);
  return shape;
}

Shape joined(Shape lead, int64_t rows, int64_t columns) {
  lead.push_back(rows);
  lead.push_back(columns);
  return lead;
}

// x under the leading dimensions `lead`, as one batch of matrices that the kernel reads: a view
// where the layout allows it.
Tensor as_batch(const Tensor& x, const Shape& lead) {
  const int64_t rows = x.size(-2);
  const int64_t columns = x.size(-1);
  const Tensor full = expanded(x, joined(lead, rows, columns));
  const Shape flat{lead.elements(), rows, columns};
  const Tensor batch = reshaped(can_reshape(full, flat) ? full : copy_of(full), flat);
  return kernels::matmul_reads(batch.shape(), batch.strides()) ? batch : copy_of(batch);
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) {
  check_inputs(a, b);
  const int64_t rows = a.size(-2);
  const int64_t columns = b.size(-1);
  const Shape lead = broadcast(leading(a), leading(b), "matmul");
  if (b.rank() == 2 && a.rank() > 2) {
    // One matrix for all: more rows instead of a batch, so that its gradient is a single product.
    const Shape flat{lead.elements() * rows, a.size(-1)};
    return reshape(matmul(reshape(a, flat), b), joined(lead, rows, columns));
  }
  Tensor y = empty(joined(lead, rows, columns), a.dtype(), a.device());
  const Tensor left = as_batch(a, lead);
  const Tensor right = as_batch(b, lead);
  count_flops(2 * lead.elements() * rows * columns * a.size(-1));
  on_device(a.device(), [&](const auto& on) {
    Tensor flat = reshaped(y, {lead.elements(), rows, columns});
    kernels::matmul(on, left.view(), right.view(), flat.fresh_view());
  });
  return record("matmul", y,
                wrt(a, [shape = a.shape(), b = saved(b)](
                           const Tensor& dy) { return sum_to(matmul(dy, transpose(b())), shape); }),
                wrt(b, [shape = b.shape(), a = saved(a)](const Tensor& dy) {
                  return sum_to(matmul(transpose(a()), dy), shape);
                }));
}

}  // namespace ingot
