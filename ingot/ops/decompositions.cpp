#define EIGEN_DONT_PARALLELIZE  // the same bits for any number of threads
#include "ingot/ops/decompositions.h"

#include <Eigen/Eigenvalues>
#include <Eigen/QR>

#include "ingot/base/error.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"

namespace ingot {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Solver = Eigen::SelfAdjointEigenSolver<Matrix>;

Matrix matrix_of(const Tensor& a) {
  const Tensor wide = dense(converted(a, DType::f64));
  return Eigen::Map<const Matrix>(wide.values<double>().data(), a.size(0), a.size(1));
}

Tensor tensor_from(const Matrix& a, DType dtype) {
  Tensor out = empty({a.rows(), a.cols()}, DType::f64);
  Eigen::Map<Matrix>(out.mutable_values<double>().data(), a.rows(), a.cols()) = a;
  return converted(out, dtype);
}

Tensor falling(const Eigen::VectorXd& rising, DType dtype) {
  const Eigen::VectorXd values = rising.reverse();
  return reshaped(tensor_from(values, dtype), {values.size()});
}

void check_square(const Tensor& a) {
  check(a.rank() == 2 && a.size(0) == a.size(1), ErrorKind::shape,
        "eigenvalues: takes a square matrix: got ", a.shape());
}

Solver solved(const Tensor& a, int options) {
  const Matrix matrix = matrix_of(a);
  check(matrix.allFinite(), ErrorKind::numeric, "eigenvalues: a matrix ", a.shape(),
        " has values that are not finite; where it is an optimizer's, "
        "lower the learning rate");
  Solver solver(matrix, options);
  check(solver.info() == Eigen::Success, ErrorKind::numeric, "eigenvalues: of a matrix ", a.shape(),
        " did not converge");
  return solver;
}

bool only_shape(const Tensor& a) {
  return a.device().kind == DeviceKind::meta || a.elements() == 0;
}

Tensor like(const Tensor& a, Shape shape) { return empty(std::move(shape), a.dtype(), a.device()); }

}  // namespace

SymmetricEigen symmetric_eigen(const Tensor& a) {
  check_square(a);
  if (only_shape(a)) {
    return {like(a, {a.size(0)}), like(a, a.shape())};
  }
  const Solver solver = solved(a, Eigen::ComputeEigenvectors);
  return {falling(solver.eigenvalues(), a.dtype()),
          tensor_from(solver.eigenvectors().rowwise().reverse(), a.dtype())};
}

Tensor symmetric_eigenvalues(const Tensor& a) {
  check_square(a);
  if (only_shape(a)) {
    return like(a, {a.size(0)});
  }
  return falling(solved(a, Eigen::EigenvaluesOnly).eigenvalues(), a.dtype());
}

Tensor symmetric_power(const Tensor& a, double shift, double exponent) {
  check_square(a);
  if (only_shape(a)) {
    return like(a, a.shape());
  }
  const Solver solver = solved(a, Eigen::ComputeEigenvectors);
  const Eigen::VectorXd powers =
      (solver.eigenvalues().array().max(0.0) + shift).pow(exponent).matrix();
  const Matrix& vectors = solver.eigenvectors();
  return tensor_from(vectors * powers.asDiagonal() * vectors.transpose(), a.dtype());
}

Qr qr(const Tensor& a) {
  check(a.rank() == 2 && a.size(0) >= a.size(1), ErrorKind::shape,
        "qr: takes a matrix of at least as many rows as columns: got ", a.shape());
  if (only_shape(a)) {
    return {like(a, a.shape()), like(a, {a.size(1), a.size(1)})};
  }
  const Eigen::HouseholderQR<Matrix> factors(matrix_of(a));
  const Matrix r = factors.matrixQR().topRows(a.size(1)).template triangularView<Eigen::Upper>();
  return {tensor_from(factors.householderQ() * Matrix::Identity(a.size(0), a.size(1)), a.dtype()),
          tensor_from(r, a.dtype())};
}

}  // namespace ingot
