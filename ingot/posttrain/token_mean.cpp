#include "ingot/posttrain/token_mean.h"

#include "ingot/ops/elementwise.h"
#include "ingot/ops/reduce.h"

namespace ingot {
namespace {

// Of nothing there is 1, so that its mean is 0.
Tensor at_least_one(const Tensor& counts) {
  return clamp(counts, 1, std::numeric_limits<double>::infinity());
}

}  // namespace

Tensor mean_of_tokens(const Tensor& x, const Tensor& mask, const TokenMean& how) {
  check(x.rank() == 2 && x.shape() == mask.shape(), ErrorKind::shape,
        "mean_of_tokens: losses and mask must be [B, T] alike: losses are ", x.shape(), ", mask ",
        mask.shape());
  const Tensor counted = x * mask;
  if (how.over == "sequence_mean") {
    return mean(sum(counted, 1) / at_least_one(sum(mask, 1)));
  }
  if (how.over == "constant") {
    check(how.max_length >= 1, ErrorKind::config,
          "max_length: averaging over a constant needs the longest answer that may be written");
    return sum(counted) / static_cast<double>(x.size(0) * how.max_length);
  }
  check(how.over == "token_mean", ErrorKind::config, "over: '", how.over,
        "' is none of token_mean, sequence_mean, constant");
  return sum(counted) / at_least_one(sum(mask));
}

}  // namespace ingot
