#include "ingot/ops/index.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ingot/base/philox.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

Tensor ints(const std::vector<int64_t>& values, const Shape& shape) {
  return tensor_of(values, shape);
}

// `count` positions in [0, size).
Tensor random_index(const Shape& shape, int64_t size, uint64_t seed) {
  const Philox random({seed, 5, 0});
  std::vector<int64_t> values(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<int64_t>(random.word(i) % static_cast<uint32_t>(size));
  }
  return ints(values, shape);
}

// x seen as [before, size of dim, after], one element.
struct Blocks {
  int64_t before = 1;
  int64_t size = 1;
  int64_t after = 1;
  Blocks(const Shape& shape, int64_t dim) : size(shape.size(dim)) {
    for (int64_t i = 0; i < shape.rank(); ++i) {
      (i < shape.index(dim) ? before : after) *= i == shape.index(dim) ? 1 : shape[i];
    }
  }
  size_t at(int64_t a, int64_t n, int64_t b) const {
    return static_cast<size_t>((a * size + n) * after + b);
  }
};

// f(position in x, position in index) for every element of index.
void each_pair(const Tensor& x, int64_t dim, const Tensor& index,
               const std::function<void(size_t, size_t)>& f) {
  const Blocks from(x.shape(), dim);
  const Blocks at(index.shape(), dim);
  for (int64_t a = 0; a < at.before; ++a) {
    for (int64_t m = 0; m < at.size; ++m) {
      for (int64_t b = 0; b < at.after; ++b) {
        const size_t i = at.at(a, m, b);
        f(from.at(a, index.values<int64_t>()[i], b), i);
      }
    }
  }
}

// The case's index on the device of its input.
Tensor beside(const Tensor& index, const Tensor& x) { return moved(index, x.device()); }

TEST(Gather, PassesItsCase) {
  for (const int64_t dim : {0, 1, -1}) {
    Shape shape = {4, 5, 3};
    shape[shape.index(dim)] = 6;
    const Tensor index = random_index(shape, Shape{4, 5, 3}.size(dim), 1);
    OpCase op;
    op.name = concat("gather over ", dim);
    op.run = [&](const TensorList& x) {
      return TensorList{gather(x[0], dim, beside(index, x[0]))};
    };
    op.reference = [&](const TensorList& x) {
      const Tensor from = dense(x[0]);
      Tensor y = empty(index.shape(), DType::f64);
      auto out = y.mutable_values<double>();
      each_pair(from, dim, index, [&](size_t i, size_t j) { out[j] = from.values<double>()[i]; });
      return TensorList{y};
    };
    op.samples = {{"repeated indices", {random_tensor({4, 5, 3}, 2)}}};
    op.twice = true;
    check_op(op);
  }
}

TEST(Gather, TakesEveryTypeAndI32Indices) {
  const Tensor x = ints({10, 11, 12, 13}, {2, 2});
  const Tensor index = ints({1, 0, 0, 0}, {2, 2});
  for (const DType dtype : {DType::i64, DType::i32, DType::u8, DType::bf16, DType::f64}) {
    const Tensor y = gather(converted(x, dtype), 1, converted(index, DType::i32));
    EXPECT_EQ(y.dtype(), dtype);
    EXPECT_EQ(difference(y, ints({11, 10, 12, 12}, {2, 2})), 0);
  }
  EXPECT_EQ(gather(zeros({0, 2}, DType::f32), 1, zeros({0, 3}, DType::i64)).shape(), (Shape{0, 3}));
}

