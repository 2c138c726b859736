#include "ingot/data/batch.h"

#include <algorithm>

#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"

namespace ingot {

Batch batch_of(std::span<const TokenWindow> windows, int64_t T) {
  const auto B = static_cast<int64_t>(windows.size());
  Batch batch{full({B, T}, 0, DType::i64),
              full({B, T}, static_cast<double>(ignored_label), DType::i64),
              {},
              {}};
  int64_t* ids = batch.ids.mutable_values<int64_t>().data();
  int64_t* labels = batch.labels.mutable_values<int64_t>().data();
  for (const TokenWindow& window : windows) {
    const auto length = static_cast<int64_t>(window.size());
    check(length >= 2 && length <= T + 1, ErrorKind::argument, "batch: a window of ", length,
          " tokens does not fit rows of ", T, ": it takes 2 to ", T + 1);
    std::copy(window.begin(), window.end() - 1, ids);
    std::copy(window.begin() + 1, window.end(), labels);
    ids += T;
    labels += T;
  }
  return batch;
}

Batch row_of(const Batch& batch, int64_t row) {
  const auto part = [row](const Tensor& x) { return copy_of(sliced(x, 0, row, row + 1)); };
  Batch out{part(batch.ids), part(batch.labels), {}};
  if (batch.documents) {
    out.documents = part(*batch.documents);
  }
  if (batch.positions) {
    out.positions = part(*batch.positions);
  }
  for (const auto& [name, column] : batch.columns) {
    out.columns.add(name, part(column));
  }
  return out;
}

Batch batch_from(const Dataset<TokenWindow>& data, int64_t first, int64_t count, int64_t T) {
  std::vector<TokenWindow> windows;
  for (int64_t i = first; i < first + count; ++i) {
    windows.push_back(data.get(i));
  }
  return batch_of(windows, T);
}

}  // namespace ingot
