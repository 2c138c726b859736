#include "ingot/kernels/matmul.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "ingot/kernels/copy.h"
#include "ingot/kernels/cpu/product.h"
#include "ingot/kernels/cpu/product_check.h"
#include "ingot/kernels/product_check.h"

// Which route a product takes:
//   f64                                          blocked loops (matmul_f64.cpp)
//   at most 8 rows against row-wise weights      dot products (matmul_rows.cpp)
//   f32, bf16, and f16 where oneDNN has it       oneDNN, all layouts in place but for large f32
//                                                matrices b with contiguous rows, which are packed
//                                                first (matmul_onednn.cpp)
//   bf16 or f16 where the processor lacks it     blocks widened to f32 (matmul_widened.cpp)

namespace ingot::kernels {
namespace {

// The steps of the last two dimensions, and of the batch where there is one.
Product::Steps steps_of(const Shape& shape, const Strides& strides) {
  const int64_t rank = shape.rank();
  const bool batched = rank == 3 && shape[0] != 1;
  return {batched ? strides[0] : 0, strides[rank - 2], strides[rank - 1]};
}

// A dimension of size 1 may have any step: it becomes one of a row-major layout where the columns
// follow one another, else of a column-major one.
void settle(Product::Steps& steps, int64_t rows, int64_t columns) {
  if (columns == 1) {
    steps.column = 1;
    steps.row = rows == 1 ? 1 : steps.row;
  } else if (rows == 1) {
    steps.row = steps.column == 1 ? columns : 1;
  }
}

Product::Steps operand_steps(const char* which, const Shape& shape, const Strides& strides) {
  check(matmul_reads(shape, strides), ErrorKind::internal, "matmul: ", which,
        " has neither contiguous rows nor contiguous columns: shape ", shape, ", strides ",
        strides);
  Product::Steps steps = steps_of(shape, strides);
  settle(steps, shape.size(-2), shape.size(-1));
  return steps;
}

void check_views(const ConstView& a, const ConstView& b, const View& y, const ConstView& bias) {
  const auto matrix = [](const auto& x) { return x.rank() == 2 || x.rank() == 3; };
  check(matrix(a) && matrix(b) && matrix(y), ErrorKind::internal,
        "matmul: takes matrices or batches of them: a is ", a.shape, ", b is ", b.shape, ", y is ",
        y.shape);
  check(a.size(-1) == b.size(-2) && a.size(-2) == y.size(-2) && b.size(-1) == y.size(-1),
        ErrorKind::internal, "matmul: shapes do not fit: a is ", a.shape, ", b is ", b.shape,
        ", y is ", y.shape);
  const int64_t batch = y.rank() == 3 ? y.shape[0] : 1;
  const auto fits = [batch](const ConstView& x) { return x.rank() == 2 || x.shape[0] == batch; };
  check(fits(a) && fits(b), ErrorKind::internal, "matmul: batches differ: a is ", a.shape,
        ", b is ", b.shape, ", y is ", y.shape);
  check(a.dtype == b.dtype && (y.dtype == a.dtype || (y.dtype == DType::f32 && is_half(a.dtype))),
        ErrorKind::internal, "matmul: types do not fit: a is ", a.dtype, ", b is ", b.dtype,
        ", y is ", y.dtype);
  check(bias.data == nullptr || (bias.elements() == y.size(-1) && bias.dense()),
        ErrorKind::internal, "matmul: takes a dense bias of one element a column: got ", bias.shape,
        " for y ", y.shape);
}

// One operand shared by the batch and rows of the other that follow each other across it: the
// batch is just more rows.
void fold_batch(Product& p) {
  if (p.batch > 1 && p.b_steps.batch == 0 && p.a_steps.column == 1 &&
      p.a_steps.batch == p.rows * p.a_steps.row && p.y_steps.batch == p.rows * p.y_steps.row) {
    p.rows *= p.batch;
    p.batch = 1;
    p.a_steps.batch = 0;
    p.y_steps.batch = 0;
  }
}

Product product_of(const ConstView& a, const ConstView& b, const View& y, Accumulate accumulate,
                   const ConstView& bias) {
  Product p;
  p.batch = y.rank() == 3 ? y.shape[0] : 1;
  p.rows = y.size(-2);
  p.columns = y.size(-1);
  p.inner = a.size(-1);
  p.a = a.data;
  p.b = b.data;
  p.y = y.data;
  p.bias = bias.data;
  p.a_steps = operand_steps("a", a.shape, a.strides);
  p.b_steps = operand_steps("b", b.shape, b.strides);
  p.y_steps = operand_steps("y", y.shape, y.strides);
  check(p.y_steps.column == 1, ErrorKind::internal,
        "matmul: the rows of y are not contiguous: ", "shape ", y.shape, ", strides ", y.strides);
  p.in = a.dtype;
  p.out = y.dtype;
  p.bias_type = bias.data == nullptr ? y.dtype : bias.dtype;
  p.accumulate = accumulate == Accumulate::yes;
  fold_batch(p);
  return p;
}

// y = 0 or y unchanged, plus the bias: a sum over no terms.
void without_terms(const Cpu& on, const View& y, Accumulate accumulate, const ConstView& bias) {
  if (accumulate == Accumulate::no) {
    fill(on, 0, y);
  }
  if (bias.data != nullptr) {
    Strides repeated = Strides::filled(y.rank(), 0);
    repeated[y.rank() - 1] = 1;
    kernels::accumulate(on, {bias.data, y.shape, repeated, bias.dtype}, y);
  }
}

bool few_rows_of_rows(const Product& p) {
  return p.in != DType::f64 && p.rows <= few_rows && p.b_steps.row == 1 && p.a_steps.column == 1;
}

}  // namespace

bool matmul_reads(const Shape& shape, const Strides& strides) {
  const int64_t rows = shape.size(-2);
  const int64_t columns = shape.size(-1);
  Product::Steps steps = steps_of(shape, strides);
  settle(steps, rows, columns);
  return (steps.column == 1 && steps.row >= columns) || (steps.row == 1 && steps.column >= rows);
}

void matmul(const Cpu& on, const ConstView& a, const ConstView& b, const View& y,
            Accumulate accumulate, const ConstView& bias) {
  check_views(a, b, y, bias);
  if (y.elements() == 0) {
    return;
  }
  if (a.size(-1) == 0) {
    without_terms(on, y, accumulate, bias);
    return;
  }
  const Product p = product_of(a, b, y, accumulate, bias);
  const bool checked = checking_products();
  const std::vector<double> before = checked ? sums_before(p) : std::vector<double>();
  if (p.in == DType::f64) {
    matmul_f64(p);
  } else if (few_rows_of_rows(p)) {
    matmul_few_rows({&p, 1});
  } else if (!matmul_onednn(p)) {
    check(is_half(p.in), ErrorKind::internal, "matmul: oneDNN has no product of ", name(p.in));
    matmul_widened(p);
  }
  if (checked) {
    check_product(p, before);
  }
}

void matmuls(const Cpu& on, const ConstView& a, std::span<const Factor> factors) {
  std::vector<Product> products;
  for (const auto& [b, y, bias] : factors) {
    if (a.elements() > 0 && y.elements() > 0 && y.dtype == factors.front().y.dtype) {
      check_views(a, b, y, bias);
      products.push_back(product_of(a, b, y, Accumulate::no, bias));
    }
  }
  const bool together = products.size() == factors.size() && !products.empty() &&
                        std::all_of(products.begin(), products.end(), few_rows_of_rows);
  if (together) {
    matmul_few_rows(products);
    for (const Product& product : products) {
      if (checking_products()) {
        check_product(product, {});
      }
    }
    return;
  }
  for (const auto& [b, y, bias] : factors) {
    matmul(on, a, b, y, Accumulate::no, bias);
  }
}

}  // namespace ingot::kernels