TEST(Gather, NamesTheIndexThatIsOutOfRange) {
  const Tensor x = zeros({2, 3}, DType::f32);
  expect_error(
      [&] {
        gather(x, 1, ints({0, 1, 2, 3}, {2, 2}));
      },
      "gather: index out of range: index[1, 1] is 3, the dimension has size 3");
  expect_error([&] { gather(x, 1, ints({0, -1, 2, 3}, {2, 2})); }, "index[0, 1] is -1");
  expect_error(
      [&] {
        gather(x, 1, zeros({2, 2}, DType::f32));
      },
      "gather: the index must be i64 or i32: got f32");
  expect_error(
      [&] {
        gather(x, 1, zeros({3, 2}, DType::i64));
      },
      "gather: shapes differ outside dimension 1: x is [2, 3], index is [3, 2]");
  const Tensor far = full({2, 2}, 99, DType::i64, meta_device);  // no values to look at
  EXPECT_EQ(gather(moved(x, meta_device), 1, far).shape(), (Shape{2, 2}));
}

TEST(ScatterAdd, PassesItsCase) {
  for (const int64_t dim : {0, 1, -1}) {
    Shape shape = {4, 5, 3};
    shape[shape.index(dim)] = 9;
    const Tensor index = random_index(shape, Shape{4, 5, 3}.size(dim), 3);
    OpCase op;
    op.name = concat("scatter_add over ", dim);
    op.run = [&](const TensorList& x) {
      return TensorList{scatter_add(x[0], dim, beside(index, x[0]), x[1])};
    };
    op.reference = [&](const TensorList& x) {
      Tensor y = copy_of(x[0]);
      const Tensor source = dense(x[1]);
      auto sums = y.mutable_values<double>();
      each_pair(y, dim, index, [&](size_t i, size_t j) { sums[i] += source.values<double>()[j]; });
      return TensorList{y};
    };
    op.samples = {{"repeated indices", {random_tensor({4, 5, 3}, 4), random_tensor(shape, 5)}}};
    op.twice = true;
    op.refusals = {
        {[] {
           scatter_add(zeros({2}, DType::f32), 0, ints({0, 2}, {2}), zeros({2}, DType::f32));
         },
         "scatter_add: index out of range: index[1] is 2, the dimension has size 2"},
        {[] { scatter_add(zeros({2}, DType::f32), 0, ints({0}, {1}), zeros({2}, DType::f32)); },
         "scatter_add: shapes differ: index is [1], source is [2]"},
        {[] { scatter_add(zeros({2}, DType::f32), 0, ints({0}, {1}), zeros({1}, DType::f64)); },
         "scatter_add: dtypes differ: x is f32, source is f64"}};
    check_op(op);
  }
}

TEST(ScatterAdd, OfHalfTypesSumsInSinglePrecision) {
  const int64_t count = 4096;
  const Tensor ones = full({count}, 1, DType::bf16);
  const Tensor y = scatter_add(zeros({1}, DType::bf16), 0, zeros({count}, DType::i64), ones);
  EXPECT_EQ(y.item(), 4096);  // bf16 sums would stop at 256
}

TEST(ScatterAdd, DoesNotDependOnTheNumberOfThreads) {
  const Tensor index = random_index({3, 5000, 70}, 11, 6);
  const Tensor source = normal({3, 5000, 70}, 0, 1, {7, 0, 0}, DType::f32);
  const Tensor x = zeros({3, 11, 70}, DType::f32);
  const Tensor expected = scatter_add(x, 1, index, source);
  const int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  EXPECT_TRUE(same_bits(scatter_add(x, 1, index, source), expected));
  omp_set_num_threads(threads);
}

TEST(IndexSelect, PassesItsCase) {
  for (const int64_t dim : {0, 1, -1}) {
    const std::vector<int64_t> rows = {2, 0, 2, 1};
    OpCase op;
    op.name = concat("index_select over ", dim);
    op.run = [&](const TensorList& x) {
      return TensorList{index_select(x[0], dim, beside(ints(rows, {4}), x[0]))};
    };
    op.reference = [&](const TensorList& x) {
      TensorList parts;
      for (const int64_t row : rows) {
        parts.push_back(slice(x[0], dim, row, row + 1));
      }
      return TensorList{concat(parts, dim)};
    };
    op.samples = {{"a repeated index", {random_tensor({4, 5, 3}, 8)}}};
    op.twice = true;
    op.refusals = {{[] { index_select(zeros({2}, DType::f32), 0, ints({5}, {1})); },
                    "index_select: index out of range: index[0] is 5, the dimension has size 2"},
                   {[] {
                      index_select(zeros({2}, DType::f32), 0, ints({0}, {1, 1}));
                    },
                    "index_select: the index must have one dimension: got [1, 1]"}};
    check_op(op);
  }
}

