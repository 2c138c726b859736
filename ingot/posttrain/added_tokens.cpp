#include "ingot/posttrain/added_tokens.h"

#include <algorithm>
#include <vector>

#include "ingot/base/error.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot {

Tensor with_added_rows(const Tensor& table, int64_t vocab, const AddedRows& added) {
  const int64_t rows = table.size(0), width = table.size(1);
  check(added.first >= 1 && added.first <= rows && added.first + added.count <= vocab &&
            rows <= vocab,
        ErrorKind::argument, "added tokens: rows ", added.first, " to ", added.first + added.count,
        " do not follow the trained rows of a table of ", rows, " in one of ", vocab);
  if (table.device().kind == DeviceKind::meta) {
    return empty({vocab, width}, DType::f32, table.device());
  }
  const Tensor old = dense(converted(table, DType::f32));
  const auto from = old.values<float>();
  std::vector<double> mean(static_cast<size_t>(width), 0.0);
  for (int64_t row = 0; row < added.first; ++row) {
    for (int64_t d = 0; d < width; ++d) {
      mean[static_cast<size_t>(d)] +=
          static_cast<double>(from[static_cast<size_t>(row * width + d)]);
    }
  }
  Tensor out = empty({vocab, width}, DType::f32);
  auto to = out.mutable_values<float>();
  for (int64_t row = 0; row < vocab; ++row) {
    const bool is_added = row >= added.first && row < added.first + added.count;
    for (int64_t d = 0; d < width; ++d) {
      const auto at = static_cast<size_t>(row * width + d);
      to[at] =
          is_added || row >= rows
              ? static_cast<float>(mean[static_cast<size_t>(d)] / static_cast<double>(added.first))
              : from[at];
    }
  }
  return out;
}

}  // namespace ingot
