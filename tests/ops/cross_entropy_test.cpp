#include "ingot/ops/cross_entropy.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/record.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

// Labels 0, 3, 6, … modulo V; every fifth is ignored where asked.
Tensor some_labels(const Shape& shape, int64_t classes, bool ignoring) {
  Tensor labels = empty(shape, DType::i64);
  auto values = labels.mutable_values<int64_t>();
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = ignoring && i % 5 == 2 ? -100 : static_cast<int64_t>(3 * i) % classes;
  }
  return labels;
}

// Row by row, as the formula reads.
Tensor losses_by_formula(const Tensor& logits, const Tensor& labels,
                         const CrossEntropyOptions& how) {
  Tensor losses = empty(labels.shape(), DType::f64);
  const auto classes = static_cast<size_t>(logits.size(-1));
  const Tensor x = copy_of(logits);
  for (size_t row = 0; row < static_cast<size_t>(labels.elements()); ++row) {
    std::vector<double> l(classes);
    double most = -HUGE_VAL;
    for (size_t v = 0; v < classes; ++v) {
      const double logit = x.values<double>()[row * classes + v];
      l[v] = how.softcap == 0 ? logit : how.softcap * std::tanh(logit / how.softcap);
      most = std::max(most, l[v]);
    }
    double total = 0;
    for (const double logit : l) {
      total += std::exp(logit - most);
    }
    const double log_sum = most + std::log(total);
    const int64_t label = labels.values<int64_t>()[row];
    double loss = how.z_loss * log_sum * log_sum;
    for (size_t v = 0; v < classes; ++v) {
      const double target = (static_cast<int64_t>(v) == label ? 1 - how.label_smoothing : 0) +
                            how.label_smoothing / static_cast<double>(classes);
      loss -= target * (l[v] - log_sum);
    }
    losses.mutable_values<double>()[row] = label == how.ignore_index ? 0 : loss;
  }
  return losses;
}

Tensor reduced(const Tensor& losses, const Tensor& labels, Reduction reduction) {
  if (reduction == Reduction::none) {
    return losses;
  }
  double sum = 0;
  double count = 0;
  for (size_t i = 0; i < losses.values<double>().size(); ++i) {
    sum += losses.values<double>()[i];
    count += labels.values<int64_t>()[i] != -100;
  }
  return scalar(reduction == Reduction::mean ? sum / count : sum, DType::f64);
}

struct Variant {
  const char* name;
  CrossEntropyOptions options;
};
const std::vector<Variant>& variants() {
  static const std::vector<Variant> all = {
      {"plain", {}},
      {"smoothed", {.label_smoothing = 0.1}},
      {"z-loss", {.z_loss = 0.02}},
      {"capped", {.softcap = 3}},
      {"all options", {.label_smoothing = 0.2, .z_loss = 0.01, .softcap = 5}}};
  return all;
}

TEST(CrossEntropy, PassesItsCaseForEveryReductionAndOption) {
  for (const Reduction reduction : {Reduction::none, Reduction::sum, Reduction::mean}) {
    for (const Variant& variant : variants()) {
      OpCase op;
      op.name = std::string("cross_entropy ") + variant.name;
      op.run = [=](const TensorList& x) {
        return TensorList{cross_entropy(x[0], x[1], reduction, variant.options)};
      };
      op.reference = [=](const TensorList& x) {
        const Tensor labels = copy_of(x[1]);
        return TensorList{
            reduced(losses_by_formula(x[0], labels, variant.options), labels, reduction)};
      };
      op.samples = {
          {"two leading dimensions", {random_tensor({3, 5, 37}, 1), some_labels({3, 5}, 37, true)}},
          {"one class", {random_tensor({4, 1}, 2), some_labels({4}, 1, false)}},
          {"spread logits", {random_tensor({6, 19}, 3, 20), some_labels({6}, 19, true)}}};
      if (reduction != Reduction::mean) {
        op.samples.push_back({"no rows", {random_tensor({0, 7}, 4), some_labels({0}, 7, false)}});
      }
      op.twice = true;
      check_op(op);
    }
  }
}

TEST(CrossEntropy, GivesTheLogarithmOfTheClassesForEqualLogits) {
  for (const int64_t classes : {2, 1000, 50257, 262144}) {
    for (const double logit : {0.0, 1e4, -1e4}) {
      const Tensor logits = full({2, classes}, logit, DType::f32);
      const Tensor loss = cross_entropy(logits, some_labels({2}, classes, false), Reduction::mean);
      EXPECT_NEAR(loss.item(), std::log(static_cast<double>(classes)), 1e-6);
    }
  }
}

