#include "ingot/quant/fake_quantize.h"

#include <gtest/gtest.h>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/record.h"
#include "ingot/quant/bitnet.h"
#include "ingot/quant/lsq.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"
#include "tests/support/message.h"
#include "tests/support/oracle.h"

namespace ingot::testing {
namespace {

Tensor leaf(const Oracle& oracle, const std::string& name, DType dtype) {
  Tensor x = copy_of(oracle.input(name, dtype));
  return require_grad(x);
}

void expect_fake_quantized(const Oracle& oracle, DType dtype) {
  const auto whole = [&](const char* key) { return static_cast<int64_t>(oracle.setting(key)); };
  const Tensor x = leaf(oracle, "x", dtype);
  const Tensor y = quant::fake_quantized(x, oracle.setting("scale"), whole("zero_point"),
                                         whole("qmin"), whole("qmax"));
  expect_entry(oracle, "y", y);
  backward(y, oracle.input("grad_y", dtype));
  expect_entry(oracle, "grad_x", grad(x));
}

void expect_lsq(const Oracle& oracle, DType dtype) {
  const auto qp = static_cast<int64_t>(oracle.setting("qp"));
  const Tensor v = leaf(oracle, "v", dtype);
  const Tensor step = leaf(oracle, "step", dtype);
  const Tensor y = quant::lsq(v, step, static_cast<int64_t>(oracle.setting("qn")), qp);
  expect_entry(oracle, "y", y);
  backward(y, oracle.input("grad_y", dtype));
  expect_entry(oracle, "grad_v", grad(v));
  expect_entry(oracle, "grad_step", grad(step));
  expect_entry(oracle, "initial_step", scalar(quant::lsq_first_step(v, qp), dtype));
}

void expect_bitnet(const Oracle& oracle, DType dtype) {
  const Tensor x = leaf(oracle, "x", dtype);
  const Tensor w = leaf(oracle, "W", dtype);
  const quant::Rounded weight = quant::ternary_weight(w);
  const quant::Rounded activations = quant::int8_activations(x);
  EXPECT_EQ(normwise_error(weight.codes, tensor_from(oracle.expected["weight_codes"])), 0);
  EXPECT_EQ(normwise_error(activations.codes, tensor_from(oracle.expected["activation_codes"])), 0);
  expect_entry(oracle, "weight_scale", weight.scale);
  expect_entry(
      oracle, "activation_scale",
      reshaped(activations.scale, tensor_from(oracle.expected["activation_scale"]).shape()));
  const Tensor y = quant::bitnet_linear(x, w);
  expect_entry(oracle, "y", y);
  backward(y, oracle.input("grad_y", dtype));
  expect_entry(oracle, "grad_x", grad(x));
  expect_entry(oracle, "grad_W", grad(w));
}

TEST(FakeQuantize, RoundsAndHasTheGradientsOfTheOracles) {
  int compared = 0;
  for (const auto& path : oracle_files("methods/quant")) {
    const Oracle oracle = read_oracle(path);
    SCOPED_TRACE(oracle.file);
    const auto is = [&](const char* prefix) { return oracle.method.starts_with(prefix); };
    const auto expect = is("fake_quantize") ? expect_fake_quantized
                        : is("lsq")         ? expect_lsq
                        : is("bitnet")      ? expect_bitnet
                                            : nullptr;
    if (expect != nullptr) {
      expect(oracle, DType::f64);
      expect(oracle, DType::f32);
      ++compared;
    }
  }
  EXPECT_GE(compared, 3);
}

TEST(FakeQuantize, HalvesGoToTheEvenNumber) {
  const Tensor x = tensor_of(std::vector<float>{-1.5F, -0.5F, 0.5F, 1.5F, 2.5F, 2.6F}, {6});
  const Tensor y = quant::nearest_integer(x);
  EXPECT_EQ(std::vector<float>(y.values<float>().begin(), y.values<float>().end()),
            (std::vector<float>{-2, 0, 0, 2, 2, 3}));
}

TEST(FakeQuantize, RefusesWhatIsNoGrid) {
  const Tensor x = zeros({2}, DType::f32);
  EXPECT_EQ(message_of(ErrorKind::argument, [&] { quant::fake_quantized(x, 0, 0, -8, 7); }),
            "fake_quantized: needs a scale above 0 and low below high: scale is 0, low -8, high 7");
  EXPECT_EQ(message_of(ErrorKind::dtype, [] { quant::nearest_integer(zeros({2}, DType::bf16)); }),
            "nearest_integer: takes f32 or f64: got bf16");
  EXPECT_EQ(message_of(ErrorKind::argument, [&] { quant::lsq(x, scalar(1, DType::f32), 8, 0); }),
            "lsq: bounds must be at least 0 and above 0: qn is 8, qp is 0");
  EXPECT_EQ(message_of(ErrorKind::shape, [&] { quant::lsq(x, x, 8, 7); }),
            "lsq: one step for all values: step is [2]");
  EXPECT_EQ(message_of(ErrorKind::shape, [&] { quant::in_place_of(x, zeros({3}, DType::f32)); }),
            "in_place_of: shapes differ: x is [2], values [3]");
}

}  // namespace
}  // namespace ingot::testing
