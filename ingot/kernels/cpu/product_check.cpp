#include "ingot/kernels/cpu/product_check.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "ingot/base/error.h"
#include "ingot/base/half.h"
#include "ingot/kernels/cpu/parallel.h"
#include "ingot/kernels/product_check.h"

namespace ingot::kernels {
namespace {

thread_local int depth = 0;
thread_local int64_t checked = 0;

struct Planted {
  int64_t product = -1;  // how many products it still takes
  int64_t element = 0;
  int bit = 0;
};
thread_local Planted planted;

// One matrix of a batch, of elements of any type.
struct Matrix {
  const void* data = nullptr;
  DType dtype = DType::f32;
  int64_t row_step = 0;
  int64_t column_step = 0;

  double at(int64_t i, int64_t j) const {
    const int64_t place = i * row_step + j * column_step;
    switch (dtype) {
      case DType::bf16:
        return static_cast<double>(static_cast<float>(static_cast<const BF16*>(data)[place]));
      case DType::f16:
        return static_cast<double>(static_cast<float>(static_cast<const F16*>(data)[place]));
      case DType::f64: return static_cast<const double*>(data)[place];
      default: return static_cast<double>(static_cast<const float*>(data)[place]);
    }
  }
};

Matrix matrix_of(const void* data, const Product::Steps& steps, DType dtype, int64_t item) {
  const auto* bytes = static_cast<const std::byte*>(data);
  return {bytes + item * steps.batch * size_of(dtype), dtype, steps.row, steps.column};
}

struct Sum {
  double value = 0;
  double magnitude = 0;

  void add(double x) {
    value += x;
    magnitude += std::abs(x);
  }
};

std::vector<Sum> row_sums(const Matrix& x, int64_t rows, int64_t columns) {
  std::vector<Sum> out(static_cast<size_t>(rows));
  if (x.row_step < x.column_step) {  // columns follow one another in memory: go along them
    for (int64_t j = 0; j < columns; ++j) {
      for (int64_t i = 0; i < rows; ++i) {
        out[static_cast<size_t>(i)].add(x.at(i, j));
      }
    }
    return out;
  }
  parallel_for(rows, 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        out[static_cast<size_t>(i)].add(x.at(i, j));
      }
    }
  });
  return out;
}

double rounding_of(DType dtype) {
  switch (dtype) {
    case DType::bf16: return 0x1p-8;
    case DType::f16: return 0x1p-11;
    case DType::f64: return 0x1p-53;
    default: return 0x1p-24;
  }
}

// The column of row i whose number lies furthest from what it must be, where nothing was added to
// what y held before.
int64_t worst_column(const Product& p, const Matrix& a, const Matrix& b, const Matrix& y,
                     int64_t i) {
  int64_t worst = 0;
  double furthest = -1;
  for (int64_t j = 0; j < p.columns; ++j) {
    double exact = p.bias == nullptr ? 0 : Matrix{p.bias, p.bias_type, 0, 1}.at(0, j);
    for (int64_t k = 0; k < p.inner; ++k) {
      exact += a.at(i, k) * b.at(k, j);
    }
    double off = std::abs(y.at(i, j) - exact);
    off = std::isfinite(off) ? off : HUGE_VAL;
    if (off > furthest) {
      furthest = off;
      worst = j;
    }
  }
  return worst;
}

void flip_planted(const Product& p) {
  if (planted.product < 0 || planted.product-- > 0) {
    return;
  }
  auto* bytes = static_cast<unsigned char*>(p.y) + planted.element * size_of(p.out);
  bytes[planted.bit / 8] =
      static_cast<unsigned char>(bytes[planted.bit / 8] ^ (1U << (planted.bit % 8)));
}

}  // namespace

ProductChecks::ProductChecks() { ++depth; }
ProductChecks::~ProductChecks() { --depth; }
bool checking_products() { return depth > 0; }
int64_t products_checked() { return checked; }
void plant_flip(int64_t product, int64_t element, int bit) { planted = {product, element, bit}; }

std::vector<double> sums_before(const Product& p) {
  std::vector<double> out;
  for (int64_t item = 0; p.accumulate && item < p.batch; ++item) {
    for (const Sum& sum : row_sums(matrix_of(p.y, p.y_steps, p.out, item), p.rows, p.columns)) {
      out.push_back(sum.value);
    }
  }
  return out;
}

void check_product(const Product& p, const std::vector<double>& before) {
  ++checked;
  flip_planted(p);
  const double rounding = rounding_of(p.out);
  const double sum_rounding = (p.in == DType::f64 ? 0x1p-53 : 0x1p-24) *
                              std::sqrt(static_cast<double>(std::max<int64_t>(1, p.inner)));
  Sum bias;
  for (int64_t j = 0; p.bias != nullptr && j < p.columns; ++j) {
    bias.add(Matrix{p.bias, p.bias_type, 0, 1}.at(0, j));
  }
  for (int64_t item = 0; item < p.batch; ++item) {
    const Matrix a = matrix_of(p.a, p.a_steps, p.in, item);
    const Matrix b = matrix_of(p.b, p.b_steps, p.in, item);
    const Matrix y = matrix_of(p.y, p.y_steps, p.out, item);
    const std::vector<Sum> of_b = row_sums(b, p.inner, p.columns);
    const std::vector<Sum> of_y = row_sums(y, p.rows, p.columns);
    for (int64_t i = 0; i < p.rows; ++i) {
      Sum wanted;
      double terms = bias.magnitude;
      wanted.value = bias.value;
      for (int64_t k = 0; k < p.inner; ++k) {
        const double factor = a.at(i, k);
        wanted.value += factor * of_b[static_cast<size_t>(k)].value;
        terms += std::abs(factor) * of_b[static_cast<size_t>(k)].magnitude;
      }
      if (p.accumulate) {
        const double old = before[static_cast<size_t>(item * p.rows + i)];
        wanted.value += old;
        terms += std::abs(old);
      }
      const Sum& got = of_y[static_cast<size_t>(i)];
      if (!std::isfinite(wanted.value) || !std::isfinite(terms)) {
        continue;  // an operand is not finite, which others look for
      }
      const double limit = rounding * got.magnitude + 4 * sum_rounding * terms;
      const bool fits = std::abs(got.value - wanted.value) <= limit;
      check(fits, ErrorKind::numeric, "matmul: a checksum does not fit: row ", i, " of [", p.rows,
            ", ", p.columns, "] = [", p.rows, ", ", p.inner, "] x [", p.inner, ", ", p.columns,
            "] sums to ", got.value, " instead of ", wanted.value,
            fits || p.accumulate ? std::string()
                                 : concat(", furthest off in column ", worst_column(p, a, b, y, i)),
            "; this processor or its memory computes wrongly: take the machine out of use");
    }
  }
}

}  // namespace ingot::kernels
