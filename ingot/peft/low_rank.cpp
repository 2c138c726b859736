#include "ingot/peft/low_rank.h"

#include <algorithm>
#include <cmath>

#include "ingot/autograd/record.h"
#include "ingot/base/philox.h"
#include "ingot/ops/decompositions.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/matmul.h"
#include "ingot/ops/shape.h"
#include "ingot/quant/nf4.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot::peft {
namespace {

constexpr int64_t largest_exact = 256;
constexpr int64_t extra_columns = 16;
constexpr int rounds = 8;

// An orthonormal basis [M, k + 16] of about the space of the k largest left singular vectors of w.
Tensor leading_space(const Tensor& w, int64_t k) {
  const int64_t columns = std::min(k + extra_columns, w.size(0));
  const Philox random({1, 0, site_named("truncated_svd")});
  std::vector<double> start(static_cast<size_t>(w.size(1) * columns));
  for (size_t i = 0; i < start.size(); ++i) {
    start[i] = random.normal_f64(i);
  }
  Tensor q = qr(matmul(w, tensor_of(start, {w.size(1), columns}))).q;
  for (int round = 0; round < rounds; ++round) {
    q = qr(matmul(w, qr(matmul(transpose(w), q)).q)).q;
  }
  return q;
}

// The decomposition of a w with as many columns as rows at least. The right vectors come from
// wᵀU = V diag(s) by QR, which leaves them orthonormal where s is 0 too, and s exact to eps of the
// largest.
Svd svd_of_wide(const Tensor& w, int64_t k) {
  const bool exact = w.size(0) <= largest_exact;
  const Tensor space = exact ? Tensor() : leading_space(w, k);
  const Tensor rows = exact ? w : matmul(transpose(space), w);
  const Tensor leading = slice(symmetric_eigen(matmul(rows, transpose(rows))).vectors, 1, 0, k);
  const Tensor u = dense(exact ? leading : matmul(space, leading));
  const Qr right = qr(matmul(transpose(w), u));
  std::vector<double> s;
  std::vector<double> sign;
  for (int64_t i = 0; i < k; ++i) {
    const double r = right.r.values<double>()[static_cast<size_t>(i * k + i)];
    s.push_back(std::abs(r));
    sign.push_back(r < 0 ? -1 : 1);
  }
  return {u, tensor_of(s, {k}), right.q * tensor_of(sign, {k})};
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
  if (w.size(0) <= w.size(1)) {
    return svd_of_wide(w, k);
  }
  const Svd turned = svd_of_wide(transpose(w), k);
  return {turned.v, turned.s, turned.u};
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
