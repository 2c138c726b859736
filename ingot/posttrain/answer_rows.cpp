#include "ingot/posttrain/answer_rows.h"

#include <algorithm>

#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

int64_t columns_for(int64_t inputs) {
  constexpr int64_t multiple = 16;
  return std::max<int64_t>(1, (inputs + multiple - 1) / multiple) * multiple;
}

void check_row(const AnswerRow& row, int64_t inputs, int64_t longest) {
  check(row.ids.size() == row.learnt.size(), ErrorKind::argument, "answer_batch: a row has ",
        row.ids.size(), " tokens and ", row.learnt.size(), " marks");
  check(row.answer_tokens() > 0, ErrorKind::argument, "answer_batch: a row's answer has no token");
  check(inputs <= longest, ErrorKind::argument,
        "answer_batch: a row is longer than allowed: it has ", inputs, " inputs, allowed are ",
        longest);
}

// A batch whose rows have room for `inputs` columns.
Batch padded(int64_t rows, int64_t inputs, int64_t longest) {
  const int64_t T = std::min(columns_for(inputs), std::max<int64_t>(longest, 1));
  Batch out;
  out.ids = full({rows, T}, 0, DType::i64);
  out.labels = full({rows, T}, static_cast<double>(ignored_label), DType::i64);
  return out;
}

}  // namespace

int64_t AnswerRow::answer_tokens() const {
  return learnt.empty() ? 0 : std::count(learnt.begin() + 1, learnt.end(), uint8_t{1});
}

AnswerRow answer_row(std::span<const int64_t> prompt, std::span<const int64_t> answer) {
  AnswerRow out;
  out.ids.assign(prompt.begin(), prompt.end());
  out.ids.insert(out.ids.end(), answer.begin(), answer.end());
  out.learnt.assign(prompt.size(), 0);
  out.learnt.resize(out.ids.size(), 1);
  return out;
}

Batch answer_batch(std::span<const AnswerRow> rows, int64_t longest) {
  int64_t most = 1;
  for (const AnswerRow& row : rows) {
    const auto inputs = static_cast<int64_t>(row.ids.size()) - 1;
    check_row(row, inputs, longest);
    most = std::max(most, inputs);
  }
  Batch out = padded(static_cast<int64_t>(rows.size()), most, longest);
  auto ids = out.ids.mutable_values<int64_t>();
  auto labels = out.labels.mutable_values<int64_t>();
  const auto T = static_cast<size_t>(out.ids.size(1));
  for (size_t r = 0; r < rows.size(); ++r) {
    for (size_t t = 0; t + 1 < rows[r].ids.size(); ++t) {
      ids[r * T + t] = rows[r].ids[t];
      labels[r * T + t] = rows[r].learnt[t + 1] != 0 ? rows[r].ids[t + 1] : ignored_label;
    }
  }
  return out;
}

Batch scored_batch(std::span<const AnswerRow> rows, int64_t longest) {
  int64_t most = 1;
  std::vector<int64_t> ends;
  for (const AnswerRow& row : rows) {
    const auto inputs = static_cast<int64_t>(row.ids.size());
    check_row(row, inputs, longest);
    most = std::max(most, inputs);
    ends.push_back(inputs - 1);
  }
  Batch out = padded(static_cast<int64_t>(rows.size()), most, longest);
  auto ids = out.ids.mutable_values<int64_t>();
  const auto T = static_cast<size_t>(out.ids.size(1));
  for (size_t r = 0; r < rows.size(); ++r) {
    std::copy(rows[r].ids.begin(), rows[r].ids.end(), ids.begin() + static_cast<int64_t>(r * T));
  }
  out.columns.add("ends", tensor_of(ends, {static_cast<int64_t>(ends.size())}));
  return out;
}

}  // namespace ingot
