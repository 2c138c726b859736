#include "ingot/cli/on_policy.h"

#include <algorithm>

#include "ingot/base/philox.h"
#include "ingot/generate/generate.h"
#include "ingot/posttrain/answer_rows.h"
#include "ingot/tensor/copy.h"

namespace ingot {
namespace {

// A row of a batch as it was before it became one.
AnswerRow answer_of(const Batch& batch, int64_t row) {
  const auto T = static_cast<size_t>(batch.ids.size(1));
  const auto ids = batch.ids.values<int64_t>().subspan(static_cast<size_t>(row) * T, T);
  const auto labels = batch.labels.values<int64_t>().subspan(static_cast<size_t>(row) * T, T);
  size_t last = 0;
  for (size_t t = 0; t < T; ++t) {
    last = labels[t] != ignored_label ? t + 1 : last;
  }
  AnswerRow out;
  if (last == 0) {
    return out;
  }
  out.ids.assign(ids.begin(), ids.begin() + static_cast<int64_t>(last));
  out.ids.push_back(labels[last - 1]);
  out.learnt.push_back(0);
  for (size_t t = 0; t < last; ++t) {
    out.learnt.push_back(labels[t] != ignored_label ? 1 : 0);
  }
  return out;
}

// Of several documents in a row, the later ones would lose what stands before them.
void check_apart(const Batch& batch, const char* what) {
  if (!batch.documents.has_value()) {
    return;
  }
  const auto documents = batch.documents->values<int32_t>();
  const auto labels = batch.labels.values<int64_t>();
  for (size_t i = 0; i < documents.size(); ++i) {
    check(documents[i] == 0 || labels[i] == ignored_label, ErrorKind::config, what,
          ": rows must stand alone; set data.packing = \"none\"");
  }
}

}  // namespace

Batch on_policy_batch(const Decoder& model, const Batch& batch, const DistillRun& config,
                      const std::vector<int64_t>& stops) {
  Randomness& random = *model.randomness();
  if (!random.training || batch.ids.device().kind == DeviceKind::meta) {
    return batch;
  }
  check_apart(batch, "distill.on_policy");
  const RandomKey key = random.key(site_named("distill.on_policy"));
  const Philox draws(key);
  std::vector<AnswerRow> rows;
  std::vector<Tokens> prompts;
  std::vector<size_t> owners;
  for (int64_t r = 0; r < batch.ids.size(0); ++r) {
    AnswerRow row = answer_of(batch, r);
    const auto first = std::ranges::find(row.learnt, uint8_t{1}) - row.learnt.begin();
    if (first < static_cast<int64_t>(row.ids.size()) && first > 0 &&
        draws.uniform(static_cast<uint64_t>(r)) < static_cast<float>(config.on_policy)) {
      prompts.emplace_back(row.ids.begin(), row.ids.begin() + first);
      owners.push_back(rows.size());
    }
    rows.push_back(std::move(row));
  }
  if (prompts.empty()) {
    return batch;
  }
  GenerateConfig how;
  how.max_tokens = config.answer_tokens;
  how.seed = static_cast<int64_t>(draws.bits(1u << 20) >> 1);
  how.stop_tokens = stops;
  random.training = false;  // adapters drop nothing either
  const std::vector<Tokens> written = generate(model, prompts, how);
  random.training = true;
  for (size_t i = 0; i < owners.size(); ++i) {
    rows[owners[i]] = answer_row(prompts[i], written[i]);
  }
  std::erase_if(rows, [](const AnswerRow& row) { return row.answer_tokens() == 0; });
  return answer_batch(rows, model.config().context);
}

void add_context(Batch& batch, const TeacherContext& context) {
  if (context.tokens.empty() || batch.ids.device().kind == DeviceKind::meta) {
    return;
  }
  check_apart(batch, "distill.context");
  std::vector<AnswerRow> rows;
  for (int64_t r = 0; r < batch.ids.size(0); ++r) {
    AnswerRow row = answer_of(batch, r);
    const int64_t at = !row.ids.empty() && row.ids[0] == context.begin ? 1 : 0;
    row.ids.insert(row.ids.begin() + at, context.tokens.begin(), context.tokens.end());
    row.learnt.insert(row.learnt.begin() + at, context.tokens.size(), 0);
    rows.push_back(std::move(row));
  }
  const Batch seen =
      answer_batch(rows, batch.ids.size(1) + static_cast<int64_t>(context.tokens.size()) + 16);
  batch.columns.add("teacher_ids", seen.ids);
  batch.columns.add("teacher_labels", seen.labels);
}

}  // namespace ingot
