#define EIGEN_DONT_PARALLELIZE  // the same bits for any number of threads
#include "ingot/optim/spectral.h"

#include <Eigen/Eigenvalues>
#include <Eigen/QR>

#include "ingot/base/error.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Matrix matrix_of(const Tensor& a) {
  const Tensor wide = dense(converted(a, DType::f64));
  return Eigen::Map<const Matrix>(wide.values<double>().data(), a.size(0), a.size(1));
}

Tensor tensor_from_matrix(const Matrix& a, DType dtype) {
  Tensor out = empty({a.rows(), a.cols()}, DType::f64);
  Eigen::Map<Matrix>(out.mutable_values<double>().data(), a.rows(), a.cols()) = a;
  return converted(out, dtype);
}

Eigen::SelfAdjointEigenSolver<Matrix> solved(const Tensor& a) {
  const Matrix matrix = matrix_of(a);
  check(matrix.allFinite(), ErrorKind::numeric,
        "optimizer: statistics of the gradients are not finite; lower the learning rate");
  Eigen::SelfAdjointEigenSolver<Matrix> solver(matrix);
  check(solver.info() == Eigen::Success, ErrorKind::numeric, "optimizer: the eigenvalues of a ",
        a.size(0), " x ", a.size(0), " matrix of statistics did not converge");
  return solver;
}

bool only_shape(const Tensor& a) {
  return a.device().kind == DeviceKind::meta || a.elements() == 0;
}

}  // namespace

Tensor symmetric_power(const Tensor& a, double shift, double exponent) {
  if (only_shape(a)) {
    return empty(a.shape(), a.dtype(), a.device());
  }
  const auto solver = solved(a);
  const Eigen::VectorXd powers =
      (solver.eigenvalues().array().max(0.0) + shift).pow(exponent).matrix();
  const Matrix& vectors = solver.eigenvectors();
  return tensor_from_matrix(vectors * powers.asDiagonal() * vectors.transpose(), a.dtype());
}

Tensor eigenvectors(const Tensor& a) {
  if (only_shape(a)) {
    return empty(a.shape(), a.dtype(), a.device());
  }
  return tensor_from_matrix(solved(a).eigenvectors().rowwise().reverse(), a.dtype());
}

Tensor orthogonal_factor(const Tensor& a) {
  if (only_shape(a)) {
    return empty(a.shape(), a.dtype(), a.device());
  }
  const Eigen::HouseholderQR<Matrix> factors(matrix_of(a));
  return tensor_from_matrix(factors.householderQ() * Matrix::Identity(a.size(0), a.size(0)),
                            a.dtype());
}

}  // namespace ingot
