#include "ingot/ops/singular_values.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ingot/base/error.h"
#include "ingot/ops/decompositions.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Map = Eigen::Map<Matrix>;
using ConstMap = Eigen::Map<const Matrix>;

constexpr int64_t rows_at_once = 256;

}  // namespace

GramMatrix::GramMatrix(int64_t rows, int64_t columns) : rows_(rows), columns_(columns) {
  check(rows > 0 && columns > 0, ErrorKind::argument, "singular values: of no matrix: ", rows,
        " rows, ", columns, " columns");
  if (rows >= columns) {
    sum_.assign(static_cast<size_t>(columns * columns), 0);
  }
}

void GramMatrix::add(std::span<const double> values) {
  if (rows_ < columns_) {
    matrix_.insert(matrix_.end(), values.begin(), values.end());
    taken_ = static_cast<int64_t>(matrix_.size()) / columns_;
  } else {
    row_.insert(row_.end(), values.begin(), values.end());
    while (static_cast<int64_t>(row_.size()) >= rows_at_once * columns_) {
      take_rows();
    }
    if (taken_ + static_cast<int64_t>(row_.size()) / columns_ >= rows_) {
      take_rows();
    }
  }
  check(taken_ <= rows_, ErrorKind::argument, "singular values: more than ", rows_, " rows of ",
        columns_);
}

// The rows that have come, a block at a time.
void GramMatrix::take_rows() {
  const int64_t rows =
      std::min<int64_t>(static_cast<int64_t>(row_.size()) / columns_, rows_at_once);
  const ConstMap block(row_.data(), rows, columns_);
  Map(sum_.data(), columns_, columns_)
      .selfadjointView<Eigen::Lower>()
      .rankUpdate(block.transpose());
  row_.erase(row_.begin(), row_.begin() + rows * columns_);
  taken_ += rows;
}

std::vector<double> GramMatrix::singular_values() const {
  check(taken_ == rows_, ErrorKind::argument, "singular values: ", taken_, " of ", rows_,
        " rows have come");
  Matrix gram;
  if (rows_ < columns_) {
    const ConstMap whole(matrix_.data(), rows_, columns_);
    gram = Matrix::Zero(rows_, rows_);
    gram.selfadjointView<Eigen::Lower>().rankUpdate(whole);
  } else {
    gram = ConstMap(sum_.data(), columns_, columns_);
  }
  check(std::isfinite(gram.trace()), ErrorKind::numeric,
        "singular values: the matrix has values that are not finite");
  const Tensor values = symmetric_eigenvalues(
      tensor_of(std::span<const double>(gram.data(), static_cast<size_t>(gram.size())),
                {gram.rows(), gram.cols()}));
  std::vector<double> out;
  for (const double value : values.values<double>()) {
    out.push_back(std::sqrt(std::max(0.0, value)));
  }
  return out;
}

double GramMatrix::tolerance() const {
  return static_cast<double>(std::max(rows_, columns_)) *
         static_cast<double>(std::numeric_limits<float>::epsilon());
}

std::vector<double> singular_values(const Tensor& a) {
  check(a.rank() == 2, ErrorKind::shape, "singular values: takes a matrix: got ", a.shape());
  GramMatrix gram(a.size(0), a.size(1));
  const Tensor wide = dense(converted(a, DType::f64));
  gram.add(wide.values<double>());
  return gram.singular_values();
}

int64_t numerical_rank(std::span<const double> singular_values, double tolerance) {
  const double limit = singular_values.empty() ? 0 : singular_values.front() * tolerance;
  return std::ranges::count_if(singular_values, [&](double one) { return one > limit; });
}

double effective_rank(std::span<const double> singular_values) {
  const double sum = std::accumulate(singular_values.begin(), singular_values.end(), 0.0);
  if (sum == 0) {
    return 0;
  }
  double entropy = 0;
  for (const double one : singular_values) {
    entropy -= one > 0 ? one / sum * std::log(one / sum) : 0;
  }
  return std::exp(entropy);
}

int64_t rank_holding(std::span<const double> singular_values, double share) {
  double all = 0;
  for (const double one : singular_values) {
    all += one * one;
  }
  double held = 0;
  int64_t count = 0;
  while (count < static_cast<int64_t>(singular_values.size()) && held < share * all) {
    held +=
        singular_values[static_cast<size_t>(count)] * singular_values[static_cast<size_t>(count)];
    ++count;
  }
  return count;
}

}  // namespace ingot
