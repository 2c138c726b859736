#include "tests/support/op_case.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/gradcheck.h"
#include "ingot/autograd/record.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"

namespace ingot::testing {
namespace {

TensorList converted_to(const TensorList& xs, DType dtype) {
  TensorList out;
  for (const Tensor& x : xs) {
    out.push_back(x.defined() && is_float(x.dtype()) ? converted(x, dtype) : x);
  }
  return out;
}

// The same values laid out with the last two dimensions swapped in memory.
Tensor as_strided_copy(const Tensor& x) {
  return x.defined() && x.rank() >= 2 ? transposed(dense(transposed(x, -1, -2)), -1, -2) : x;
}

// Gradients of Σ_i ⟨w_i, y_i⟩ with fixed random w, for every floating-point input.
TensorList gradients_of(const OpCase& op, const TensorList& xs) {
  TensorList leaves = xs;
  TensorList wanted;
  for (Tensor& x : leaves) {
    if (x.defined() && is_float(x.dtype())) {
      x = detach(x);
      wanted.push_back(require_grad(x));
    }
  }
  const TensorList ys = op.run(leaves);
  TensorList recorded;
  TensorList dys;
  for (size_t i = 0; i < ys.size(); ++i) {
    if (ys[i].node() != nullptr) {
      recorded.push_back(ys[i]);
      dys.push_back(converted(random_tensor(ys[i].shape(), 77 + i), ys[i].dtype()));
    }
  }
  return gradients(recorded, wanted, dys);
}

double tolerance_for(const OpCase& op, DType dtype) {
  switch (dtype) {
    case DType::f32: return op.f32_tolerance;
    case DType::bf16: return op.bf16_tolerance;
    case DType::f16: return op.f16_tolerance;
    default: return op.f64_tolerance;
  }
}

void check_values(const char* what, const TensorList& got, const TensorList& expected,
                  double tolerance) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    if (!got[i].defined() || !expected[i].defined()) {
      EXPECT_EQ(got[i].defined(), expected[i].defined()) << what << ", entry " << i;
      continue;
    }
    EXPECT_LE(difference(got[i], expected[i]), tolerance) << what << ", entry " << i;
  }
}

void check_same_bits(const char* what, const TensorList& a, const TensorList& b) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_TRUE(a[i].defined() == b[i].defined() && (!a[i].defined() || same_bits(a[i], b[i])))
        << what << ", entry " << i;
  }
}

void check_dtypes(const OpCase& op, const Sample& sample) {
  for (const DType dtype : op.dtypes) {
    SCOPED_TRACE(name(dtype));
    const TensorList rounded = converted_to(sample.inputs, dtype);
    const TensorList wide = converted_to(rounded, DType::f64);
    check_values("dtype", op.run(rounded), op.run(wide), tolerance_for(op, dtype));
    if (op.differentiable) {
      check_values("gradient dtype", gradients_of(op, rounded), gradients_of(op, wide),
                   4 * tolerance_for(op, dtype));
    }
  }
}

void check_layouts(const OpCase& op, const Sample& sample) {
  TensorList strided;
  for (const Tensor& x : sample.inputs) {
    strided.push_back(as_strided_copy(x));
  }
  check_values("non-contiguous", op.run(strided), op.run(sample.inputs), 1e-14);
  if (op.differentiable) {
    check_values("non-contiguous gradient", gradients_of(op, strided),
                 gradients_of(op, sample.inputs), 1e-13);
  }
}

void check_meta(const OpCase& op, const Sample& sample) {
  TensorList shapes;
  for (const Tensor& x : sample.inputs) {
    shapes.push_back(x.defined() ? moved(x, meta_device) : x);
  }
  const TensorList expected = op.run(sample.inputs);
  const TensorList got = op.run(shapes);
  ASSERT_EQ(got.size(), expected.size()) << "meta";
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].shape(), expected[i].shape()) << "meta";
    EXPECT_EQ(got[i].dtype(), expected[i].dtype()) << "meta";
    EXPECT_EQ(got[i].device(), meta_device) << "meta";
  }
}

void check_sample(const OpCase& op, const Sample& sample) {
  const TensorList ys = op.run(sample.inputs);
  if (op.reference) {
    check_values("oracle", ys, op.reference(sample.inputs), op.f64_tolerance);
  }
  check_same_bits("determinism", op.run(sample.inputs), ys);
  check_dtypes(op, sample);
  if (op.strided_inputs) {
    check_layouts(op, sample);
  }
  check_meta(op, sample);
  if (op.differentiable) {
    GradcheckOptions options;
    options.tolerance = op.gradient_tolerance;
    EXPECT_EQ(gradcheck(op.run, sample.inputs, options), "") << "gradient";
    check_same_bits("gradient determinism", gradients_of(op, sample.inputs),
                    gradients_of(op, sample.inputs));
    if (op.twice) {
      options.tolerance = 1e-6;
      EXPECT_EQ(gradgradcheck(op.run, sample.inputs, options), "") << "second derivative";
    }
  }
}

}  // namespace

void check_op(const OpCase& op) {
  for (const Sample& sample : op.samples) {
    SCOPED_TRACE(op.name + ": " + sample.about);
    check_sample(op, sample);
  }
  for (const Refusal& refusal : op.refusals) {
    SCOPED_TRACE(op.name + ": errors");
    expect_error(refusal.call, refusal.message);
  }
}

double difference(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape()) {
    return std::numeric_limits<double>::infinity();
  }
  const Tensor wide_a = dense(converted(a, DType::f64));
  const Tensor wide_b = dense(converted(b, DType::f64));
  const auto va = wide_a.values<double>();
  const auto vb = wide_b.values<double>();
  double most = 0;
  double scale = 1;
  for (size_t i = 0; i < va.size(); ++i) {
    if (va[i] == vb[i] || (std::isnan(va[i]) && std::isnan(vb[i]))) {
      continue;
    }
    const double gap = std::abs(va[i] - vb[i]);
    most = std::isnan(gap) ? std::numeric_limits<double>::infinity() : std::max(most, gap);
    scale = std::isfinite(vb[i]) ? std::max(scale, std::abs(vb[i])) : scale;
  }
  return most / scale;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) {
    return false;
  }
  const Tensor da = dense(a);
  const Tensor db = dense(b);
  return da.bytes() == 0 ||
         std::memcmp(da.view().data, db.view().data, static_cast<size_t>(da.bytes())) == 0;
}

Tensor random_layout(const Shape& shape, uint64_t seed, uint32_t kind) {
  const auto values = [&](const Shape& s) { return uniform(s, 0.5, 2, {seed, 1, 0}, DType::f32); };
  if (shape.rank() >= 2 && kind == 1) {
    Shape swapped = shape;
    std::swap(swapped[0], swapped[shape.rank() - 1]);
    return transposed(values(swapped), 0, -1);
  }
  if (shape.rank() >= 1 && kind == 2) {
    Shape wider = shape;
    wider[shape.rank() - 1] = 2 * shape.size(-1) + 1;
    return sliced(values(wider), -1, 1, wider.size(-1), 2);
  }
  return values(shape);
}

Tensor random_tensor(const Shape& shape, uint64_t seed, double deviation) {
  return normal(shape, 0, deviation, {seed, 0, 0}, DType::f64);
}

void expect_error(const std::function<void()>& call, const std::string& text) {
  try {
    call();
    ADD_FAILURE() << "no error; expected one containing: " << text;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos)
        << "message: " << error.what() << "\nexpected to contain: " << text;
  }
}

}  // namespace ingot::testing
