#include "ingot/ops/rope.h"

#include "ingot/autograd/record.h"
#include "ingot/device/on_device.h"
#include "ingot/ops/token_rows.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

void check_table(const char* which, const Tensor& x, const Tensor& table) {
  const bool batched = table.rank() == 3;
  check(batched || table.rank() == 2, ErrorKind::shape, "rope: ", which,
        " takes shape [T, n/2] or [B, T, n/2]: got ", table.shape());
  check(table.size(-2) == x.size(1) && (!batched || table.size(0) == x.size(0)), ErrorKind::shape,
        "rope: ", which, " is for other tokens: x is ", x.shape(), ", ", which, " is ",
        table.shape());
  check(2 * table.size(-1) <= x.size(3), ErrorKind::shape, "rope: ", which,
        " rotates more features than a head has: rotates ", 2 * table.size(-1), ", C is ",
        x.size(3));
  check(table.dtype() == accumulator(x.dtype()), ErrorKind::dtype, "rope: ", which,
        " has the wrong type: x is ", x.dtype(), ", ", which, " is ", table.dtype(), "; make it ",
        accumulator(x.dtype()));
}

Tensor turned(const Tensor& input, const Tensor& cos, const Tensor& sin, RopeLayout layout,
              kernels::Turn turn) {
  using kernels::Turn;
  const Tensor x = token_rows(input);
  Tensor y = empty(x.shape(), x.dtype(), x.device());
  on_device(x.device(), [&](const auto& on) {
    kernels::rope(on, x.view(), cos.view(), sin.view(), layout, turn, y.fresh_view());
  });
  const Turn back = turn == Turn::forward ? Turn::backward : Turn::forward;
  return record("rope", y,
                wrt(x, [cos = saved(cos), sin = saved(sin), layout, back](const Tensor& dy) {
                  return turned(dy, cos(), sin(), layout, back);
                }));
}

}  // namespace

Tensor rope(const Tensor& x, const Tensor& cos, const Tensor& sin, RopeLayout layout) {
  check(is_float(x.dtype()), ErrorKind::dtype, "rope: takes floating-point tensors: got ",
        x.dtype());
  check(x.rank() == 4, ErrorKind::shape, "rope: takes x of shape [B, T, H, C]: got ", x.shape());
  check_table("cos", x, cos);
  check_table("sin", x, sin);
  check(cos.shape() == sin.shape(), ErrorKind::shape, "rope: the tables differ: cos is ",
        cos.shape(), ", sin is ", sin.shape());
  return turned(x, dense(cos), dense(sin), layout, kernels::Turn::forward);
}

RopeTables rope_tables(const Tensor& positions, int64_t rotated, double base, DType dtype) {
  check(positions.dtype() == DType::i64, ErrorKind::dtype,
        "rope_tables: positions must be i64: got ", positions.dtype());
  check(positions.rank() == 1 || positions.rank() == 2, ErrorKind::shape,
        "rope_tables: takes positions of shape [T] or [B, T]: got ", positions.shape());
  check(rotated >= 0 && rotated % 2 == 0, ErrorKind::argument,
        "rope_tables: features are rotated in pairs: got ", rotated, "; give an even number");
  check(base > 0, ErrorKind::argument, "rope_tables: the base must be positive: got ", base);
  check(dtype == DType::f32 || dtype == DType::f64, ErrorKind::dtype,
        "rope_tables: tables are f32 or f64: got ", dtype);
  Shape shape = positions.shape();
  shape.push_back(rotated / 2);
  RopeTables out{empty(shape, dtype, positions.device()), empty(shape, dtype, positions.device())};
  const Tensor places = dense(positions);
  on_device(positions.device(), [&](const auto& on) {
    kernels::rope_tables(on, places.view(), base, out.cos.fresh_view(), out.sin.fresh_view());
  });
  return out;
}

}  // namespace ingot
