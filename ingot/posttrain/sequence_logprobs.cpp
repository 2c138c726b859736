#include "ingot/posttrain/sequence_logprobs.h"

#include "ingot/autograd/record.h"
#include "ingot/data/batch.h"
#include "ingot/ops/counted_places.h"
#include "ingot/ops/cross_entropy.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/index.h"
#include "ingot/ops/reduce.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

// log p of the M labels that count, and where each stands among all.
struct Counted {
  Tensor places;  // [M] i64
  Tensor logps;   // [M]
};

Counted counted_logprobs(const Tensor& hidden, const Tensor& head, const Tensor& labels,
                         double softcap) {
  check(hidden.rank() == 3 && labels.rank() == 2 && hidden.size(0) == labels.size(0) &&
            hidden.size(1) == labels.size(1),
        ErrorKind::shape, "sequence_logprobs: takes hidden [B, T, D] and labels [B, T]: hidden is ",
        hidden.shape(), ", labels are ", labels.shape());
  const Tensor places = counted_places(labels);
  const int64_t rows = labels.elements();
  const bool all = places.elements() == rows;
  const Tensor flat = reshape(hidden, {rows, hidden.size(2)});
  const Tensor flat_labels = reshape(contiguous(labels), {rows});
  return {places, linear_log_probability(all ? flat : index_select(flat, 0, places), head,
                                         all ? flat_labels : index_select(flat_labels, 0, places),
                                         {.softcap = softcap, .ignore_index = ignored_label})};
}

}  // namespace

Tensor SequenceLogprobs::means() const { return sums / lengths; }

Tensor token_logprobs(const Tensor& hidden, const Tensor& head, const Tensor& labels,
                      double softcap) {
  const Counted found = counted_logprobs(hidden, head, labels, softcap);
  const Tensor none = zeros({labels.elements()}, found.logps.dtype(), labels.device());
  return reshape(scatter_add(none, 0, found.places, found.logps), labels.shape());
}

SequenceLogprobs sequence_logprobs(const Tensor& hidden, const Tensor& head, const Tensor& labels,
                                   double softcap) {
  const Tensor logps = token_logprobs(hidden, head, labels, softcap);
  const Tensor counts = not_equal(labels, scalar(ignored_label, labels.dtype(), labels.device()));
  return {sum(logps, -1), sum(cast(counts, logps.dtype()), -1)};
}

SequenceLogprobs rows_of(const SequenceLogprobs& all, int64_t begin, int64_t end) {
  return {slice(all.sums, 0, begin, end), slice(all.lengths, 0, begin, end)};
}

}  // namespace ingot
