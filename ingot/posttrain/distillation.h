#pragma once

#include "ingot/base/range.h"
#include "ingot/posttrain/divergence.h"
#include "ingot/posttrain/policy.h"

namespace ingot {

// A student learns from a teacher's distributions: over the tokens of answers,
//   loss = (1 − α) · CE(labels) + α · T² · D_β(teacher ‖ student)
// D_β as in divergence.h, with the temperature T. Hinton et al. 2015, arXiv:1503.02531, section 2
// (the factor T²). The divergence of a token does not depend on its label, but on the text before
// it: whose text that is, the data's, the teacher's or the student's own (GKD, arXiv:2306.13649),
// is a question of the batches.
struct DistillConfig {
  double alpha = 1;
  double temperature = 1;
  double beta = 0;
  int64_t top_k = 0;

  template <class V>
  void describe(V& v) {
    v("alpha", alpha, in(0, 1), "share of the teacher in the loss; the labels have the rest");
    v("temperature", temperature, above(0), "divides the logits of both");
    v("beta", beta, in(0, 1),
      "0: forward KL, 1: reverse KL, between: generalized Jensen-Shannon divergence");
    v("top_k", top_k, at_least(0),
      "tokens of the teacher's distribution that are used, the others as one; 0: all");
  }
};

// What a teacher says at the tokens of a batch that count, in the order of the labels.
class TeacherRows {
 public:
  virtual ~TeacherRows() = default;
  // D_β of rows [begin, end), from the student's logits of them. [R, V] → [R]
  virtual Tensor divergences(int64_t begin, int64_t end, const Tensor& student,
                             const DistillConfig& config) const = 0;
};
// What the teacher has to say on a batch; called once a micro-batch, before the student.
using Teacher = std::function<std::unique_ptr<TeacherRows>(const Batch&)>;

// A teacher that is a model of the same vocabulary. Its logits never exist whole.
Teacher model_teacher(Policy teacher);

// The batch as the teacher reads it: columns "teacher_ids" and "teacher_labels" where there are,
// another text before the same answers.
Batch read_by_teacher(const Batch& batch);
// The k likeliest tokens of such a teacher at every token that counts, M of them.
TopLogprobs top_logprobs_of(const Policy& teacher, const Batch& batch, int64_t k,
                            double temperature);

// Sum over and count of the tokens with labels. Metrics: divergence (before α and T²), hard_loss.
Objective distillation_objective(Policy student, Teacher teacher, const DistillConfig& config);

}  // namespace ingot
