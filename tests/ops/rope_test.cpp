#include "ingot/ops/rope.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ingot/autograd/gradcheck.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

Tensor positions_from(int64_t first, int64_t count) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(first + i);
  }
  return tensor_of(values, {count});
}

// The formula, one pair at a time; angles are computed here, not taken from the tables.
Tensor rope_by_formula(const Tensor& x, int64_t first, int64_t rotated, double base,
                       RopeLayout layout) {
  Tensor y = copy_of(x);
  const Tensor in = dense(x);
  auto out = y.mutable_values<double>();
  for (int64_t row = 0; row < x.size(0) * x.size(1) * x.size(2); ++row) {
    const int64_t t = row / x.size(2) % x.size(1);
    const double* from = in.values<double>().data() + row * x.size(3);
    double* to = out.data() + row * x.size(3);
    for (int64_t p = 0; p < rotated / 2; ++p) {
      const double angle =
          static_cast<double>(first + t) *
          std::pow(base, -2.0 * static_cast<double>(p) / static_cast<double>(rotated));
      const int64_t u = layout == RopeLayout::half_split ? p : 2 * p;
      const int64_t v = layout == RopeLayout::half_split ? p + rotated / 2 : 2 * p + 1;
      to[u] = from[u] * std::cos(angle) - from[v] * std::sin(angle);
      to[v] = from[u] * std::sin(angle) + from[v] * std::cos(angle);
    }
  }
  return y;
}

Tensor rope_at(const Tensor& x, int64_t first, int64_t rotated, RopeLayout layout) {
  const RopeTables tables = rope_tables(moved(positions_from(first, x.size(1)), x.device()),
                                        rotated, 10000, accumulator(x.dtype()));
  return rope(x, tables.cos, tables.sin, layout);
}

OpCase rope_case(const char* name, int64_t rotated, RopeLayout layout) {
  OpCase op;
  op.name = name;
  op.run = [=](const TensorList& x) { return TensorList{rope_at(x[0], 3, rotated, layout)}; };
  op.reference = [=](const TensorList& x) {
    return TensorList{rope_by_formula(x[0], 3, rotated, 10000, layout)};
  };
  op.samples = {{"odd sizes", {random_tensor({2, 5, 3, 46}, 1)}},
                {"one token", {random_tensor({1, 1, 1, 80}, 2)}},
                {"no tokens", {random_tensor({2, 0, 3, 48}, 3)}}};
  op.twice = true;
  return op;
}

TEST(Rope, HalfSplitPassesItsCase) {
  OpCase op = rope_case("rope half_split", 46, RopeLayout::half_split);
  const Tensor x = zeros({2, 3, 4, 8}, DType::f32);
  const Tensor table = zeros({3, 4}, DType::f32);
  op.refusals = {{[=] {
                    rope(zeros({2, 3, 4, 8}, DType::i64), table, table, RopeLayout::half_split);
                  },
                  "rope: takes floating-point tensors: got i64"},
                 {[=] {
                    rope(zeros({3, 8}, DType::f32), table, table, RopeLayout::half_split);
                  },
                  "rope: takes x of shape [B, T, H, C]: got [3, 8]"},
                 {[=] {
                    rope(x, zeros({4, 4}, DType::f32), table, RopeLayout::half_split);
                  },
                  "rope: cos is for other tokens: x is [2, 3, 4, 8], cos is [4, 4]"},
                 {[=] {
                    rope(x, table, zeros({3, 5}, DType::f32), RopeLayout::half_split);
                  },
                  "rope: sin rotates more features than a head has: rotates 10, C is 8"},
                 {[=] {
                    rope(x, table, zeros({3, 2}, DType::f32), RopeLayout::half_split);
                  },
                  "rope: the tables differ: cos is [3, 4], sin is [3, 2]"},
                 {[=] { rope(x, table, zeros({12}, DType::f32), RopeLayout::half_split); },
                  "rope: sin takes shape [T, n/2] or [B, T, n/2]: got [12]"},
                 {[=] {
                    rope(x, zeros({3, 4}, DType::f64), table, RopeLayout::half_split);
                  },
                  "rope: cos has the wrong type: x is f32, cos is f64; make it f32"}};
  check_op(op);
}

TEST(Rope, InterleavedPassesItsCase) {
  check_op(rope_case("rope interleaved", 46, RopeLayout::interleaved));
}

TEST(Rope, PartialRotationPassesItsCaseInBothLayouts) {
  check_op(rope_case("rope half_split, 10 features", 10, RopeLayout::half_split));
  check_op(rope_case("rope interleaved, 10 features", 10, RopeLayout::interleaved));
}

TEST(Rope, PassesTheUnrotatedFeaturesBitByBit) {
  const Tensor x = converted(random_tensor({2, 5, 3, 40}, 5), DType::bf16);
  for (const RopeLayout layout : {RopeLayout::half_split, RopeLayout::interleaved}) {
    const Tensor y = rope_at(x, 7, 24, layout);
    EXPECT_TRUE(same_bits(sliced(y, 3, 24, 40), sliced(x, 3, 24, 40)));
    EXPECT_FALSE(same_bits(sliced(y, 3, 0, 24), sliced(x, 3, 0, 24)));
  }
}

