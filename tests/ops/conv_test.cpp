#include "ingot/ops/conv.h"

#include <gtest/gtest.h>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/record.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

// A value of x, or 0 outside it: padding.
double padded(const Tensor& x, int64_t b, int64_t c, int64_t i, int64_t j) {
  if (i < 0 || j < 0 || i >= x.size(2) || j >= x.size(3)) {
    return 0;
  }
  return x
      .values<double>()[static_cast<size_t>(((b * x.size(1) + c) * x.size(2) + i) * x.size(3) + j)];
}

// The sum as written in PyTorch's documentation of Conv2d.
Tensor by_definition(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvOptions& o) {
  const auto size = [&](int64_t in, int64_t taps) {
    return (in + 2 * o.padding - o.dilation * (taps - 1) - 1) / o.stride + 1;
  };
  Tensor y = zeros({x.size(0), w.size(0), size(x.size(2), w.size(2)), size(x.size(3), w.size(3))},
                   DType::f64);
  auto out = y.mutable_values<double>();
  size_t at = 0;
  for (int64_t b = 0; b < y.size(0); ++b) {
    for (int64_t k = 0; k < y.size(1); ++k) {
      const int64_t first = k / (w.size(0) / o.groups) * w.size(1);
      for (int64_t i = 0; i < y.size(2); ++i) {
        for (int64_t j = 0; j < y.size(3); ++j, ++at) {
          out[at] = bias.defined() ? bias.values<double>()[static_cast<size_t>(k)] : 0;
          for (int64_t c = 0; c < w.size(1); ++c) {
            for (int64_t p = 0; p < w.size(2); ++p) {
              for (int64_t q = 0; q < w.size(3); ++q) {
                out[at] += padded(w, k, c, p, q) *
                           padded(x, b, first + c, i * o.stride + p * o.dilation - o.padding,
                                  j * o.stride + q * o.dilation - o.padding);
              }
            }
          }
        }
      }
    }
  }
  return y;
}

OpCase case_of(const ConvOptions& options) {
  OpCase op;
  op.name = "conv2d";
  op.run = [options](const TensorList& x) {
    return TensorList{conv2d(x[0], x[1], x.size() > 2 ? x[2] : Tensor(), options)};
  };
  op.reference = [options](const TensorList& x) {
    return TensorList{by_definition(x[0], x[1], x.size() > 2 ? x[2] : Tensor(), options)};
  };
  op.twice = true;
  return op;
}

TEST(Conv2d, PassesItsCase) {
  OpCase op = case_of({});
  op.samples = {
      {"odd sizes",
       {random_tensor({2, 3, 7, 5}, 1), random_tensor({4, 3, 3, 2}, 2), random_tensor({4}, 3)}},
      {"no bias", {random_tensor({1, 2, 4, 4}, 4), random_tensor({3, 2, 1, 1}, 5)}},
      {"the weight as large as the input",
       {random_tensor({2, 2, 3, 3}, 6), random_tensor({1, 2, 3, 3}, 7)}},
      {"no images",
       {random_tensor({0, 3, 7, 5}, 8), random_tensor({4, 3, 3, 2}, 9), random_tensor({4}, 10)}}};
  const auto x = [](const Shape& shape) { return zeros(shape, DType::f32); };
  op.refusals = {
      {[] {
         conv2d(zeros({1, 1, 2, 2}, DType::i64), zeros({1, 1, 1, 1}, DType::i64));
       },
       "conv2d: takes floating-point tensors: got i64"},
      {[x] {
         conv2d(x({1, 2, 2}), x({1, 1, 1, 1}));
       },
       "conv2d: takes x and weight of 4 dimensions: x is [1, 2, 2], weight is [1, 1, 1, 1]"},
      {[x] {
         conv2d(x({1, 2, 2, 2}), x({1, 3, 1, 1}));
       },
       "conv2d: channels do not fit: x is [1, 2, 2, 2], weight is [1, 3, 1, 1], groups are 1"},
      {[x] {
         conv2d(x({1, 1, 2, 2}), x({1, 1, 3, 1}));
       },
       "conv2d: the weight reaches over more than the input: it spans 3, the padded input has 2"},
      {[x] {
         conv2d(x({1, 1, 2, 2}), x({1, 1, 1, 1}), x({2}));
       },
       "conv2d: bias has not one element an output channel: bias is [2], weight is [1, 1, 1, 1]"},
      {[x] {
         conv2d(x({1, 1, 2, 2}), x({1, 1, 1, 1}), {}, {.stride = 0});
       },
       "conv2d: stride, dilation and groups start at 1, padding at 0: got 0, 1, 1, 0"},
      {[x] {
         conv2d(x({1, 1, 2, 2}), x({0, 1, 1, 1}));
       },
       "conv2d: weight has no elements: [0, 1, 1, 1]"},
      {[x] {
         conv2d(x({1, 1, 2, 2}), zeros({1, 1, 1, 1}, DType::bf16));
       },
       "conv2d: dtypes differ: x is f32, weight is bf16, bias is absent"},
      {[x] {
         conv2d(x({1, 1, 2, 2}), zeros({1, 1, 1, 1}, DType::f32, meta_device));
       },
       "conv2d: devices differ: x is on cpu, weight is on meta"},
  };
  check_op(op);
}

