#include "ingot/data/sample.h"

#include <algorithm>

#include "ingot/base/error.h"
#include "ingot/tensor/factories.h"

namespace ingot {

int64_t Sample::inputs() const {
  int64_t out = 0;
  for (const TokenRow& document : documents) {
    out += document.size() - 1;
  }
  return out;
}

Batch batch_of(std::span<const Sample> samples, int64_t columns) {
  constexpr int64_t multiple = 16;  // few widths, so that primitives made for one serve again
  int64_t longest = 1;
  for (const Sample& sample : samples) {
    longest = std::max(longest, sample.inputs());
  }
  const int64_t T = columns > 0 ? columns : (longest + multiple - 1) / multiple * multiple;
  check(longest <= T, ErrorKind::argument, "batch: a sample of ", longest,
        " tokens does not fit rows of ", T);
  const Shape shape{static_cast<int64_t>(samples.size()), T};
  Batch batch;
  batch.ids = full(shape, 0, DType::i64);
  batch.labels = full(shape, static_cast<double>(ignored_label), DType::i64);
  batch.documents = full(shape, 0, DType::i32);
  batch.positions = full(shape, 0, DType::i64);
  int64_t* ids = batch.ids.mutable_values<int64_t>().data();
  int64_t* labels = batch.labels.mutable_values<int64_t>().data();
  int32_t* documents = batch.documents->mutable_values<int32_t>().data();
  int64_t* positions = batch.positions->mutable_values<int64_t>().data();
  for (const Sample& sample : samples) {
    int64_t at = 0;
    int32_t number = 0;
    for (const TokenRow& document : sample.documents) {
      for (int64_t t = 0; t + 1 < document.size(); ++t, ++at) {
        const auto next = static_cast<size_t>(t + 1);
        ids[at] = document.ids[next - 1];
        labels[at] = document.learnt[next] != 0 ? document.ids[next] : ignored_label;
        documents[at] = number;
        positions[at] = t;
      }
      ++number;
    }
    for (int64_t t = 0; at < T; ++t, ++at) {
      documents[at] = number;
      positions[at] = t;
    }
    ids += T;
    labels += T;
    documents += T;
    positions += T;
  }
  return batch;
}

}  // namespace ingot