TEST(Rope, KeepsTheNormOfEveryHead) {
  const Tensor x = random_tensor({2, 9, 3, 16}, 6);
  for (const RopeLayout layout : {RopeLayout::half_split, RopeLayout::interleaved}) {
    const Tensor y = rope_at(x, 1000, 16, layout);
    for (size_t row = 0; row < 2 * 9 * 3; ++row) {
      double before = 0;
      double after = 0;
      for (size_t c = row * 16; c < row * 16 + 16; ++c) {
        before += x.values<double>()[c] * x.values<double>()[c];
        after += y.values<double>()[c] * y.values<double>()[c];
      }
      EXPECT_NEAR(after, before, 1e-12 * before);
    }
  }
}

TEST(Rope, ScoresDependOnTheDistanceAlone) {
  // One query and one key vector, the same at every position.
  const Tensor q = dense(expanded(random_tensor({1, 1, 1, 16}, 7), {1, 40, 1, 16}));
  const Tensor k = dense(expanded(random_tensor({1, 1, 1, 16}, 8), {1, 40, 1, 16}));
  for (const RopeLayout layout : {RopeLayout::half_split, RopeLayout::interleaved}) {
    const Tensor rq = rope_at(q, 0, 16, layout);
    const Tensor rk = rope_at(k, 0, 16, layout);
    const auto score = [&](size_t i, size_t j) {
      double s = 0;
      for (size_t c = 0; c < 16; ++c) {
        s += rq.values<double>()[i * 16 + c] * rk.values<double>()[j * 16 + c];
      }
      return s;
    };
    for (size_t shift = 0; shift < 30; ++shift) {
      EXPECT_NEAR(score(9 + shift, 2 + shift), score(9, 2), 1e-11);
    }
    EXPECT_GT(std::abs(score(9, 2) - score(9, 3)), 1e-3);
  }
}

// x with features ordered so that half_split rotates the pairs that interleaved rotates in x.
Tensor pairs_to_halves(const Tensor& x) {
  const int64_t half = x.size(3) / 2;
  return dense(reshaped(
      dense(transposed(reshaped(x, {x.size(0), x.size(1), x.size(2), half, 2}), 3, 4)), x.shape()));
}

TEST(Rope, LayoutsAgreeAfterPermutingTheFeatures) {
  const Tensor x = random_tensor({2, 5, 3, 20}, 9);
  const Tensor interleaved = rope_at(x, 4, 20, RopeLayout::interleaved);
  const Tensor halves = rope_at(pairs_to_halves(x), 4, 20, RopeLayout::half_split);
  EXPECT_LE(difference(halves, pairs_to_halves(interleaved)), 1e-14);
}

TEST(Rope, ReadsSlicesOfAFusedProjectionInPlace) {
  const Tensor fused = random_tensor({2, 5, 6, 16}, 10);
  const Tensor x = sliced(fused, 2, 2, 5);
  EXPECT_TRUE(same_bits(rope_at(x, 0, 16, RopeLayout::half_split),
                        rope_at(dense(x), 0, 16, RopeLayout::half_split)));
}

TEST(Rope, BatchedTablesGiveEachRowItsOwnPositions) {
  const Tensor x = random_tensor({2, 4, 3, 12}, 11);
  const Tensor positions = tensor_of<int64_t>({5, 6, 7, 8, 0, 1, 0, 1}, {2, 4});
  const RopeTables tables = rope_tables(positions, 12, 10000, DType::f64);
  for (const RopeLayout layout : {RopeLayout::half_split, RopeLayout::interleaved}) {
    const Tensor y = rope(x, tables.cos, tables.sin, layout);
    const Tensor first = sliced(y, 0, 0, 1);
    EXPECT_LE(difference(first, rope_by_formula(sliced(x, 0, 0, 1), 5, 12, 10000, layout)), 1e-13);
    const Tensor restarted = sliced(sliced(y, 0, 1, 2), 1, 2, 4);
    EXPECT_LE(difference(restarted, rope_by_formula(sliced(sliced(x, 0, 1, 2), 1, 2, 4), 0, 12,
                                                    10000, layout)),
              1e-13);
  }
}

TEST(RopeTables, AreComputedInDoubleAndRoundedOnce) {
  // At position 100000 an angle computed in f32 is off by up to 4e-3.
  const int64_t position = 100000;
  const RopeTables tables = rope_tables(positions_from(position, 1), 64, 500000);
  for (size_t p = 0; p < 32; ++p) {
    const double angle =
        static_cast<double>(position) * std::pow(500000.0, -2.0 * static_cast<double>(p) / 64.0);
    EXPECT_NEAR(tables.cos.values<float>()[p], std::cos(angle), 6e-8);
    EXPECT_NEAR(tables.sin.values<float>()[p], std::sin(angle), 6e-8);
  }
}

TEST(RopeTables, RefuseWhatTheyCannotTabulate) {
  expect_error([] { rope_tables(zeros({3}, DType::i32), 8, 10000); },
               "rope_tables: positions must be i64: got i32");
  expect_error([] { rope_tables(positions_from(0, 3), 7, 10000); },
               "rope_tables: features are rotated in pairs: got 7; give an even number");
  expect_error([] { rope_tables(positions_from(0, 3), 8, 0); },
               "rope_tables: the base must be positive: got 0");
  expect_error([] { rope_tables(positions_from(0, 3), 8, 10000, DType::bf16); },
               "rope_tables: tables are f32 or f64: got bf16");
  expect_error(
      [] {
        rope_tables(zeros({1, 1, 3}, DType::i64), 8, 10000);
      },
      "rope_tables: takes positions of shape [T] or [B, T]: got [1, 1, 3]");
}

}  // namespace
}  // namespace ingot::testing