TEST(OneHot, PutsAOneAtEachIndex) {
  const Tensor y = one_hot(ints({2, 0}, {2, 1}), 3, DType::f32);
  EXPECT_TRUE(same_bits(y, tensor_of(std::vector<float>{0, 0, 1, 1, 0, 0}, {2, 1, 3})));
  EXPECT_EQ(one_hot(ints({1}, {1}), 2, DType::i64).dtype(), DType::i64);
  expect_error(
      [] {
        one_hot(ints({0, 3}, {2}), 3, DType::f32);
      },
      "one_hot: index out of range: index[1] is 3, the dimension has size 3");
}

// Positions of a row sorted by std::stable_sort, NaN last.
std::vector<int64_t> stable_order(std::span<const double> row, Order order) {
  std::vector<int64_t> positions(row.size());
  std::iota(positions.begin(), positions.end(), int64_t{0});
  std::stable_sort(positions.begin(), positions.end(), [&](int64_t i, int64_t j) {
    const double a = row[static_cast<size_t>(i)];
    const double b = row[static_cast<size_t>(j)];
    if (std::isnan(a) || std::isnan(b)) {
      return !std::isnan(a) && std::isnan(b);
    }
    return order == Order::ascending ? a < b : a > b;
  });
  return positions;
}

TEST(Sort, AgreesWithAStableSort) {
  Tensor x = random_tensor({7, 50}, 9, 3);
  auto values = x.mutable_values<double>();
  for (double& v : values) {
    v = std::round(v);  // many equals
  }
  values[3] = std::nan("");
  values[60] = std::numeric_limits<double>::infinity();
  for (const Order order : {Order::ascending, Order::descending}) {
    const Sorted sorted = sort(x, order);
    const Sorted largest = topk(x, 5);
    for (size_t r = 0; r < 7; ++r) {
      const auto expected = stable_order(x.values<double>().subspan(r * 50, 50), order);
      for (size_t i = 0; i < 50; ++i) {
        EXPECT_EQ(sorted.indices.values<int64_t>()[r * 50 + i], expected[i]);
      }
      const auto first = stable_order(x.values<double>().subspan(r * 50, 50), Order::descending);
      for (size_t i = 0; i < 5; ++i) {
        EXPECT_EQ(largest.indices.values<int64_t>()[r * 5 + i], first[i]);
      }
    }
    EXPECT_EQ(difference(gather(x, 1, sorted.indices), sorted.values), 0);
    EXPECT_EQ(difference(gather(x, 1, largest.indices), largest.values), 0);
  }
}

TEST(Sort, TakesStridedAndEmptyInputsAndHalfTypes) {
  const Tensor x = random_tensor({5, 4}, 10);
  const Tensor turned = transpose(x);
  EXPECT_TRUE(same_bits(sort(turned).values, sort(contiguous(turned)).values));
  EXPECT_EQ(sort(zeros({3, 0}, DType::f32)).values.shape(), (Shape{3, 0}));
  EXPECT_EQ(topk(zeros({0, 3}, DType::f32), 2).indices.shape(), (Shape{0, 2}));
  EXPECT_EQ(sort(converted(x, DType::bf16)).values.dtype(), DType::bf16);
  EXPECT_EQ(topk(zeros({2, 9}, DType::f32, meta_device), 4).values.shape(), (Shape{2, 4}));
  expect_error([&] { topk(x, 5); },
               "topk: k must be in [0, 4], the size of the last dimension: got 5");
  expect_error([] { sort(scalar(1, DType::f32)); },
               "sort: takes at least one dimension: got a scalar");
}

}  // namespace
}  // namespace ingot::testing
