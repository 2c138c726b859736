#include "ingot/ops/embedding.h"

#include "ingot/autograd/record.h"
#include "ingot/device/on_device.h"
#include "ingot/kernels/index.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"

namespace ingot {
namespace {

void check_inputs(const Tensor& weight, const Tensor& ids) {
  check(is_float(weight.dtype()), ErrorKind::dtype,
        "embedding: takes a floating-point weight: got ", weight.dtype());
  check(ids.dtype() == DType::i64 || ids.dtype() == DType::i32, ErrorKind::dtype,
        "embedding: takes i64 or i32 ids: got ", ids.dtype());
  check(weight.rank() == 2, ErrorKind::shape, "embedding: takes a weight [V, D]: got ",
        weight.shape());
  check(weight.device() == ids.device(), ErrorKind::device,
        "embedding: devices differ: weight is on ", weight.device(), ", ids are on ", ids.device());
}

// The indices of element `flat` of a dense tensor.
Shape position_of(int64_t flat, const Shape& shape) {
  Shape position = shape;
  for (int64_t i = shape.rank() - 1; i >= 0; --i) {
    position[i] = flat % shape[i];
    flat /= shape[i];
  }
  return position;
}

void check_range(const Tensor& ids, int64_t rows) {
  int64_t bad = -1;
  on_device(ids.device(),
            [&](const auto& on) { bad = kernels::first_outside(on, ids.view(), rows); });
  if (bad >= 0) {
    const Tensor flat = reshaped(ids, {ids.elements()});
    throw Error(ErrorKind::argument,
                concat("embedding: id out of range: ids", position_of(bad, ids.shape()), " is ",
                       static_cast<int64_t>(sliced(flat, 0, bad, bad + 1).item()), ", weight has ",
                       rows, " rows"));
  }
}

// dW += Σ_n e(ids_n) dy_nᵀ, in place: [V, D]; ids flat.
void add_rows(const Tensor& dy, const Tensor& ids, Tensor& dw) {
  const int64_t features = dy.size(-1);
  const Tensor source = reshaped(dense(dy), {1, ids.elements(), features});
  on_device(dy.device(), [&](const auto& on) {
    kernels::select_add(on, ids.view(), source.view(),
                        reshaped(dw, {1, dw.size(0), features}).fresh_view());
  });
}

// dW = Σ_n e(ids_n) dy_nᵀ: [V, D], in accumulator(dtype); ids flat.
Tensor rows_added(const Tensor& dy, const Tensor& ids, int64_t rows) {
  Tensor dw = zeros({rows, dy.size(-1)}, accumulator(dy.dtype()), dy.device());
  add_rows(dy, ids, dw);
  return record("embedding backward", dw,
                wrt(dy, [ids, shape = dy.shape(), dtype = dy.dtype()](const Tensor& ddw) {
                  return cast(reshape(embedding(ddw, ids), shape), dtype);
                }));
}

}  // namespace

Tensor embedding(const Tensor& weight, const Tensor& input) {
  check_inputs(weight, input);
  const Tensor ids = dense(input);
  check_range(ids, weight.size(0));
  const int64_t count = ids.elements();
  const int64_t features = weight.size(1);
  const Tensor flat = reshaped(ids, {count});
  const Tensor table = reshaped(dense(weight), {1, weight.size(0), features});
  Shape shape = ids.shape();
  shape.push_back(features);
  Tensor y = empty(shape, weight.dtype(), weight.device());
  on_device(weight.device(), [&](const auto& on) {
    kernels::select(on, table.view(), flat.view(), reshaped(y, {1, count, features}).fresh_view());
  });
  Formula formula = wrt(weight, [ids = saved(flat), rows = weight.size(0)](const Tensor& dy) {
    return rows_added(dy, ids(), rows);
  });
  formula.add_to = [ids = saved(flat)](const TensorList& dys, Tensor& sum) {
    add_rows(dys[0], ids(), sum);
  };
  return record("embedding", y, std::move(formula));
}

}  // namespace ingot
