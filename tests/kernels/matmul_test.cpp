#include "ingot/kernels/matmul.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "ingot/base/philox.h"
#include "ingot/kernels/copy.h"

namespace ingot::testing {
namespace {

using kernels::Accumulate;

// A dense array with its own memory; the values come from (seed, index), as small multiples of
// 1/16: exact in every type, and so are short sums of their products.
struct Array {
  Array(const Shape& sizes, DType type, uint64_t seed)
      : shape(sizes), dtype(type), bytes(static_cast<size_t>(shape.elements() * size_of(type))) {
    const Philox random({seed, 0, 0});
    std::vector<double> values;
    for (int64_t i = 0; i < shape.elements(); ++i) {
      values.push_back(std::round(32 * random.uniform(static_cast<uint64_t>(i)) - 16) / 16);
    }
    const ConstView source(values.data(), shape, dense_strides(shape), DType::f64);
    kernels::copy(Cpu{}, source, view());
  }
  View view() { return View{{bytes.data(), shape, dense_strides(shape), dtype}}; }
  std::vector<double> values() {
    std::vector<double> out(static_cast<size_t>(shape.elements()));
    kernels::copy(Cpu{}, view(), View{{out.data(), shape, dense_strides(shape), DType::f64}});
    return out;
  }

  Shape shape;
  DType dtype;
  std::vector<std::byte> bytes;
};

View swapped(View x) {
  const int64_t last = x.rank() - 1;
  std::swap(x.shape[last], x.shape[last - 1]);
  std::swap(x.strides[last], x.strides[last - 1]);
  return x;
}

struct Case {
  int64_t batch, rows, columns, inner;
  bool a_transposed, b_transposed, accumulate, bias;
  DType in, out;

  std::string text() const {
    return concat("batch ", batch, ", ", rows, " x ", columns, " x ", inner,
                  a_transposed ? " T" : " N", b_transposed ? "T" : "N",
                  accumulate ? " accumulate" : "", bias ? " bias " : " ", in, " to ", out);
  }
};

Shape stored(int64_t batch, int64_t rows, int64_t columns, bool transposed) {
  Shape shape = transposed ? Shape{columns, rows} : Shape{rows, columns};
  if (batch > 0) {
    shape.insert(0, batch);
  }
  return shape;
}

// The definition, in double.
std::vector<double> by_definition(const Case& c, const std::vector<double>& a,
                                  const std::vector<double>& b, std::vector<double> y,
                                  const std::vector<double>& bias) {
  const auto at = [](const std::vector<double>& x, int64_t i) { return x[static_cast<size_t>(i)]; };
  const int64_t M = c.rows;
  const int64_t N = c.columns;
  const int64_t K = c.inner;
  for (int64_t i = 0; i < std::max<int64_t>(c.batch, 1); ++i) {
    for (int64_t m = 0; m < M; ++m) {
      for (int64_t n = 0; n < N; ++n) {
        double total = c.bias ? at(bias, n) : 0;
        for (int64_t k = 0; k < K; ++k) {
          const double left = at(a, i * M * K + (c.a_transposed ? k * M + m : m * K + k));
          total += left * at(b, i * K * N + (c.b_transposed ? n * K + k : k * N + n));
        }
        double& out = y[static_cast<size_t>((i * M + m) * N + n)];
        out = total + (c.accumulate ? out : 0);
      }
    }
  }
  return y;
}

double tolerance(DType out) {
  switch (out) {
    case DType::f64: return 1e-14;
    case DType::f32: return 1e-6;
    case DType::f16: return 1e-3;
    default: return 4e-3;  // half a unit in the last place of bf16
  }
}

void expect_product(const Case& c) {
  SCOPED_TRACE(c.text());
  Array a(stored(c.batch, c.rows, c.inner, c.a_transposed), c.in, 1);
  Array b(stored(c.batch, c.inner, c.columns, c.b_transposed), c.in, 2);
  Array y(stored(c.batch, c.rows, c.columns, false), c.out, 3);
  Array bias({c.columns}, c.in, 4);
  const std::vector<double> expected =
      by_definition(c, a.values(), b.values(), y.values(), bias.values());
  kernels::matmul(Cpu{}, c.a_transposed ? swapped(a.view()) : a.view(),
                  c.b_transposed ? swapped(b.view()) : b.view(), y.view(),
                  c.accumulate ? Accumulate::yes : Accumulate::no,
                  c.bias ? ConstView(bias.view()) : ConstView());
  const std::vector<double> got = y.values();
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], expected[i], tolerance(c.out) * std::max(1.0, std::abs(expected[i])))
        << "element " << i;
  }
}

