#include "ingot/ops/info_nce.h"

#include <limits>

#include "ingot/ops/cross_entropy.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/matmul.h"
#include "ingot/ops/reduce.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

// Rows of length 1, in the type that sums are made in.
Tensor unit_rows(const Tensor& x) {
  const Tensor wide = cast(x, accumulator(x.dtype()));
  const Tensor squares = sum(square(wide), -1, Keep::yes);
  return wide * rsqrt(clamp(squares, 1e-24, std::numeric_limits<double>::infinity()));
}

}  // namespace

Tensor scaled_cosines(const Tensor& query, const Tensor& key, double temperature) {
  check(query.rank() == 2 && key.rank() == 2 && query.size(1) == key.size(1), ErrorKind::shape,
        "info_nce: takes queries [N, D] and keys [M, D]: query is ", query.shape(), ", key is ",
        key.shape());
  check(is_float(query.dtype()) && query.dtype() == key.dtype(), ErrorKind::dtype,
        "info_nce: takes queries and keys of one floating-point type: query is ", query.dtype(),
        ", key is ", key.dtype());
  check(temperature > 0, ErrorKind::argument, "info_nce: the temperature must be above 0: got ",
        temperature);
  return matmul(unit_rows(query), transpose(unit_rows(key))) / temperature;
}

Tensor info_nce(const Tensor& query, const Tensor& key, double temperature, Contrast contrast) {
  check(query.shape() == key.shape() && query.rank() == 2 && query.size(0) > 0, ErrorKind::shape,
        "info_nce: every query needs its key: query is ", query.shape(), ", key is ", key.shape());
  const Tensor scores = scaled_cosines(query, key, temperature);
  const Tensor own = arange(query.size(0), DType::i64, query.device());
  const Tensor loss = cross_entropy(scores, own, Reduction::mean);
  if (contrast == Contrast::one_way) {
    return loss;
  }
  return (loss + cross_entropy(transpose(scores), own, Reduction::mean)) * 0.5;
}

}  // namespace ingot
