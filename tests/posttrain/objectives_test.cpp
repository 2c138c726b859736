#include <gtest/gtest.h>

#include <cmath>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/record.h"
#include "ingot/models/decoder.h"
#include "ingot/nn/initialise.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/reduce.h"
#include "ingot/ops/shape.h"
#include "ingot/ops/softmax.h"
#include "ingot/posttrain/answer_rows.h"
#include "ingot/posttrain/distillation.h"
#include "ingot/posttrain/preference_objective.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

std::unique_ptr<Decoder> tiny(uint64_t seed) {
  DecoderConfig c;
  c.vocab = 19;
  c.width = 8;
  c.layers = 1;
  c.heads = 2;
  c.hidden = 12;
  c.context = 64;
  auto model = std::make_unique<Decoder>(c, DType::f64);
  nn::initialise(*model, {"normal", 0.4}, seed);
  model->require_gradients();
  return model;
}

Policy policy_of(const Decoder& model) {
  return {[&model](const Batch& batch) { return model.hidden(batch.ids); },
          [&model] { return model.output_weight(); }, 0};
}
Reference reference_of(const Decoder& model) {
  return [&model](const Batch& batch) {
    const NoGrad quiet;
    return logprobs_of(policy_of(model), batch);
  };
}

// Pair i: a prompt of 2 + i tokens with answers of different lengths.
AnswerRow some_answer(int64_t i, int64_t length, int64_t salt) {
  std::vector<int64_t> prompt, answer;
  for (int64_t t = 0; t < 2 + i; ++t) {
    prompt.push_back((3 * t + i) % 19);
  }
  for (int64_t t = 0; t < length; ++t) {
    answer.push_back((5 * t + salt * i + salt) % 19);
  }
  return answer_row(prompt, answer);
}

// Pairs [begin, end): chosen rows first.
std::vector<AnswerRow> some_pairs(int64_t begin, int64_t end) {
  std::vector<AnswerRow> rows;
  for (int64_t i = begin; i < end; ++i) {
    rows.push_back(some_answer(i, 3 + i % 3, 1));
  }
  for (int64_t i = begin; i < end; ++i) {
    rows.push_back(some_answer(i, 5 - i % 2, 4));
  }
  return rows;
}

TensorDict gradients_of(const Decoder& model) {
  return model.parameters().mapped([](const std::string&, const Tensor& p) {
    const Tensor g = grad(p).defined() ? copy_of(grad(p)) : zeros(p.shape(), p.dtype());
    clear_grad(p);
    return g;
  });
}

double largest_difference(const TensorDict& a, const TensorDict& b) {
  double out = 0;
  for (const auto& [name, x] : a) {
    out = std::max(out, difference(x, b.at(name)));
  }
  return out;
}

TEST(AnswerBatch, MarksTheAnswersAndPadsBehindThem) {
  const std::vector<AnswerRow> rows = {
      answer_row(std::vector<int64_t>{7, 8}, std::vector<int64_t>{9}),
      answer_row(std::vector<int64_t>{1}, std::vector<int64_t>{2, 3, 4})};
  const Batch batch = answer_batch(rows, 64);
  EXPECT_EQ(batch.ids.shape(), (Shape{2, 16}));
  const auto ids = batch.ids.values<int64_t>();
  const auto labels = batch.labels.values<int64_t>();
  EXPECT_EQ((std::vector<int64_t>(ids.begin(), ids.begin() + 4)),
            (std::vector<int64_t>{7, 8, 0, 0}));
  EXPECT_EQ((std::vector<int64_t>(labels.begin(), labels.begin() + 4)),
            (std::vector<int64_t>{-100, 9, -100, -100}));
  EXPECT_EQ((std::vector<int64_t>(labels.begin() + 16, labels.begin() + 20)),
            (std::vector<int64_t>{2, 3, 4, -100}));
  const Batch whole = scored_batch(rows, 64);
  EXPECT_EQ(whole.columns.at("ends").values<int64_t>()[0], 2);
  EXPECT_EQ(whole.ids.values<int64_t>()[2], 9);
}

