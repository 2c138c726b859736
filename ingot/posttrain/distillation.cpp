#include "ingot/posttrain/distillation.h"

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

class ModelRows : public TeacherRows {
 public:
  ModelRows(Tensor rows, Tensor head, double softcap)
      : rows_(std::move(rows)), head_(std::move(head)), softcap_(softcap) {}

  Tensor logits(int64_t begin, int64_t end, DType dtype) const override {
    const NoGrad quiet;
    const Tensor y = cast(linear(slice(rows_, 0, begin, end), head_), dtype);
    return softcap_ > 0 ? tanh(y / softcap_) * softcap_ : y;
  }

 private:
  Tensor rows_, head_;
  double softcap_;
};

// The divergence of each row of a piece.
Tensor row_divergence(const Tensor& teacher, const Tensor& student, const DistillConfig& config) {
  if (config.top_k == 0 || config.top_k >= student.size(-1)) {
    return divergence(teacher, student, config.beta, config.temperature);
  }
  return top_divergence(top_logprobs(teacher, config.top_k, config.temperature), student,
                        config.temperature);
}

}  // namespace

Teacher model_teacher(Policy teacher) {
  return [teacher = std::move(teacher)](const Batch& batch) -> std::unique_ptr<TeacherRows> {
    const NoGrad quiet;
    const bool own = batch.columns.contains("teacher_ids");
    Batch seen = batch;
    if (own) {  // the teacher reads another text before the same answers
      seen.ids = batch.columns.at("teacher_ids");
      seen.labels = batch.columns.at("teacher_labels");
      seen.documents.reset();  // those of the student's rows, which are shorter
      seen.positions.reset();
    }
    return std::make_unique<ModelRows>(counted_rows(teacher.hidden(seen), seen.labels),
                                       detach(teacher.head()), teacher.softcap);
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
          return sum(row_divergence(rows->logits(begin, end, logits.dtype()), logits, config));
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
