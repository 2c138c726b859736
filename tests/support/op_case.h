#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ingot/tensor/tensor.h"

namespace ingot::testing {

// Inputs of one example, made in f64 (or integers); the harness converts the floating-point ones.
struct Sample {
  std::string about;  // "odd sizes", "one row"
  TensorList inputs;
};

// A call that must fail, and what its message must contain.
struct Refusal {
  std::function<void()> call;
  std::string message;
};

// One operation, described once; check_op feeds every check from it:
//   oracle          run(f64 inputs) equals reference(f64 inputs) to f64_tolerance, where reference
//   is a plain loop or a
//                   composition of simpler operations
//   gradient        gradcheck in f64 along random directions; the second derivative too where
//   promised dtypes          f32, bf16 and f16 results are within tolerance of the f64 result of
//   the rounded inputs gradient dtypes f32 and bf16 gradients are within tolerance of the f64
//   gradients non-contiguous  inputs given as transposed views give the same bits as dense ones
//   empty           samples may include sizes of 0
//   determinism     two runs give the same bits, forward and backward
//   meta            shapes and dtypes on the meta device equal the real ones
//   errors          every Refusal throws an Error whose message contains its text
struct OpCase {
  std::string name;
  std::function<TensorList(const TensorList&)> run;
  std::vector<Sample> samples;
  std::function<TensorList(const TensorList&)>
      reference;  // may be empty where no simpler form exists
  std::vector<Refusal> refusals;
  bool differentiable = true;
  bool twice = false;  // second derivative promised
  std::vector<DType> dtypes = {DType::f32, DType::bf16, DType::f16};
  double f64_tolerance = 1e-12;  // |got − expected| ≤ tolerance · max(1, max |expected|)
  double f32_tolerance = 2e-6;
  double bf16_tolerance = 1.6e-2;  // two units in the last place of bf16 (2⁻⁷ each)
  double f16_tolerance = 2e-3;
  double gradient_tolerance = 1e-7;
  bool strided_inputs = true;  // also run with inputs as transposed views
};

// Runs all checks; failures name the operation, the check and the sample.
void check_op(const OpCase& op);

// Largest |a − b| / max(1, max |b|) over all elements, both converted to f64; infinite if shapes
// differ.
double difference(const Tensor& a, const Tensor& b);
// Whether two tensors have equal shape, dtype and bytes.
bool same_bits(const Tensor& a, const Tensor& b);
// Normal values in f64 from a seed.
Tensor random_tensor(const Shape& shape, uint64_t seed, double deviation = 1);
// Values in [0.5, 2) in f32, laid out densely (kind 0), transposed (1) or with gaps (2).
Tensor random_layout(const Shape& shape, uint64_t seed, uint32_t kind);
// Expects that `call` throws an Error whose message contains `text`.
void expect_error(const std::function<void()>& call, const std::string& text);

}  // namespace ingot::testing