TEST(AnswerBatch, RefusesRowsWithoutAnAnswerAndTooLongOnes) {
  const std::vector<AnswerRow> empty = {answer_row(std::vector<int64_t>{7, 8}, {})};
  expect_error([&] { answer_batch(empty, 64); }, "answer_batch: a row's answer has no token");
  const std::vector<AnswerRow> rows = some_pairs(0, 2);
  expect_error([&] { answer_batch(rows, 4); },
               "answer_batch: a row is longer than allowed: it has 6 inputs, allowed are 4");
}

TEST(SequenceLogprobs, DoNotDependOnTheOtherRowsOrThePadding) {
  const auto model = tiny(3);
  const std::vector<AnswerRow> rows = some_pairs(0, 3);
  const Tensor together = logprobs_of(policy_of(*model), answer_batch(rows, 64)).sums;
  for (size_t i = 0; i < rows.size(); ++i) {
    const Tensor alone =
        logprobs_of(policy_of(*model), answer_batch(std::span(rows).subspan(i, 1), 64)).sums;
    EXPECT_NEAR(detach(alone).item(), detach(together).values<double>()[i], 1e-12);
  }
}

// The loss contract: any division of a step has the same gradient.
TEST(PreferenceObjectives, HaveTheSameGradientInAnyDivision) {
  const auto model = tiny(3);
  const auto other = tiny(4);
  const Policy policy = policy_of(*model);
  const std::map<std::string, Objective> all = {
      {"dpo", dpo_objective(policy, reference_of(*other), {})},
      {"ipo", dpo_objective(policy, reference_of(*other), {"ipo_average", 0.1, 0})},
      {"orpo", orpo_objective(policy, {})},
      {"simpo", simpo_objective(policy, {})},
      {"cpo", cpo_objective(policy, {})}};
  for (const auto& [name, objective] : all) {
    const Loss whole = objective(answer_batch(some_pairs(0, 5), 64));
    backward(whole.sum);
    const TensorDict expected = gradients_of(*model);
    double count = 0, sums = 0, margins = 0;
    for (const auto& [begin, end] :
         std::vector<std::pair<int64_t, int64_t>>{{0, 1}, {1, 3}, {3, 5}}) {
      const Loss part = objective(answer_batch(some_pairs(begin, end), 64));
      backward(part.sum);
      count += part.count;
      sums += part.sum.item();
      margins += part.metrics.at("margin");
    }
    EXPECT_EQ(count, whole.count) << name;
    EXPECT_NEAR(sums, whole.sum.item(), 1e-11) << name;
    EXPECT_NEAR(margins, whole.metrics.at("margin"), 1e-11) << name;
    EXPECT_LE(largest_difference(gradients_of(*model), expected), 1e-11) << name;
  }
}

TEST(PreferenceObjectives, RunOnTheMetaDevice) {
  DecoderConfig c = tiny(1)->config();
  Decoder model(c, DType::f32, meta_device);
  model.require_gradients();
  Batch batch;
  batch.ids = empty({4, 16}, DType::i64, meta_device);
  batch.labels = empty({4, 16}, DType::i64, meta_device);
  const Policy policy = policy_of(model);
  const auto head = [] { return empty({1, 8}, DType::f32, meta_device); };
  const std::vector<Objective> all = {
      dpo_objective(policy, reference_of(model), {}), orpo_objective(policy, {}),
      kto_objective(policy, reference_of(model), {}), reward_objective(policy.hidden, head, {}),
      distillation_objective(policy, model_teacher(policy_of(model)), {})};
  for (const Objective& objective : all) {
    const Loss loss = objective(batch);
    EXPECT_EQ(loss.sum.shape(), Shape{});
    backward(loss.sum);
  }
}

