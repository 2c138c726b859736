#include "ingot/train/multi_token_losses.h"

#include <algorithm>

#include "ingot/base/error.h"
#include "ingot/ops/elementwise.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot {

Tensor labels_ahead(const Tensor& labels, const Tensor& documents, int64_t k) {
  Tensor out = empty(labels.shape(), DType::i64, labels.device());
  if (labels.device().kind == DeviceKind::meta) {
    return out;
  }
  const Tensor source = dense(labels);
  const Tensor ids = documents.defined() ? dense(documents) : Tensor();
  const auto from = source.values<int64_t>();
  auto to = out.mutable_values<int64_t>();
  const auto T = static_cast<size_t>(labels.size(1));
  const auto ahead = static_cast<size_t>(k);
  for (size_t i = 0; i < to.size(); ++i) {
    const bool inside = i % T + ahead < T;
    const bool same =
        inside && (!ids.defined() || ids.values<int32_t>()[i] == ids.values<int32_t>()[i + ahead]);
    to[i] = same ? from[i + ahead] : ignored_label;
  }
  return out;
}

void add_multi_token_losses(Loss& loss, const std::vector<Tensor>& further,
                            const Tensor& output_weight, const Batch& batch, double weight,
                            const CrossEntropyOptions& options) {
  const Tensor documents = batch.documents.value_or(Tensor());
  for (size_t k = 1; k <= further.size(); ++k) {
    const Tensor labels = labels_ahead(batch.labels, documents, static_cast<int64_t>(k));
    const Tensor sum = linear_cross_entropy(further[k - 1], output_weight, labels, options);
    loss.sum = loss.sum + sum * (weight / static_cast<double>(further.size()));
    if (sum.device().kind != DeviceKind::meta) {
      loss.metrics[concat("mtp_loss_", k)] += sum.item();
    }
  }
}

}  // namespace ingot
