#include "ingot/posttrain/distillation.h"

#include <algorithm>

#include "ingot/autograd/record.h"
#include "ingot/ops/counted_places.h"
#include "ingot/ops/cross_entropy.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/index.h"
#include "ingot/ops/linear.h"
#include "ingot/ops/linear_loss.h"
#include "ingot/ops/reduce.h"
#include "ingot/ops/shape.h"

namespace ingot {
namespace {

// Hidden states of the tokens that count, [M, D].
Tensor counted_rows(const Tensor& hidden, const Tensor& labels) {
  const Tensor flat = reshape(hidden, {labels.elements(), hidden.size(-1)});
  const Tensor places = counted_places(labels);
  return places.elements() == labels.elements() ? flat : index_select(flat, 0, places);
}

// The divergence of each row of a piece.
Tensor row_divergence(const Tensor& teacher, const Tensor& student, const DistillConfig& config) {
  if (config.top_k == 0 || config.top_k >= student.size(-1)) {
    return divergence(teacher, student, config.beta, config.temperature);
  }
  return top_divergence(top_logprobs(teacher, config.top_k, config.temperature), student,
                        config.temperature);
}

class ModelRows : public TeacherRows {
 public:
  ModelRows(const Policy& teacher, const Batch& batch) : softcap_(teacher.softcap) {
    const NoGrad quiet;
    const Batch seen = read_by_teacher(batch);
    rows_ = counted_rows(teacher.hidden(seen), seen.labels);
    head_ = detach(teacher.head());
  }

  const Tensor& hidden() const { return rows_; }
  Tensor logits(int64_t begin, int64_t end, DType dtype) const {
    const NoGrad quiet;
    const Tensor y = cast(linear(slice(rows_, 0, begin, end), head_), dtype);
    return softcap_ > 0 ? tanh(y / softcap_) * softcap_ : y;
  }
  Tensor divergences(int64_t begin, int64_t end, const Tensor& student,
                     const DistillConfig& config) const override {
    return row_divergence(logits(begin, end, student.dtype()), student, config);
  }

 private:
  Tensor rows_, head_;
  double softcap_;
};

}  // namespace

Batch read_by_teacher(const Batch& batch) {
  Batch seen = batch;
  if (batch.columns.contains("teacher_ids")) {
    seen.ids = batch.columns.at("teacher_ids");
    seen.labels = batch.columns.at("teacher_labels");
    seen.documents.reset();  // those of the student's rows, which are shorter
    seen.positions.reset();
  }
  return seen;
}

TopLogprobs top_logprobs_of(const Policy& teacher, const Batch& batch, int64_t k,
                            double temperature) {
  constexpr int64_t piece = 256;  // rows whose logits exist at a time
  const ModelRows rows(teacher, batch);
  const int64_t M = rows.hidden().size(0);
  const DType dtype = rows.hidden().dtype() == DType::f64 ? DType::f64 : DType::f32;
  TensorList tokens, logps;
  for (int64_t begin = 0; begin == 0 || begin < M; begin += piece) {
    const int64_t end = std::min(begin + piece, M);
    const TopLogprobs part = top_logprobs(rows.logits(begin, end, dtype), k, temperature);
    tokens.push_back(part.tokens);
    logps.push_back(part.logps);
  }
  return {concat(tokens, int64_t{0}), concat(logps, int64_t{0})};
}

Teacher model_teacher(Policy teacher) {
  return [teacher = std::move(teacher)](const Batch& batch) -> std::unique_ptr<TeacherRows> {
    return std::make_unique<ModelRows>(teacher, batch);
  };
}

Objective distillation_objective(Policy student, Teacher teacher, const DistillConfig& config) {
  check(config.top_k == 0 || config.beta == 0, ErrorKind::config,
        "distill.top_k: of a part of the teacher's distribution only the forward KL is known: beta "
        "is ",
        config.beta, "; set distill.beta = 0");
  return [student = std::move(student), teacher = std::move(teacher), config](const Batch& batch) {
    const std::unique_ptr<TeacherRows> rows = teacher(batch);
    const Tensor hidden = student.hidden(batch);
    const Tensor head = student.head();
    const Tensor counted = counted_rows(hidden, batch.labels);
    const double count = static_cast<double>(counted.size(0));
    const Tensor soft = sum_over_logits(
        counted, head,
        [&](const Tensor& logits, int64_t begin, int64_t end) {
          return sum(rows->divergences(begin, end, logits, config));
        },
        student.softcap);
    Loss loss;
    loss.count = count;
    loss.sum = soft * (config.alpha * config.temperature * config.temperature);
    const bool real = soft.device().kind != DeviceKind::meta;
    if (real) {
      loss.metrics["divergence"] = detach(soft).item();
    }
    if (config.alpha < 1) {
      CrossEntropyOptions options;
      options.ignore_index = ignored_label;
      options.softcap = student.softcap;
      const Tensor hard = linear_cross_entropy(hidden, head, batch.labels, options);
      loss.sum = loss.sum + hard * (1 - config.alpha);
      if (real) {
        loss.metrics["hard_loss"] = detach(hard).item();
      }
    }
    return loss;
  };
}

}  // namespace ingot
