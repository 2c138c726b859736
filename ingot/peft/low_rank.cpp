#include "ingot/peft/low_rank.h"

#include <Eigen/QR>
#include <Eigen/SVD>
#include <algorithm>

#include "ingot/autograd/record.h"
#include "ingot/base/philox.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/matmul.h"
#include "ingot/ops/shape.h"
#include "ingot/quant/nf4.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot::peft {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr int64_t largest_exact = 256;
constexpr int64_t extra_columns = 16;
constexpr int rounds = 8;

Eigen::Map<const Matrix> matrix_of(const Tensor& x) {
  return {x.values<double>().data(), x.size(0), x.size(1)};
}

Tensor tensor_from(const Matrix& m) {
  return tensor_of(std::span<const double>(m.data(), static_cast<size_t>(m.size())),
                   {m.rows(), m.cols()});
}

Matrix orthonormal(const Matrix& m) {
  const Eigen::HouseholderQR<Matrix> qr(m);
  return qr.householderQ() * Matrix::Identity(m.rows(), m.cols());
}

// An orthonormal basis of about the space of the k largest left singular vectors.
Matrix leading_space(const Eigen::Map<const Matrix>& w, int64_t k) {
  const int64_t columns = std::min(k + extra_columns, std::min(w.rows(), w.cols()));
  const Philox random({1, 0, site_named("truncated_svd")});
  Matrix start(w.cols(), columns);
  for (int64_t i = 0; i < start.size(); ++i) {
    start.data()[i] = random.normal_f64(static_cast<uint64_t>(i));
  }
  Matrix q = orthonormal(w * start);
  for (int round = 0; round < rounds; ++round) {
    const Matrix back = orthonormal(w.transpose() * q);
    q = orthonormal(w * back);
  }
  return q;
}

Svd svd_of(const Matrix& left, const Eigen::VectorXd& values, const Matrix& right, int64_t k) {
  const std::vector<double> s(values.data(), values.data() + k);
  return {tensor_from(left.leftCols(k)), tensor_of(s, {k}), tensor_from(right.leftCols(k))};
}

Tensor wide(const Tensor& w) { return dense(converted(detach(w), DType::f64)); }

// A and B of the same norms whose product is U diag(s) Vᵀ / scaling.
LowRankStart balanced(const Svd& svd, double scaling) {
  const Tensor root = sqrt(svd.s / scaling);
  return {contiguous(transpose(svd.v * root)), svd.u * root, {}};
}

Tensor rounded_to_nf4(const Tensor& w, const LoftqOptions& options) {
  const Tensor values = dense(converted(w, DType::f32));
  const quant::Nf4Codes codes = quant::nf4_codes(
      values, options.block,
      options.double_scales ? quant::ScaleStorage::doubled : quant::ScaleStorage::f32);
  Tensor out = empty(w.shape(), DType::f32);
  quant::nf4_decode(codes, 0, out.mutable_values<float>());
  return converted(out, DType::f64);
}

}  // namespace

Svd truncated_svd(const Tensor& given, int64_t k) {
  check(given.rank() == 2 && k >= 1 && k <= std::min(given.size(0), given.size(1)),
        ErrorKind::argument,
        "truncated_svd: takes a matrix and a rank up to its smaller side: got ", given.shape(),
        ", rank ", k);
  const Tensor w = wide(given);
  const auto m = matrix_of(w);
  constexpr unsigned thin = Eigen::ComputeThinU | Eigen::ComputeThinV;
  if (std::min(m.rows(), m.cols()) <= largest_exact) {
    const Eigen::BDCSVD<Matrix> svd(m, thin);
    return svd_of(svd.matrixU(), svd.singularValues(), svd.matrixV(), k);
  }
  const Matrix q = leading_space(m, k);
  const Eigen::BDCSVD<Matrix> svd(Matrix(q.transpose() * m), thin);
  return svd_of(q * svd.matrixU(), svd.singularValues(), svd.matrixV(), k);
}

LowRankStart pissa(const Tensor& w, int64_t rank, double scaling) {
  LowRankStart out = balanced(truncated_svd(w, rank), scaling);
  out.rest = wide(w) - matmul(out.b, out.a) * scaling;
  return out;
}

LowRankStart loftq(const Tensor& w, const LoftqOptions& options) {
  check(options.iterations >= 1, ErrorKind::argument, "loftq: needs an iteration at least: got ",
        options.iterations);
  const Tensor whole = wide(w);
  Tensor residual = whole;
  LowRankStart out;
  for (int64_t i = 0; i < options.iterations; ++i) {
    const Tensor rounded = rounded_to_nf4(residual, options);
    out = balanced(truncated_svd(whole - rounded, options.rank), options.scaling);
    out.rest = rounded;
    out.unrounded = residual;
    residual = whole - matmul(out.b, out.a) * options.scaling;
  }
  return out;
}

}  // namespace ingot::peft
