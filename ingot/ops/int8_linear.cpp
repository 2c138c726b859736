#include "ingot/ops/int8_linear.h"

#include <utility>

#include "ingot/autograd/record.h"
#include "ingot/device/on_device.h"
#include "ingot/kernels/int8.h"
#include "ingot/ops/coded_linear.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"

namespace ingot {
namespace {

constexpr int64_t most_rows = 16;  // beyond them decoding the weight once is cheaper

void check_inputs(const Tensor& x, const Int8Weight& w, const Tensor& bias) {
  check(is_float(x.dtype()), ErrorKind::dtype, "int8_linear: takes floating-point tensors: got ",
        x.dtype());
  check(x.rank() >= 1 && x.size(-1) == w.codes.size(1), ErrorKind::shape,
        "int8_linear: inner dimensions differ: x is ", x.shape(), ", codes are ", w.codes.shape());
  check(x.device() == w.codes.device(), ErrorKind::device, "int8_linear: devices differ: x is on ",
        x.device(), ", codes are on ", w.codes.device());
  check(!bias.defined() || (bias.shape() == Shape{w.codes.size(0)} && bias.dtype() == x.dtype()),
        ErrorKind::shape,
        "int8_linear: bias has not one element a row of weight in the type of x: ", "bias is ",
        bias.defined() ? bias.shape() : Shape(), ", codes are ", w.codes.shape());
}

class Int8Rows : public CodedWeight {
 public:
  explicit Int8Rows(Int8Weight weight) : weight_(std::move(weight)) {}

  int64_t rows() const override { return weight_.codes.size(0); }
  int64_t columns() const override { return weight_.codes.size(1); }
  int64_t bytes() const override { return weight_.codes.bytes() + weight_.scales.bytes(); }
  Device device() const override { return weight_.codes.device(); }
  Tensor decoded(int64_t begin, int64_t end, DType dtype) const override {
    return dense_weight(
        {sliced(weight_.codes, 0, begin, end), sliced(weight_.scales, 0, begin, end)}, dtype);
  }

  // Reads each code from memory once.
  Tensor few_rows(const Tensor& x, const Tensor& bias) const override {
    if (x.size(0) > most_rows || x.dtype() == DType::f64) {
      return {};
    }
    Tensor y = empty({x.size(0), rows()}, x.dtype(), x.device());
    on_device(x.device(), [&](const auto& on) {
      kernels::int8_few_rows(on, x.view(), weight_.codes.view(), weight_.scales.view(),
                             bias.defined() ? bias.view() : ConstView(), y.fresh_view());
    });
    return y;
  }

 private:
  Int8Weight weight_;
};

}  // namespace

Int8Weight int8_weight(const Tensor& weight) {
  check(is_float(weight.dtype()), ErrorKind::dtype,
        "int8_weight: takes floating-point weights: got ", weight.dtype());
  check(weight.rank() == 2, ErrorKind::shape, "int8_weight: takes a matrix [Out, In]: got ",
        weight.shape());
  const bool wide = weight.dtype() == DType::f64;
  const Tensor from = dense(wide ? converted(detach(weight), DType::f32) : detach(weight));
  Int8Weight out{
      empty(weight.shape(), DType::i8, weight.device()),
      empty({weight.size(0), kernels::int8_groups(weight.size(1))}, DType::f32, weight.device())};
  on_device(weight.device(), [&](const auto& on) {
    kernels::int8_encode(on, from.view(), out.codes.fresh_view(), out.scales.fresh_view());
  });
  return out;
}

Tensor dense_weight(const Int8Weight& weight, DType dtype) {
  check(is_float(dtype), ErrorKind::dtype, "dense_weight: takes a floating-point type: got ",
        dtype);
  Tensor out = empty(weight.codes.shape(), dtype, weight.codes.device());
  on_device(out.device(), [&](const auto& on) {
    kernels::int8_decode(on, weight.codes.view(), weight.scales.view(), out.fresh_view());
  });
  return out;
}

std::shared_ptr<const CodedWeight> coded_rows(const Int8Weight& weight) {
  return std::make_shared<Int8Rows>(weight);
}

Tensor int8_linear(const Tensor& x, const Int8Weight& weight, const Tensor& bias) {
  check_inputs(x, weight, bias);
  return coded_linear(x, coded_rows(weight), bias);
}

}  // namespace ingot