TEST(KtoObjective, PullsGoodAndBadAnswersApart) {
  const auto model = tiny(3);
  const auto other = tiny(3);
  Batch batch = answer_batch(some_pairs(0, 3), 64);
  batch.columns.add("desirable",
                    converted(tensor_of(std::vector<int64_t>{1, 0, 1}, {3}), DType::bool_));
  const Loss start = kto_objective(policy_of(*model), reference_of(*other), {})(batch);
  // Policy and reference are equal: r = z = 0, and every loss is 1 − σ(0).
  EXPECT_NEAR(start.sum.item(), 1.5, 1e-12);
  EXPECT_EQ(start.count, 3);
  backward(start.sum);
  const SequenceLogprobs before = reference_of(*model)(batch);
  const TensorDict steps = gradients_of(*model);
  for (const auto& [name, p] : model->parameters()) {
    Tensor target = p;
    copy_into(target, detach(p) - steps.at(name) * 0.01);
  }
  const SequenceLogprobs after = reference_of(*model)(batch);
  const auto moved_by = [&](size_t row) {
    return after.sums.values<double>()[row] - before.sums.values<double>()[row];
  };
  EXPECT_GT(moved_by(0) + moved_by(2), 0);
  EXPECT_LT(moved_by(1), 0);
}

TEST(RewardObjective, StartsAtLog2AndScoresTheLastToken) {
  const auto model = tiny(3);
  const Policy policy = policy_of(*model);
  const Batch batch = scored_batch(some_pairs(0, 3), 64);
  Tensor head = zeros({1, 8}, DType::f64);
  require_grad(head);
  const Loss loss = reward_objective(policy.hidden, [&] { return head; }, {})(batch);
  EXPECT_NEAR(loss.sum.item(), 3 * std::log(2.0), 1e-12);
  const Tensor some = random_tensor({1, 8}, 2);
  const Tensor scores = detach(scores_of(policy.hidden, some, batch));
  for (size_t i = 0; i < 6; ++i) {
    const std::vector<AnswerRow> one = {some_pairs(0, 3)[i]};
    EXPECT_NEAR(detach(scores_of(policy.hidden, some, scored_batch(one, 64))).item(),
                scores.values<double>()[i], 1e-12);
  }
  Batch with_margin = batch;
  with_margin.columns.add("margin", full({3}, 1, DType::f64));
  EXPECT_NEAR(reward_objective(policy.hidden, [&] { return head; }, {})(with_margin).sum.item(),
              3 * std::log(1 + std::exp(1.0)), 1e-12);
}

TEST(RankedLists, OfTwoAreBradleyTerryAndShorterOnesCountWhatTheyHave) {
  const Tensor s = random_tensor({3, 4}, 1);
  const auto column = [&](int64_t k) { return squeeze(slice(s, 1, k, k + 1), 1); };
  const Tensor two = bradley_terry_losses(column(0), column(1));
  EXPECT_LE(difference(plackett_luce_losses(slice(s, 1, 0, 2)), two), 1e-14);
  EXPECT_LE(difference(ranked_pairs_losses(slice(s, 1, 0, 2)), two), 1e-14);
  const Tensor lengths = tensor_of(std::vector<int64_t>{4, 2, 3}, {3});
  const Tensor got = plackett_luce_losses(s, lengths);
  const auto row = [&](int64_t r, int64_t k) {
    return plackett_luce_losses(slice(slice(s, 0, r, r + 1), 1, 0, k)).item();
  };
  EXPECT_NEAR(got.values<double>()[0], row(0, 4), 1e-12);
  EXPECT_NEAR(got.values<double>()[1], row(1, 2), 1e-12);
  EXPECT_NEAR(got.values<double>()[2], row(2, 3), 1e-12);
  expect_error([&] { plackett_luce_losses(slice(s, 1, 0, 1)); },
               "plackett_luce: takes scores [N, K] of at least two answers each: got [3, 1]");
}

TEST(Distillation, IsZeroWhereStudentAndTeacherAgreeAndNotElsewhere) {
  const auto model = tiny(3);
  const auto other = tiny(4);
  const Batch batch = answer_batch(some_pairs(0, 3), 64);
  for (const double beta : {0.0, 0.5, 1.0}) {
    for (const double temperature : {1.0, 3.0}) {
      const DistillConfig config{1, temperature, beta, 0};
      const Objective own =
          distillation_objective(policy_of(*model), model_teacher(policy_of(*model)), config);
      EXPECT_NEAR(own(batch).sum.item(), 0, 1e-12) << beta;
      const Objective foreign =
          distillation_objective(policy_of(*model), model_teacher(policy_of(*other)), config);
      EXPECT_GT(foreign(batch).sum.item(), 0.01) << beta;
    }
  }
}

