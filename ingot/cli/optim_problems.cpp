#include "ingot/cli/optim_problems.h"

#include <cmath>

#include "ingot/autograd/grad_mode.h"
#include "ingot/autograd/record.h"
#include "ingot/base/config_toml.h"
#include "ingot/cli/session.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/matmul.h"
#include "ingot/ops/reduce.h"
#include "ingot/ops/shape.h"
#include "ingot/optim/alternatives.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

Tensor leaf(Tensor values) { return require_grad(values); }

Problem with_no_text() {
  Problem out;
  out.batch = [](int64_t) {
    return Batch{zeros({1, 1}, DType::i64), zeros({1, 1}, DType::i64), {}, {}};
  };
  return out;
}

// ½ Σ λ·(w − a)² over an 8 × 8 matrix, λ from 0.1 to 10 evenly in the logarithm.
Problem quadratic(uint64_t seed) {
  Problem out = with_no_text();
  const Tensor w = leaf(normal({8, 8}, 0, 1, {1, seed, 1}, DType::f32));
  const Tensor aim = normal({8, 8}, 0, 1, {1, 0, 2}, DType::f32);
  const Tensor curvature =
      exp(reshape(arange(64, DType::f32), {8, 8}) * (std::log(100.0) / 63) + std::log(0.1));
  out.parameters.add("w", w);
  out.objective = [=](const Batch&) { return Loss{sum(curvature * square(w - aim)) * 0.5, 1, {}}; };
  return out;
}

// (1 − x)² + 100·(y − x²)² from (−1 − seed/10, 1): a curved valley. Rosenbrock 1960
Problem rosenbrock(uint64_t seed) {
  Problem out = with_no_text();
  const Tensor w =
      leaf(tensor_of(std::vector<float>{-1 - 0.1F * static_cast<float>(seed), 1}, {1, 2}));
  out.parameters.add("w", w);
  out.objective = [=](const Batch&) {
    const Tensor x = slice(w, 1, 0, 1);
    const Tensor y = slice(w, 1, 1, 2);
    return Loss{sum(square(1 - x) + 100 * square(y - square(x))), 1, {}};
  };
  return out;
}

// Mean log(1 + e^−s) over 64 points of 8 features; s = ±(x·w + b), the sign that of a hidden plane.
Problem logistic(uint64_t seed) {
  Problem out = with_no_text();
  const Tensor x = normal({64, 8}, 0, 1, {2, 0, 1}, DType::f32);
  const Tensor plane = normal({8, 1}, 0, 1, {2, 0, 2}, DType::f32);
  const Tensor noise = normal({64, 1}, 0, 0.5, {2, 0, 3}, DType::f32);
  const Tensor side =
      cast(greater(matmul(x, plane) + noise, scalar(0, DType::f32)), DType::f32) * 2 - 1;
  const Tensor w = leaf(normal({8, 1}, 0, seed == 0 ? 0 : 0.5, {2, seed, 4}, DType::f32));
  const Tensor b = leaf(zeros({1}, DType::f32));
  out.parameters.add("w", w);
  out.parameters.add("b", b);
  out.objective = [=](const Batch&) {
    return Loss{sum(softplus(-(side * (matmul(x, w) + b)))), 64, {}};
  };
  return out;
}

// A Llama of one layer that learns to count modulo 13 in steps of 1 to 4.
Problem tiny_model(uint64_t seed) {
  Recipe recipe;
  recipe.model.vocab = 16;
  recipe.model.width = 32;
  recipe.model.layers = 1;
  recipe.model.heads = 2;
  recipe.model.hidden = 64;
  recipe.model.context = 16;
  auto model = std::make_shared<Decoder>(recipe.model, DType::f32);
  model->require_gradients();
  for (const auto& [name, values] : nn::initial_values(*model, recipe.init, 7 + seed)) {
    Tensor target = model->parameters().at(name);
    copy_into(target, values);
  }
  Problem out;
  out.parameters = model->parameters();
  const auto no_experts = std::make_shared<nn::ExpertLoads>();
  out.objective = [model, no_experts,
                   loss = next_token_objective(*model, recipe.train, *no_experts)](
                      const Batch& batch) { return loss(batch); };
  out.with_drawn_labels = [model](const Batch& batch) { return with_drawn_labels(*model, batch); };
  out.batch = [](int64_t position) {
    std::vector<int64_t> ids;
    std::vector<int64_t> labels;
    for (int64_t row = 0; row < 8; ++row) {
      const int64_t stride = 1 + (position + row) % 4;
      for (int64_t t = 0; t < 16; ++t) {
        ids.push_back((position * 5 + row * 3 + t * stride) % 13);
        labels.push_back((position * 5 + row * 3 + (t + 1) * stride) % 13);
      }
    }
    return Batch{tensor_of(ids, {8, 16}), tensor_of(labels, {8, 16}), {}, {}};
  };
  out.randomness = model->randomness();
  out.owner = model;
  return out;
}

}  // namespace

