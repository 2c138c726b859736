#include "ingot/posttrain/sft.h"

#include "ingot/base/error.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/reduce.h"
#include "ingot/tensor/factories.h"

namespace ingot {

SftMean sft_mean_named(const std::string& name) {
  check(name == "token_mean" || name == "sequence_mean" || name == "mean_of_microbatch_means",
        ErrorKind::config, "sft: there is no mean '", name,
        "'; it is token_mean, sequence_mean or mean_of_microbatch_means");
  return name == "token_mean"      ? SftMean::token_mean
         : name == "sequence_mean" ? SftMean::sequence_mean
                                   : SftMean::mean_of_microbatch_means;
}

Loss sft_loss(const Tensor& losses, const Tensor& mask, SftMean mean) {
  check(losses.rank() == 2 && losses.shape() == mask.shape(), ErrorKind::shape,
        "sft_loss: takes losses and mask of shape [B, T]: losses are ", losses.shape(),
        ", mask is ", mask.shape());
  const Tensor learnt = losses * mask;
  const double tokens = sum(mask).item();
  Loss out;
  switch (mean) {
    case SftMean::token_mean:
      out.sum = sum(learnt);
      out.count = tokens;
      break;
    case SftMean::sequence_mean: {
      const Tensor counts = sum(mask, -1);  // [B]
      const Tensor counted = maximum(counts, full(Shape{}, 1, counts.dtype(), counts.device()));
      out.sum = sum(sum(learnt, -1) / counted);
      out.count = sum(minimum(counts, full(Shape{}, 1, counts.dtype(), counts.device()))).item();
      break;
    }
    case SftMean::mean_of_microbatch_means:
      out.sum = tokens > 0 ? sum(learnt) / tokens : sum(learnt);
      out.count = tokens > 0 ? 1 : 0;
      break;
  }
  return out;
}

Tensor mean_of(std::span<const Loss> parts) {
  Tensor total;
  double count = 0;
  for (const Loss& part : parts) {
    total = total.defined() ? total + part.sum : part.sum;
    count += part.count;
  }
  check(total.defined() && count > 0, ErrorKind::config, "sft: no token is learnt in ",
        parts.size(), " micro-batches");
  return total / count;
}

}  // namespace ingot