// Every layout, with and without accumulation and bias, for one size.
void expect_products(int64_t batch, int64_t rows, int64_t columns, int64_t inner, DType in,
                     DType out) {
  for (int bits = 0; bits < 16; ++bits) {
    expect_product({batch, rows, columns, inner, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0,
                    (bits & 8) != 0, in, out});
  }
}

class MatmulTypes : public ::testing::TestWithParam<std::pair<DType, DType>> {};

TEST_P(MatmulTypes, EqualTheDefinitionInEveryLayout) {
  const auto [in, out] = GetParam();
  expect_products(0, 33, 17, 70, in, out);
  expect_products(0, 1, 19, 45, in, out);
  expect_products(0, 4, 130, 64, in, out);
  expect_products(0, 64, 1, 5, in, out);
  expect_products(0, 1, 1, 1, in, out);
  expect_products(0, 150, 200, 300, in, out);
  expect_products(3, 9, 8, 7, in, out);
  expect_products(2, 2, 30, 33, in, out);
  expect_products(1, 5, 6, 7, in, out);
}

TEST_P(MatmulTypes, ASumOverNoTermsIsZeroOrLeavesTheResult) {
  const auto [in, out] = GetParam();
  expect_products(0, 3, 4, 0, in, out);
  expect_products(2, 3, 4, 0, in, out);
}

TEST_P(MatmulTypes, AProductWithoutElementsTouchesNothing) {
  const auto [in, out] = GetParam();
  expect_products(0, 0, 4, 5, in, out);
  expect_products(0, 4, 0, 5, in, out);
  expect_products(3, 0, 0, 0, in, out);
}

INSTANTIATE_TEST_SUITE_P(
    AllTypes, MatmulTypes,
    ::testing::Values(std::pair{DType::f64, DType::f64}, std::pair{DType::f32, DType::f32},
                      std::pair{DType::bf16, DType::bf16}, std::pair{DType::bf16, DType::f32},
                      std::pair{DType::f16, DType::f16}, std::pair{DType::f16, DType::f32}),
    [](const auto& tested) { return concat(tested.param.first, "_to_", tested.param.second); });

// Large enough for a copy of b in oneDNN's own order: 1030 × 1600 f32 are 6.3 MiB.
TEST(Matmul, OfLargeF32MatricesEqualsThatOfTheTransposedCopy) {
  Array a({513, 1030}, DType::f32, 1);
  Array b({1030, 1600}, DType::f32, 2);
  Array b_transposed({1600, 1030}, DType::f32, 0);
  kernels::copy(Cpu{}, swapped(b.view()), b_transposed.view());
  Array y({513, 1600}, DType::f32, 0);
  Array expected({513, 1600}, DType::f32, 0);
  kernels::matmul(Cpu{}, a.view(), b.view(), y.view());
  kernels::matmul(Cpu{}, a.view(), swapped(b_transposed.view()), expected.view());
  EXPECT_EQ(y.values(), expected.values());  // exact: multiples of 1/256 below 2¹⁶
}

