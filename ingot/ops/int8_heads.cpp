#include "ingot/ops/int8_heads.h"

#include "ingot/autograd/record.h"
#include "ingot/device/on_device.h"
#include "ingot/kernels/int8.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"

namespace ingot {
namespace {

Shape rows_of(const Shape& heads) { return {heads[0] * heads[1] * heads[2], heads[3]}; }

}  // namespace

Int8Heads int8_heads(const Tensor& given) {
  check(is_float(given.dtype()) && given.dtype() != DType::f64, ErrorKind::dtype,
        "int8_heads: takes f32, bf16 or f16: got ", given.dtype());
  check(given.rank() == 4, ErrorKind::shape, "int8_heads: takes [B, T, K, C]: got ", given.shape());
  const Tensor x = dense(detach(given));
  Int8Heads out{empty(x.shape(), DType::i8, x.device()),
                empty({x.size(0), x.size(1), x.size(2), 1}, DType::f32, x.device())};
  Tensor codes = reshaped(out.codes, rows_of(x.shape()));
  Tensor scales = reshaped(out.scales, {codes.size(0)});
  const Tensor rows = reshaped(x, codes.shape());
  on_device(x.device(), [&](const auto& on) {
    kernels::int8_encode_rows(on, rows.view(), codes.fresh_view(), scales.fresh_view());
  });
  return out;
}

Tensor dense_heads(const Int8Heads& heads, DType dtype) {
  check(is_float(dtype), ErrorKind::dtype, "dense_heads: takes a floating-point type: got ", dtype);
  const Tensor codes = reshaped(heads.codes, rows_of(heads.codes.shape()));
  const Tensor scales = reshaped(heads.scales, {codes.size(0)});
  Tensor out = empty(codes.shape(), dtype, codes.device());
  on_device(out.device(), [&](const auto& on) {
    kernels::int8_decode_rows(on, codes.view(), scales.view(), out.fresh_view());
  });
  return reshaped(out, heads.codes.shape());
}

}  // namespace ingot
