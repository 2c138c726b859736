#include "ingot/posttrain/teacher_cache.h"

#include <gtest/gtest.h>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/record.h"
#include "ingot/base/files.h"
#include "ingot/io/safetensors.h"
#include "ingot/ops/index.h"
#include "ingot/ops/shape.h"
#include "ingot/posttrain/answer_rows.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "tests/support/op_case.h"
#include "tests/support/paths.h"

namespace ingot::testing {
namespace {

constexpr int64_t kinds_of_token = 23, kept = 5;

// A model whose next token depends on the last one alone.
struct Bigrams {
  Tensor table, head;
  explicit Bigrams(uint64_t seed)
      : table(random_tensor({kinds_of_token, 6}, seed)),
        head(random_tensor({kinds_of_token, 6}, seed + 1)) {}
  Policy policy() const {
    return {
        [this](const Batch& batch) {
          const Tensor flat = reshape(batch.ids, {batch.ids.elements()});
          return reshape(index_select(table, 0, flat), {batch.ids.size(0), batch.ids.size(1), 6});
        },
        [this] { return head; }, 0};
  }
};

// Rows `first`, `first` + 1 and `first` + 2 of some: answers of different lengths.
Batch rows_from(int64_t first) {
  std::vector<AnswerRow> rows;
  for (int64_t i = first; i < first + 3; ++i) {
    std::vector<int64_t> prompt = {i % kinds_of_token, 3}, answer;
    for (int64_t t = 0; t < 2 + i % 4; ++t) {
      answer.push_back((5 * t + 7 * i) % kinds_of_token);
    }
    rows.push_back(answer_row(prompt, answer));
  }
  return answer_batch(rows, 64);
}

class TeacherCaches : public ::testing::Test {
 protected:
  TeacherCache::Key key{"abc", "f64", kept, 2};
  TemporaryFolder work;
  Bigrams teacher_model{1}, student_model{11};
  int64_t asked = 0;

  std::filesystem::path folder() const { return work / "cache"; }
  Teacher teacher(TeacherCache& cache) {
    return cached_teacher(cache, [this](const Batch& batch) {
      ++asked;
      return top_logprobs_of(teacher_model.policy(), batch, kept, 2);
    });
  }
  // The loss of some batches, and the gradient with respect to the student's head.
  std::pair<double, Tensor> loss_with(const Teacher& from, const std::vector<Batch>& batches) {
    Bigrams student(11);
    require_grad(student.head);
    const Objective objective =
        distillation_objective(student.policy(), from, DistillConfig{0.7, 2, 0, kept});
    double total = 0;
    for (const Batch& batch : batches) {
      const Loss loss = objective(batch);
      backward(loss.sum);
      total += loss.sum.item();
    }
    return {total, grad(student.head)};
  }
};

TEST_F(TeacherCaches, GiveTheLossAndGradientOfTheLiveTeacher) {
  const std::vector<Batch> batches = {rows_from(0), rows_from(3), rows_from(1)};
  const auto live = loss_with(model_teacher(teacher_model.policy()), batches);
  TeacherCache cache(folder(), key);
  for (int epoch = 0; epoch < 2; ++epoch) {
    const auto found = loss_with(teacher(cache), batches);
    // Log-probabilities are kept in f32.
    EXPECT_NEAR(found.first, live.first, 1e-6 * std::abs(live.first));
    EXPECT_LE(difference(found.second, live.second), 1e-6);
    EXPECT_EQ(asked, 2) << "of rows 1 to 3 all are known";
  }
  EXPECT_EQ(cache.rows(), 6);
}

TEST_F(TeacherCaches, GoOnWhereAKilledRunLeftOff) {
  {
    TeacherCache cache(folder(), key);
    loss_with(teacher(cache), {rows_from(0)});
    cache.save();
    loss_with(teacher(cache), {rows_from(3)});
    std::filesystem::copy(folder(), work / "killed");  // what a run leaves that ends here
  }
  TeacherCache killed(work / "killed", key);
  EXPECT_EQ(killed.rows(), 3);
  asked = 0;
  loss_with(teacher(killed), {rows_from(0), rows_from(3)});
  EXPECT_EQ(asked, 1);
  TeacherCache whole(folder(), key);  // the one that ended wrote everything
  EXPECT_EQ(whole.rows(), 6);
  asked = 0;
  loss_with(teacher(whole), {rows_from(0), rows_from(3), rows_from(2)});
  EXPECT_EQ(asked, 0);
}

TEST_F(TeacherCaches, AreRefusedWhereTheTeacherOrTheSettingsAreOthers) {
  {
    TeacherCache cache(folder(), key);
    loss_with(teacher(cache), {rows_from(0)});
  }
  const auto refused = [&](TeacherCache::Key other, const std::string& message) {
    expect_error([&] { TeacherCache(folder(), other); }, message);
  };
  refused({"abd", "f64", kept, 2},
          "holds answers of another teacher.weights: abc, this run's is abd; remove the folder or "
          "name another in distill.cache");
  refused({"abc", "f32", kept, 2}, "another teacher.dtype: f64, this run's is f32");
  refused({"abc", "f64", 4, 2}, "another teacher.top_k: 5, this run's is 4");
  refused({"abc", "f64", kept, 1}, "another teacher.temperature: 2.000000, this run's is 1.000000");
  TensorDict foreign;
  foreign.add("x", zeros({1}, DType::f32));
  write_safetensors(folder() / "x.safetensors", foreign);
  refused(key, "is no file of a teacher's answers");
  write_file(folder() / "x.safetensors", "not a tensor file");
  expect_error([&] { TeacherCache(folder(), key); }, "x.safetensors");
}

}  // namespace
}  // namespace ingot::testing