const std::vector<OptimizerEntry>& optimizer_entries() {
  static const std::vector<OptimizerEntry> table = {
      {"sgd", "momentum = 0.9", {0.1, 1.6e-3, 1, 0.2}},
      {"adam", "", {0.1, 0.05, 0.4, 0.01}},
      {"adamw", "", {0.1, 0.05, 0.4, 0.01}},
      {"adamw", "amsgrad = true", {0.1, 0.4, 0.4, 0.01}},
      {"adamw", "lookahead.every = 5", {0.4, 0.05, 0.4, 0.02}},
      {"adamw", "sam.rho = 0.01", {0.1, 0.05, 0.4, 0.01}},
      {"adamw", "ema.decay = 0.9", {0.1, 0.05, 0.4, 0.01}},
      {"adagrad", "", {0.5, 2, 2, 0.025}},
      {"rmsprop", "", {0.05, 0.16, 0.2, 0.0025}},
      {"adamax", "beta2 = 0.9", {0.1, 0.2, 0.8, 0.02}},
      {"nadam", "", {0.1, 0.05, 0.4, 0.01}},
      {"radam", "beta1 = 0.8\nbeta2 = 0.8", {0.1, 0.01, 0.4, 0.02}},
      {"adadelta", "", {40, 5, 200, 10}},
      {"rprop", "", {0.1, 0.01, 0.1, 0.001}},
      {"adafactor", "", {0.1, 0.05, 0.4, 0.01}},
      {"lion", "", {0.1, 0.01, 0.1, 0.006}},
      {"muon", "", {0.8, 0.1, 0.6, 0.02}},
      {"normuon", "", {0.8, 0.1, 0.6, 0.02}},
      {"shampoo", "every = 1", {0.1, 0.05, 0.4, 0.01}},
      {"soap", "every = 2", {0.4, 0.05, 0.4, 0.01}},
      {"sophia_g", "every = 2", {0.4, 0.02, 0.2, 0.005}},
      {"sophia_h", "every = 1", {0.2, 0.04, 0.2, 0.01}},
      {"schedule_free_adamw", "", {0.4, 0.05, 0.4, 0.01}},
      {"schedule_free_sgd", "", {0.4, 8e-3, 4, 1}},
      {"lars", "trust_coefficient = 0.02", {1, 0.4, 1, 1}},
      {"larc", "", {0.08, 1.6e-3, 2, 0.5}},
      {"lamb", "", {0.05, 0.16, 0.1, 0.06}},
      {"ademamix", "alpha = 2\nbeta3 = 0.99", {0.2, 0.02, 0.2, 0.01}},
      {"adamw_8bit", "min_elements = 0\nblock = 16", {0.1, 0.05, 0.4, 0.01}},
  };
  return table;
}

OptimizerConfig config_of(const OptimizerEntry& entry) {
  OptimizerConfig config;
  choose(config, entry.optimizer);
  const Fields fields = fields_of(config);
  const std::string decay = fields.find("weight_decay") != nullptr ? "weight_decay = 0\n" : "";
  apply_settings(fields, toml_settings(decay + entry.settings, entry.optimizer));
  return config;
}

std::string name_of(const OptimizerEntry& entry) {
  if (entry.settings == "amsgrad = true") {
    return "adamw, amsgrad";
  }
  const size_t dot = entry.settings.find('.');
  return dot == std::string::npos || entry.optimizer != "adamw"
             ? entry.optimizer
             : entry.optimizer + ", " + entry.settings.substr(0, dot);
}

const std::array<ProblemTask, problem_count>& problem_tasks() {
  static constexpr std::array<ProblemTask, problem_count> all = {
      {{"quadratic", quadratic, 150, 0.25},
       {"rosenbrock", rosenbrock, 500, 0.1},
       {"logistic", logistic, 100, 0.2},
       {"tiny model", tiny_model, 100, 0.5}}};
  return all;
}

Training training_of(const Problem& problem, size_t at, const OptimizerEntry& entry, double rate,
                     Optimizer& optimizer) {
  const bool to_zero = !entry.optimizer.starts_with("schedule_free");
  Training out;
  out.steps = problem_tasks()[at].steps;
  out.sam = config_of(entry).sam;
  out.batch = problem.batch;
  out.learning_rate = [rate, to_zero, steps = out.steps](int64_t step) {
    const double left = 1 - static_cast<double>(step) / static_cast<double>(steps);
    return rate * (to_zero ? left : 1);
  };
  out.objective = problem.objective;
  out.with_drawn_labels = problem.with_drawn_labels;
  out.optimizer = &optimizer;
  out.randomness = problem.randomness.get();
  return out;
}

double loss_of(const Problem& problem, Optimizer& optimizer) {
  const NoGrad quiet;
  const EvaluatedWeights shown(optimizer);
  problem.randomness->training = false;
  const Loss loss = problem.objective(problem.batch(0));
  return loss.sum.item() / loss.count;
}

}  // namespace ingot