// Larger than the blocks in which what the processor lacks is widened: of each dimension several.
TEST(Matmul, OfHalvesInSeveralBlocksEqualsThatInDouble) {
  constexpr int64_t rows = 300, columns = 700, inner = 5000;
  for (const DType dtype : {DType::bf16, DType::f16}) {
    Array a({rows, inner}, dtype, 1);
    Array b({inner, columns}, dtype, 2);
    Array wide_a({rows, inner}, DType::f64, 1);
    Array wide_b({inner, columns}, DType::f64, 2);
    for (const DType out : {DType::f32, dtype}) {
      for (const Accumulate accumulate : {Accumulate::no, Accumulate::yes}) {
        SCOPED_TRACE(concat(dtype, " to ", out, accumulate == Accumulate::yes ? ", added" : ""));
        Array bias({columns}, out, 4);
        Array wide_bias({columns}, DType::f64, 4);
        Array y({rows, columns}, out, 3);
        Array wide_y({rows, columns}, DType::f64, 3);
        kernels::matmul(Cpu{}, a.view(), b.view(), y.view(), accumulate, bias.view());
        kernels::matmul(Cpu{}, wide_a.view(), wide_b.view(), wide_y.view(), accumulate,
                        wide_bias.view());
        const std::vector<double> got = y.values();
        const std::vector<double> expected = wide_y.values();
        for (size_t i = 0; i < got.size(); ++i) {
          const double allowed = out == DType::f32 ? 0 : tolerance(out);  // exact sums
          ASSERT_NEAR(got[i], expected[i], allowed * std::max(1.0, std::abs(expected[i]))) << i;
        }
      }
    }
  }
}

// Rows that do not follow one another, columns of a wider matrix, a matrix shared by the batch.
TEST(Matmul, ReadsRowsOfAWiderMatrixAndSharedMatricesInPlace) {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    SCOPED_TRACE(name(dtype));
    Array wide({3, 5, 40}, dtype, 1);
    Array b({9, 6}, dtype, 2);
    Array dense_a({3, 5, 9}, dtype, 0);
    View a = wide.view();
    a.shape[2] = 9;  // columns 0 … 8 of 40
    kernels::copy(Cpu{}, a, dense_a.view());
    for (const bool shared_b : {true, false}) {
      Array y({3, 5, 6}, dtype, 3);
      Array expected({3, 5, 6}, dtype, 3);
      View shared = b.view();
      shared.shape.insert(0, 3);
      shared.strides.insert(0, 0);
      kernels::matmul(Cpu{}, a, shared_b ? shared : b.view(), y.view());
      for (int64_t i = 0; i < 3; ++i) {
        View ai = dense_a.view();
        View yi = expected.view();
        ai.data = dense_a.bytes.data() + i * 45 * size_of(dtype);
        yi.data = expected.bytes.data() + i * 30 * size_of(dtype);
        for (View* x : {&ai, &yi}) {
          x->shape.erase(0);
          x->strides.erase(0);
        }
        kernels::matmul(Cpu{}, ai, b.view(), yi);
      }
      EXPECT_EQ(y.values(), expected.values());  // exact: sums of a few multiples of 1/256
    }
  }
}

TEST(Matmul, GivesTheSameBitsInEveryRun) {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    Array a({64, 700}, dtype, 1);
    Array b({700, 256}, dtype, 2);
    // Values whose sums round, unlike those of the other tests.
    kernels::fill_normal(Cpu{}, 0, 1, {1, 0, 0}, a.view());
    kernels::fill_normal(Cpu{}, 0, 1, {2, 0, 0}, b.view());
    Array first({64, 256}, dtype, 0);
    kernels::matmul(Cpu{}, a.view(), b.view(), first.view());
    for (int run = 0; run < 5; ++run) {
      Array again({64, 256}, dtype, 0);
      kernels::matmul(Cpu{}, a.view(), b.view(), again.view());
      EXPECT_EQ(first.bytes, again.bytes) << name(dtype);
    }
  }
}

TEST_P(MatmulTypes, OfOneMatrixByManyGiveTheBitsOfEachAlone) {
  const auto [dtype, out] = GetParam();
  for (const int64_t rows : {1, 2, 3, 4, 5}) {
    Array a({rows, 67}, dtype, 1);
    std::vector<Array> weights, biases, together, apart;
    for (const int64_t columns : {130, 1, 5, 0, 257}) {
      weights.emplace_back(Shape{columns, 67}, dtype, 2 + static_cast<uint64_t>(columns));
      biases.emplace_back(Shape{columns}, out, 3);
      together.emplace_back(Shape{rows, columns}, out, 4);
      apart.emplace_back(Shape{rows, columns}, out, 5);
    }
    std::vector<kernels::Factor> factors;
    for (size_t i = 0; i < weights.size(); ++i) {
      const ConstView bias = i % 2 == 0 ? ConstView(biases[i].view()) : ConstView();
      factors.push_back({swapped(weights[i].view()), together[i].view(), bias});
      kernels::matmul(Cpu{}, a.view(), swapped(weights[i].view()), apart[i].view(), Accumulate::no,
                      bias);
    }
    kernels::matmuls(Cpu{}, a.view(), factors);
    for (size_t i = 0; i < weights.size(); ++i) {
      EXPECT_EQ(together[i].bytes, apart[i].bytes) << rows << " rows, matrix " << i;
    }
  }
}

