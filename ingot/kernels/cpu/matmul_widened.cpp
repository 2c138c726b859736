#include <algorithm>

#include "ingot/kernels/copy.h"
#include "ingot/kernels/cpu/product.h"
#include "ingot/kernels/cpu/scratch.h"

namespace ingot::kernels {
namespace {

// Elements of a block of b, of a and of a y that is rounded later: 8, 2 and 8 MiB in f32, which
// mostly stay in the cache between being written and being read. `ingot bench gemm
// recipes/llama-12m.toml` on one core of Ice Lake (two threads), median of its products: 174
// GFLOP/s, with a fourth of each 134; oneDNN's own bf16 63; f32 181.
constexpr int64_t most_of_b = int64_t{1} << 21;
constexpr int64_t most_of_a = int64_t{1} << 19;
constexpr int64_t most_of_y = int64_t{1} << 21;
constexpr int64_t most_inner = 4096;

struct Space {
  Scratch a, b, y, bias;
};

Space& space() {
  thread_local Space own;
  return own;
}

View floats(Scratch& scratch, const Shape& shape) {
  const auto bytes = static_cast<size_t>(shape.elements() * size_of(DType::f32));
  return {{scratch.at_least(bytes), shape, dense_strides(shape), DType::f32}};
}

// A matrix, or `batch` of them, of a product.
struct Operand {
  const void* data;
  int64_t rows, columns;
  Product::Steps steps;
  DType dtype;
};

// Copies it in f32 with the same dimension contiguous, what the batch shares once, and points to
// that.
void widen(Operand& x, int64_t batch, Scratch& scratch) {
  const bool by_rows = x.steps.column == 1;
  const int64_t copies = x.steps.batch == 0 ? 1 : batch;
  const int64_t lines = by_rows ? x.rows : x.columns;
  const int64_t length = by_rows ? x.columns : x.rows;
  const int64_t step = by_rows ? x.steps.row : x.steps.column;
  const View wide = floats(scratch, {copies, lines, length});
  copy(Cpu{}, ConstView(x.data, wide.shape, {x.steps.batch, step, 1}, x.dtype), wide);
  x.data = wide.data;
  x.steps = {copies == 1 ? 0 : lines * length, by_rows ? length : 1, by_rows ? 1 : length};
  x.dtype = DType::f32;
}

const void* moved(const void* data, int64_t elements, DType dtype) {
  return static_cast<const std::byte*>(data) + elements * size_of(dtype);
}

struct Range {
  int64_t begin, count;
};

// Calls f(Range) for [0, count), `step` at a time.
template <class F>
void pieces(int64_t count, int64_t step, F&& f) {
  for (int64_t begin = 0; begin < count; begin += step) {
    f(Range{begin, std::min(step, count - begin)});
  }
}

Product rows_of(Product p, Range rows) {
  p.rows = rows.count;
  p.a = moved(p.a, rows.begin * p.a_steps.row, p.in);
  p.y = const_cast<void*>(moved(p.y, rows.begin * p.y_steps.row, p.out));
  return p;
}

Product columns_of(Product p, Range columns) {
  p.columns = columns.count;
  p.b = moved(p.b, columns.begin * p.b_steps.column, p.in);
  p.y = const_cast<void*>(moved(p.y, columns.begin, p.out));
  p.bias = p.bias == nullptr ? nullptr : moved(p.bias, columns.begin, p.bias_type);
  return p;
}

// The terms of `inner`, added to y after the first ones.
Product terms_of(Product p, Range inner) {
  p.inner = inner.count;
  p.a = moved(p.a, inner.begin * p.a_steps.column, p.in);
  p.b = moved(p.b, inner.begin * p.b_steps.row, p.in);
  if (inner.begin > 0) {
    p.accumulate = true;
    p.bias = nullptr;
  }
  return p;
}

Product one_of_batch(Product p, int64_t index) {
  p.batch = 1;
  p.a = moved(p.a, index * p.a_steps.batch, p.in);
  p.b = moved(p.b, index * p.b_steps.batch, p.in);
  p.y = const_cast<void*>(moved(p.y, index * p.y_steps.batch, p.out));
  return p;
}

// With a y and a bias in f32: blocks of b in turn, of each all blocks of a.
void multiply(const Product& p) {
  const int64_t inner = std::min(p.inner, most_inner);
  pieces(p.inner, inner, [&](Range terms) {
    const Product some = terms_of(p, terms);
    Operand b{some.b, some.inner, some.columns, some.b_steps, some.in};
    widen(b, some.batch, space().b);
    pieces(p.rows, p.batch > 1 ? p.rows : most_of_a / inner, [&](Range block) {
      Product wide = rows_of(some, block);
      Operand a{wide.a, wide.rows, wide.inner, wide.a_steps, wide.in};
      widen(a, wide.batch, space().a);
      wide.in = DType::f32;
      wide.a = a.data;
      wide.a_steps = a.steps;
      wide.b = b.data;
      wide.b_steps = b.steps;
      matmul_onednn(wide);
    });
  });
}

// With a y in bf16 or f16: in f32, rounded at the end.
void multiply_and_round(const Product& p) {
  const View y = floats(space().y, {p.batch, p.rows, p.columns});
  Product wide = p;
  wide.y = y.data;
  wide.y_steps = {p.rows * p.columns, p.columns, 1};
  wide.out = DType::f32;
  wide.accumulate = false;
  multiply(wide);
  const View out{{p.y, y.shape, {p.y_steps.batch, p.y_steps.row, 1}, p.out}};
  if (p.accumulate) {
    accumulate(Cpu{}, y, out);
  } else {
    copy(Cpu{}, y, out);
  }
}

// With few enough columns, and few enough rows where there is a batch.
void multiply_all_rows(const Product& p) {
  if (p.out == DType::f32) {
    multiply(p);
    return;
  }
  pieces(p.rows, p.batch > 1 ? p.rows : std::max<int64_t>(most_of_y / p.columns, 1),
         [&](Range rows) { multiply_and_round(rows_of(p, rows)); });
}

}  // namespace

void matmul_widened(const Product& given) {
  Product p = given;
  if (p.bias != nullptr) {
    Operand bias{p.bias, 1, p.columns, {0, p.columns, 1}, p.bias_type};
    widen(bias, 1, space().bias);
    p.bias = bias.data;
    p.bias_type = DType::f32;
  }
  const int64_t longest = std::max({p.inner, p.rows, p.columns});
  if (p.batch * longest * longest <= most_of_a) {
    multiply_all_rows(p);
    return;
  }
  const int64_t columns = most_of_b / std::min(p.inner, most_inner);
  for (int64_t index = 0; index < p.batch; ++index) {
    const Product single = one_of_batch(p, index);
    pieces(p.columns, columns, [&](Range panel) { multiply_all_rows(columns_of(single, panel)); });
  }
}

}  // namespace ingot::kernels