TEST(Conv2d, WithStridePaddingDilationAndGroupsPassesItsCase) {
  for (const ConvOptions& options :
       {ConvOptions{.stride = 2, .padding = 1, .dilation = 1, .groups = 1},
        ConvOptions{.stride = 1, .padding = 2, .dilation = 2, .groups = 2},
        ConvOptions{.stride = 3, .padding = 0, .dilation = 1, .groups = 4}}) {
    OpCase op = case_of(options);
    op.samples = {{concat("stride ", options.stride, ", groups ", options.groups),
                   {random_tensor({2, 4, 9, 8}, 1), random_tensor({8, 4 / options.groups, 3, 2}, 2),
                    random_tensor({8}, 3)}}};
    check_op(op);
  }
}

TEST(Conv1d, PassesItsCase) {
  const ConvOptions options{.stride = 2, .padding = 1, .dilation = 2, .groups = 1};
  OpCase op;
  op.name = "conv1d";
  op.run = [options](const TensorList& x) { return TensorList{conv1d(x[0], x[1], x[2], options)}; };
  op.reference = [](const TensorList& x) {
    // Along the second dimension of a plane of one row, which padding must not surround: every
    // second column of a convolution without stride.
    Tensor y = zeros({2, 5, 6}, DType::f64);
    auto out = y.mutable_values<double>();
    size_t at = 0;
    for (int64_t b = 0; b < 2; ++b) {
      for (int64_t o = 0; o < 5; ++o) {
        for (int64_t i = 0; i < 6; ++i, ++at) {
          out[at] = x[2].values<double>()[static_cast<size_t>(o)];
          for (int64_t c = 0; c < 3; ++c) {
            for (int64_t p = 0; p < 2; ++p) {
              const int64_t from = 2 * i + 2 * p - 1;
              if (from >= 0 && from < 11) {
                out[at] += x[1].values<double>()[static_cast<size_t>((o * 3 + c) * 2 + p)] *
                           x[0].values<double>()[static_cast<size_t>((b * 3 + c) * 11 + from)];
              }
            }
          }
        }
      }
    }
    return TensorList{y};
  };
  op.samples = {
      {"odd sizes",
       {random_tensor({2, 3, 11}, 1), random_tensor({5, 3, 2}, 2), random_tensor({5}, 3)}}};
  op.twice = true;
  op.refusals = {{[] {
                    conv1d(zeros({1, 2, 2, 2}, DType::f32), zeros({1, 1, 1}, DType::f32));
                  },
                  "conv1d: takes x and weight of 3 dimensions"}};
  check_op(op);
}

TEST(Conv2d, GivesGradientsOfHalfWeightsInF32) {
  Tensor x = normal({2, 3, 5, 5}, 0, 1, {1, 0, 0}, DType::bf16);
  Tensor w = normal({4, 3, 3, 3}, 0, 1, {2, 0, 0}, DType::bf16);
  Tensor bias = normal({4}, 0, 1, {3, 0, 0}, DType::bf16);
  for (Tensor* leaf : {&x, &w, &bias}) {
    require_grad(*leaf);
  }
  const Tensor y = conv2d(x, w, bias);
  const TensorList found = gradients({y}, {x, w, bias}, {full(y.shape(), 1, DType::bf16)});
  EXPECT_EQ(found[0].dtype(), DType::bf16);
  EXPECT_EQ(found[1].dtype(), DType::f32);
  EXPECT_EQ(found[2].dtype(), DType::f32);
  EXPECT_EQ(found[2].values<float>()[0], 18);  // two images of 3 × 3 results
}

}  // namespace
}  // namespace ingot::testing