TEST(Distillation, FromAllTokensOfACacheIsThatFromTheModel) {
  const Tensor teacher = random_tensor({6, 19}, 1);
  const Tensor student = random_tensor({6, 19}, 2);
  const Tensor whole = divergence(teacher, student, 0, 2);
  EXPECT_LE(difference(top_divergence(top_logprobs(teacher, 19, 2), student, 2), whole), 1e-12);
  // Of fewer tokens it is less, and the more there are the nearer.
  double last = -1;
  for (const int64_t k : {1, 4, 10, 18}) {
    const double found = sum(top_divergence(top_logprobs(teacher, k, 2), student, 2)).item();
    EXPECT_GT(found, last) << k;
    EXPECT_LE(found, sum(whole).item() + 1e-12) << k;
    last = found;
  }
  expect_error([&] { top_logprobs(teacher, 20); },
               "top_logprobs: more tokens than there are: k is 20, the vocabulary has 19");
}

// The T²-scaled gradient tends to the difference of zero-mean logits over V: Hinton et al. 2015,
// equation 4.
TEST(Distillation, GradientAtHighTemperatureIsTheDifferenceOfLogits) {
  Tensor student = random_tensor({1, 19}, 2);
  Tensor teacher = random_tensor({1, 19}, 1);
  student = student - mean(student);
  teacher = teacher - mean(teacher);
  require_grad(student);
  constexpr double T = 1000;
  backward(sum(divergence(teacher, student, 0, T)) * (T * T));
  const Tensor expected = (detach(student) - teacher) / 19.0;
  EXPECT_LE(difference(grad(student), expected), 0.01 * norm(expected).item());
}

TEST(Distillation, ReadsItsContextFromTheTeachersColumns) {
  const auto model = tiny(3);
  std::vector<AnswerRow> seen, asked;
  for (int64_t i = 0; i < 3; ++i) {
    const AnswerRow row = some_answer(i, 4, 1);
    AnswerRow longer = row;
    longer.ids.insert(longer.ids.begin(), {17, 5, 11});
    longer.learnt.insert(longer.learnt.begin(), {0, 0, 0});
    asked.push_back(row);
    seen.push_back(longer);
  }
  Batch batch = answer_batch(asked, 64);
  const Batch teacher = answer_batch(seen, 64);
  const Objective objective =
      distillation_objective(policy_of(*model), model_teacher(policy_of(*model)), {});
  EXPECT_NEAR(objective(batch).sum.item(), 0, 1e-12);
  batch.columns.add("teacher_ids", teacher.ids);
  batch.columns.add("teacher_labels", teacher.labels);
  const Loss loss = objective(batch);
  EXPECT_EQ(loss.count, 12);
  EXPECT_GT(loss.sum.item(), 1e-3);
}

TEST(Divergence, RefusesWhatHasNoMeaning) {
  expect_error(
      [] {
        divergence(random_tensor({2, 3}, 1), random_tensor({2, 4}, 1), 0);
      },
      "divergence: teacher and student must have one vocabulary: teacher is [2, 3], student "
      "is [2, 4]");
  expect_error(
      [] {
        divergence(random_tensor({2, 3}, 1), random_tensor({2, 3}, 1), 1.5);
      },
      "beta must be in [0, 1]");
  const Policy none;
  expect_error(
      [&] {
        distillation_objective(none, {}, {1, 1, 0.5, 4});
      },
      "distill.top_k: of a part of the teacher's distribution only the forward KL is known");
  expect_error(
      [] {
        dpo_losses({{random_tensor({1}, 1), {}}, {random_tensor({1}, 1), {}}},
                   {{random_tensor({1}, 1), {}}, {random_tensor({1}, 1), {}}},
                   {"sigmoidal", 0.1, 0});
      },
      "dpo.loss: 'sigmoidal' is none of sigmoid");
}

}  // namespace
}  // namespace ingot::testing