// Values whose sums round, of every length around the widths that vectors have.
TEST(Matmul, OfFewRowsGivesEachRowTheBitsItHasAlone) {
  constexpr int64_t most = 8;
  constexpr int64_t columns = 37;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (const int64_t inner : {5, 31, 32, 33, 127, 128, 160, 300, 519}) {
      SCOPED_TRACE(concat(name(dtype), " ", inner));
      Array a({most, inner}, dtype, 1);
      Array b({columns, inner}, dtype, 2);
      kernels::fill_normal(Cpu{}, 0, 1, {1, 0, 0}, a.view());
      kernels::fill_normal(Cpu{}, 0, 1, {2, 0, 0}, b.view());
      Array all({most, columns}, DType::f32, 0);
      kernels::matmul(Cpu{}, a.view(), swapped(b.view()), all.view());
      const std::vector<double> left = a.values();
      const std::vector<double> right = b.values();
      const std::vector<double> got = all.values();
      for (int64_t m = 0; m < most; ++m) {
        for (int64_t n = 0; n < columns; ++n) {
          double sum = 0;
          double size = 0;
          for (int64_t k = 0; k < inner; ++k) {
            const double term = left[static_cast<size_t>(m * inner + k)] *
                                right[static_cast<size_t>(n * inner + k)];
            sum += term;
            size += std::abs(term);
          }
          EXPECT_NEAR(got[static_cast<size_t>(m * columns + n)], sum, 1e-6 * size);
        }
      }
      for (int64_t rows = 1; rows < most; ++rows) {
        Array some({rows, columns}, DType::f32, 0);
        View few = a.view();
        few.shape[0] = rows;
        kernels::matmul(Cpu{}, few, swapped(b.view()), some.view());
        EXPECT_EQ(std::memcmp(some.bytes.data(), all.bytes.data(), some.bytes.size()), 0) << rows;
      }
    }
  }
}

TEST(Matmul, InsideAParallelRegionComputesEachProductWhole) {
  constexpr int workers = 3;
  Array a({120, 300}, DType::f32, 1);
  Array b({300, 200}, DType::f32, 2);
  Array expected({120, 200}, DType::f32, 0);
  kernels::matmul(Cpu{}, a.view(), b.view(), expected.view());
  std::vector<Array> ys(workers, Array({120, 200}, DType::f32, 0));
#pragma omp parallel for num_threads(workers)
  for (int i = 0; i < workers; ++i) {
    kernels::matmul(Cpu{}, a.view(), b.view(), ys[static_cast<size_t>(i)].view());
  }
  for (Array& y : ys) {
    EXPECT_EQ(y.values(), expected.values());
  }
}

TEST(Matmul, FollowsAChangedNumberOfThreads) {
  const int before = omp_get_max_threads();
  Array a({200, 300}, DType::bf16, 1);
  Array b({300, 200}, DType::bf16, 2);
  std::vector<double> first;
  for (const int threads : {1, 3, 2, 1}) {
    omp_set_num_threads(threads);
    Array y({200, 200}, DType::f32, 0);
    kernels::matmul(Cpu{}, a.view(), b.view(), y.view());
    first = first.empty() ? y.values() : first;
    EXPECT_EQ(y.values(), first) << threads;  // exact whatever the order of the sums
  }
  omp_set_num_threads(before);
}

TEST(Matmul, RefusesAnOperandThatIsContiguousInNeitherDimension) {
  Array a({4, 6, 2}, DType::f32, 1);
  Array b({6, 3}, DType::f32, 2);
  Array y({4, 3}, DType::f32, 3);
  const View thin{{a.bytes.data(), Shape{4, 6}, Strides{12, 2}, DType::f32}};
  try {
    kernels::matmul(Cpu{}, thin, b.view(), y.view());
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("neither contiguous rows nor contiguous columns"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace ingot::testing