TEST(CrossEntropy, KeepsItsDigitsAtLargeLogits) {
  Tensor logits = full({1, 4}, 1e4, DType::f32);
  logits.mutable_values<float>()[1] = 1e4F + 1;
  require_grad(logits);
  const Tensor loss = cross_entropy(logits, full({1}, 1, DType::i64), Reduction::sum);
  const double p = std::exp(1) / (3 + std::exp(1));
  EXPECT_NEAR(loss.item(), -std::log(p), 1e-6);
  backward(loss);
  EXPECT_NEAR(grad(logits).values<float>()[1], p - 1, 1e-6);
  logits = full({1, 3}, -1e4, DType::f32);
  logits.mutable_values<float>()[0] = 1e4F;
  EXPECT_EQ(cross_entropy(logits, full({1}, 0, DType::i64), Reduction::sum).item(), 0);
  EXPECT_EQ(cross_entropy(logits, full({1}, 2, DType::i64), Reduction::sum).item(), 2e4);
}

TEST(CrossEntropy, LetsMinusInfinityExcludeAClassAndNaNThrough) {
  Tensor logits = zeros({1, 40}, DType::f32);
  logits.mutable_values<float>()[7] = -HUGE_VALF;
  require_grad(logits);
  const Tensor loss = cross_entropy(logits, full({1}, 0, DType::i64), Reduction::sum);
  EXPECT_NEAR(loss.item(), std::log(39.0), 1e-6);
  backward(loss);
  EXPECT_EQ(grad(logits).values<float>()[7], 0);
  for (const float poison : {NAN, HUGE_VALF}) {
    Tensor bad = zeros({1, 40}, DType::f32);
    bad.mutable_values<float>()[33] = poison;
    require_grad(bad);
    const Tensor broken = cross_entropy(bad, full({1}, 0, DType::i64), Reduction::sum);
    EXPECT_TRUE(std::isnan(broken.item()));
    backward(broken);
    EXPECT_TRUE(std::isnan(grad(bad).values<float>()[3]));
  }
}

// Subnormal gradients are as good as none, and slow to multiply: see kernels/cpu/cross_entropy.cpp.
TEST(CrossEntropy, GivesZeroWhereAGradientWouldBeSubnormal) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Tensor wide = zeros({1, 120}, DType::f32);
    for (int64_t i = 0; i < 120; ++i) {
      wide.mutable_values<float>()[static_cast<size_t>(i)] = static_cast<float>(-i);
    }
    Tensor logits = converted(wide, dtype);
    require_grad(logits);
    backward(cross_entropy(logits, full({1}, 0, DType::i64), Reduction::sum));
    const Tensor gradient = converted(grad(logits), DType::f32);
    const auto dx = gradient.values<float>();
    EXPECT_GT(dx[86], 0);  // e^-86 / 1.58 = 2.8e-38, a normal number
    for (size_t i = 0; i < dx.size(); ++i) {
      EXPECT_TRUE(dx[i] == 0 || std::isnormal(dx[i])) << i << ": " << dx[i];
    }
  }
}

TEST(CrossEntropy, GivesNothingForIgnoredRows) {
  Tensor logits = random_tensor({3, 5}, 1);
  require_grad(logits);
  const Tensor loss = cross_entropy(logits, full({3}, -100, DType::i64), Reduction::sum);
  EXPECT_EQ(loss.item(), 0);
  backward(loss);
  EXPECT_TRUE(same_bits(grad(logits), zeros({3, 5}, DType::f64)));
  CrossEntropyOptions options;
  options.ignore_index = 0;
  const Tensor rows = cross_entropy(logits, full({3}, 0, DType::i64), Reduction::none, options);
  EXPECT_TRUE(same_bits(rows, zeros({3}, DType::f64)));
}

TEST(CrossEntropy, RefusesBadLabels) {
  const Tensor logits = zeros({4, 5}, DType::f32);
  const auto with = [&](int64_t label) {
    Tensor labels = zeros({4}, DType::i64);
    labels.mutable_values<int64_t>()[2] = label;
    return [=] { cross_entropy(logits, labels, Reduction::sum); };
  };
  expect_error(with(5), "cross_entropy: label 5 at position 2 is outside [0, 5)");
  expect_error(with(-1), "cross_entropy: label -1 at position 2 is outside [0, 5)");
  expect_error(
      [&] { cross_entropy(logits, full({4}, -100, DType::i64), Reduction::mean); },
      "cross_entropy: no label counts: all 4 are -100 (ignored), and a mean over nothing is "
      "undefined; use the sum");
  expect_error([&] { cross_entropy(logits, zeros({3}, DType::i64), Reduction::sum); },
               "cross_entropy: needs one label a row: logits are [4, 5], labels are [3]");
  expect_error([&] { cross_entropy(logits, zeros({4}, DType::f32), Reduction::sum); },
               "cross_entropy: takes i64 labels: got f32");
  expect_error(
      [&] {
        cross_entropy(zeros({4, 0}, DType::f32), zeros({4}, DType::i64), Reduction::sum);
      },
      "cross_entropy: there are no classes");
}

}  // namespace
}  // namespace ingot::testing
