// Problems small enough for every optimizer to solve while one watches.
#include <array>
#include <cmath>
#include <functional>
#include <memory>

#include "ingot/autograd/grad_mode.h"
#include "ingot/autograd/record.h"
#include "ingot/base/config_toml.h"
#include "ingot/cli/selftest.h"
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

constexpr size_t problem_count = 4;

// Which learning rate an optimizer takes on each problem, in the order of `problems`; its settings
// are TOML over the defaults, without weight decay.
struct Entry {
  std::string optimizer;
  std::string settings;
  std::array<double, problem_count> rates;
};

const std::vector<Entry>& entries() {
  static const std::vector<Entry> table = {
      {"sgd", "momentum = 0.9", {0.1, 1.6e-3, 1, 0.2}},
      {"adam", "", {0.1, 0.05, 0.4, 0.01}},
      {"adamw", "", {0.1, 0.05, 0.4, 0.01}},
      {"adamw", "amsgrad = true", {0.1, 0.4, 0.4, 0.01}},
      {"adamw", "lookahead.every = 5", {0.4, 0.05, 0.4, 0.02}},
      {"adamw", "sam.rho = 0.01", {0.1, 0.05, 0.4, 0.01}},
      {"adamw", "ema.decay = 0.9", {0.1, 0.05, 0.4, 0.01}},
      {"adagrad", "", {0.5, 2, 2, 0.025}},
      {"rmsprop", "", {0.05, 0.16, 0.2, 0.0025}},
      {"adafactor", "", {0.1, 0.05, 0.4, 0.01}},
      {"lion", "", {0.1, 0.01, 0.1, 0.006}},
      {"muon", "", {0.8, 0.1, 0.6, 0.02}},
      {"normuon", "", {0.8, 0.1, 0.6, 0.02}},
      {"shampoo", "every = 1", {0.1, 0.05, 0.4, 0.01}},
      {"soap", "every = 2", {0.4, 0.05, 0.4, 0.01}},
      {"sophia_g", "every = 2", {0.4, 0.02, 0.2, 0.005}},
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

struct Problem {
  TensorDict parameters;
  Objective objective;
  std::function<Batch(const Batch&)> with_drawn_labels = [](const Batch& same) { return same; };
  std::function<Batch(int64_t)> batch = [](int64_t) {
    return Batch{zeros({1, 1}, DType::i64), zeros({1, 1}, DType::i64), {}, {}};
  };
  std::shared_ptr<Randomness> randomness = std::make_shared<Randomness>();
  std::shared_ptr<const void> owner;  // of the parameters
};

Tensor leaf(Tensor values) { return require_grad(values); }

// ½ Σ λ·(w − a)² over an 8 × 8 matrix, λ from 0.1 to 10 evenly in the logarithm.
Problem quadratic() {
  Problem out;
  const Tensor w = leaf(normal({8, 8}, 0, 1, {1, 0, 1}, DType::f32));
  const Tensor aim = normal({8, 8}, 0, 1, {1, 0, 2}, DType::f32);
  const Tensor curvature =
      exp(reshape(arange(64, DType::f32), {8, 8}) * (std::log(100.0) / 63) + std::log(0.1));
  out.parameters.add("w", w);
  out.objective = [=](const Batch&) { return Loss{sum(curvature * square(w - aim)) * 0.5, 1, {}}; };
  return out;
}

// (1 − x)² + 100·(y − x²)² from (−1, 1): a curved valley. Rosenbrock 1960
Problem rosenbrock() {
  Problem out;
  const Tensor w = leaf(tensor_of(std::vector<float>{-1, 1}, {1, 2}));
  out.parameters.add("w", w);
  out.objective = [=](const Batch&) {
    const Tensor x = slice(w, 1, 0, 1);
    const Tensor y = slice(w, 1, 1, 2);
    return Loss{sum(square(1 - x) + 100 * square(y - square(x))), 1, {}};
  };
  return out;
}

// Mean log(1 + e^−s) over 64 points of 8 features; s = ±(x·w + b), the sign that of a hidden plane.
Problem logistic() {
  Problem out;
  const Tensor x = normal({64, 8}, 0, 1, {2, 0, 1}, DType::f32);
  const Tensor plane = normal({8, 1}, 0, 1, {2, 0, 2}, DType::f32);
  const Tensor noise = normal({64, 1}, 0, 0.5, {2, 0, 3}, DType::f32);
  const Tensor side =
      cast(greater(matmul(x, plane) + noise, scalar(0, DType::f32)), DType::f32) * 2 - 1;
  const Tensor w = leaf(zeros({8, 1}, DType::f32));
  const Tensor b = leaf(zeros({1}, DType::f32));
  out.parameters.add("w", w);
  out.parameters.add("b", b);
  out.objective = [=](const Batch&) {
    return Loss{sum(softplus(-(side * (matmul(x, w) + b)))), 64, {}};
  };
  return out;
}

// A Llama of one layer that learns to count modulo 13 in steps of 1 to 4.
Problem tiny_model() {
  Recipe recipe;
  recipe.model.vocab = 16;
  recipe.model.width = 32;
  recipe.model.layers = 1;
  recipe.model.heads = 2;
  recipe.model.hidden = 64;
  recipe.model.context = 16;
  auto model = std::make_shared<Decoder>(recipe.model, DType::f32);
  model->require_gradients();
  for (const auto& [name, values] : nn::initial_values(*model, recipe.init, 7)) {
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

// At the start the losses are: 138 in the mean over draws, 4, ln 2 and about ln 16.
struct Task {
  const char* name;
  Problem (*make)();
  int64_t steps;
  double target;
};
constexpr std::array<Task, problem_count> tasks = {{{"quadratic", quadratic, 150, 0.25},
                                                    {"rosenbrock", rosenbrock, 500, 0.1},
                                                    {"logistic", logistic, 100, 0.2},
                                                    {"tiny model", tiny_model, 100, 0.5}}};

OptimizerConfig config_of(const Entry& entry) {
  OptimizerConfig config;
  choose(config, entry.optimizer);
  const Fields fields = fields_of(config);
  const std::string decay = fields.find("weight_decay") != nullptr ? "weight_decay = 0\n" : "";
  apply_settings(fields, toml_settings(decay + entry.settings, entry.optimizer));
  return config;
}

double loss_of(const Problem& problem, Optimizer& optimizer) {
  const NoGrad quiet;
  const EvaluatedWeights shown(optimizer);
  problem.randomness->training = false;
  const Loss loss = problem.objective(problem.batch(0));
  return loss.sum.item() / loss.count;
}

OptimizerRun run(const Entry& entry, size_t at) {
  const Task& task = tasks[at];
  const Problem problem = task.make();
  const OptimizerConfig config = config_of(entry);
  Optimizer optimizer = make_optimizer(config, problem.parameters);
  const bool to_zero = !entry.optimizer.starts_with("schedule_free");
  Training training;
  training.steps = task.steps;
  training.sam = config.sam;
  training.batch = problem.batch;
  training.learning_rate = [&](int64_t step) {
    const double left = 1 - static_cast<double>(step) / static_cast<double>(task.steps);
    return entry.rates[at] * (to_zero ? left : 1);
  };
  training.objective = problem.objective;
  training.with_drawn_labels = problem.with_drawn_labels;
  training.optimizer = &optimizer;
  training.randomness = problem.randomness.get();
  TrainState state;
  train(state, training);
  const std::string name =
      entry.settings.find('.') == std::string::npos || entry.optimizer != "adamw"
          ? entry.optimizer
          : entry.optimizer + ", " + entry.settings.substr(0, entry.settings.find('.'));
  return {entry.settings == "amsgrad = true" ? "adamw, amsgrad" : name,
          task.name,
          entry.rates[at],
          task.steps,
          loss_of(problem, optimizer),
          task.target};
}

}  // namespace

std::vector<OptimizerRun> selftest_optim() {
  std::vector<OptimizerRun> runs;
  for (const Entry& entry : entries()) {
    for (size_t at = 0; at < problem_count; ++at) {
      runs.push_back(run(entry, at));
    }
  }
  return runs;
}

}  // namespace ingot
