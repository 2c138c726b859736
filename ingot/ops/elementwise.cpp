#include "ingot/ops/elementwise.h"

#include <cmath>

#include "ingot/autograd/record.h"
#include "ingot/device/on_device.h"
#include "ingot/kernels/elementwise.h"
#include "ingot/ops/operands.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

using kernels::Binary;

void check_numbers(const char* op, Binary f, DType dtype) {
  const bool integer = dtype == DType::i32 || dtype == DType::i64;
  check(is_float(dtype) || (integer && f != Binary::div), ErrorKind::dtype, op, ": takes ",
        f == Binary::div ? "floating-point tensors" : "floating-point, i32 and i64 tensors",
        ": got ", dtype, "; cast it");
}

// f(a, b) with broadcasting, without history.
Tensor computed(const char* op, Binary f, const Tensor& a, const Tensor& b) {
  check_operands(op, a, b);
  check_numbers(op, f, a.dtype());
  const Shape shape = broadcast(a.shape(), b.shape(), op);
  Tensor y = empty(shape, a.dtype(), a.device());
  on_device(a.device(), [&](const auto& on) {
    kernels::binary(on, f, spread(a, shape), spread(b, shape), y.fresh_view());
  });
  return y;
}

void check_constant(const char* op, Binary f, const Tensor& x, double value) {
  check_numbers(op, f, x.dtype());
  check(is_float(x.dtype()) || (value == std::trunc(value) && std::abs(value) < 0x1p53),
        ErrorKind::dtype, op, ": ", value, " is no ", x.dtype(), "; cast the tensor first");
}

Tensor computed(const char* op, Binary f, const Tensor& a, double b) {
  check_constant(op, f, a, b);
  Tensor y = empty(a.shape(), a.dtype(), a.device());
  on_device(a.device(),
            [&](const auto& on) { kernels::binary(on, f, a.view(), b, y.fresh_view()); });
  return y;
}

Tensor computed(const char* op, Binary f, double a, const Tensor& b) {
  check_constant(op, f, b, a);
  Tensor y = empty(b.shape(), b.dtype(), b.device());
  on_device(b.device(),
            [&](const auto& on) { kernels::binary(on, f, a, b.view(), y.fresh_view()); });
  return y;
}

// maximum and minimum: the gradient goes to the operand that was taken, halved between equals.
Tensor taken(const char* op, Binary f, Binary share, const Tensor& a, const Tensor& b) {
  const auto part = [op, share](const Tensor& p, const Tensor& q, const Tensor& dy) {
    return sum_to(dy * computed(op, share, p, q), p.shape());
  };
  return record(
      op, computed(op, f, a, b),
      wrt(a, [part, a = saved(a), b = saved(b)](const Tensor& dy) { return part(a(), b(), dy); }),
      wrt(b, [part, a = saved(a), b = saved(b)](const Tensor& dy) { return part(b(), a(), dy); }));
}

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) {
  return record("add", computed("add", Binary::add, a, b),
                wrt(a, [shape = a.shape()](const Tensor& dy) { return sum_to(dy, shape); }),
                wrt(b, [shape = b.shape()](const Tensor& dy) { return sum_to(dy, shape); }));
}

Tensor sub(const Tensor& a, const Tensor& b) {
  return record("sub", computed("sub", Binary::sub, a, b),
                wrt(a, [shape = a.shape()](const Tensor& dy) { return sum_to(dy, shape); }),
                wrt(b, [shape = b.shape()](const Tensor& dy) { return -sum_to(dy, shape); }));
}

Tensor mul(const Tensor& a, const Tensor& b) {
  return record("mul", computed("mul", Binary::mul, a, b),
                wrt(a, [shape = a.shape(),
                        b = saved(b)](const Tensor& dy) { return sum_to(dy * b(), shape); }),
                wrt(b, [shape = b.shape(), a = saved(a)](const Tensor& dy) {
                  return sum_to(dy * a(), shape);
                }));
}

Tensor div(const Tensor& a, const Tensor& b) {
  return record("div", computed("div", Binary::div, a, b),
                wrt(a, [shape = a.shape(),
                        b = saved(b)](const Tensor& dy) { return sum_to(dy / b(), shape); }),
                wrt(b, [shape = b.shape(), b = saved(b)](const Tensor& dy, const Tensor& y) {
                  return -sum_to(dy * y / b(), shape);
                }));
}

Tensor maximum(const Tensor& a, const Tensor& b) {
  return taken("maximum", Binary::maximum, Binary::share_of_maximum, a, b);
}
Tensor minimum(const Tensor& a, const Tensor& b) {
  return taken("minimum", Binary::minimum, Binary::share_of_minimum, a, b);
}

Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }

Tensor operator+(const Tensor& a, double b) {
  return record("add", computed("add", Binary::add, a, b),
                wrt(a, [](const Tensor& dy) { return dy; }));
}
Tensor operator-(const Tensor& a, double b) {
  return record("sub", computed("sub", Binary::sub, a, b),
                wrt(a, [](const Tensor& dy) { return dy; }));
}
Tensor operator*(const Tensor& a, double b) {
  return record("mul", computed("mul", Binary::mul, a, b),
                wrt(a, [b](const Tensor& dy) { return dy * b; }));
}
Tensor operator/(const Tensor& a, double b) {
  return record("div", computed("div", Binary::div, a, b),
                wrt(a, [b](const Tensor& dy) { return dy / b; }));
}
Tensor operator+(double a, const Tensor& b) { return b + a; }
Tensor operator-(double a, const Tensor& b) {
  return record("sub", computed("sub", Binary::sub, a, b),
                wrt(b, [](const Tensor& dy) { return -dy; }));
}
Tensor operator*(double a, const Tensor& b) { return b * a; }
Tensor operator/(double a, const Tensor& b) {
  return record(
      "div", computed("div", Binary::div, a, b),
      wrt(b, [b = saved(b)](const Tensor& dy, const Tensor& y) { return -(dy * y / b()); }));
}
Tensor operator-(const Tensor& x) { return x * -1.0; }

}  // namespace ingot
