#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ingot/nn/randomness.h"
#include "ingot/optim/table.h"
#include "ingot/tensor/tensor_dict.h"
#include "ingot/train/train.h"

namespace ingot {

// Problems small enough for every optimizer to solve while one watches: what `ingot selftest optim`
// and `ingot bench optim --targets` run.

inline constexpr size_t problem_count = 4;

// Which learning rate an optimizer takes on each problem, in the order of problem_tasks(); its
// settings are TOML over the defaults, without weight decay.
struct OptimizerEntry {
  std::string optimizer;
  std::string settings;
  std::array<double, problem_count> rates;
};

const std::vector<OptimizerEntry>& optimizer_entries();
OptimizerConfig config_of(const OptimizerEntry& entry);
// "adamw, lookahead"
std::string name_of(const OptimizerEntry& entry);

struct Problem {
  TensorDict parameters;
  Objective objective;
  std::function<Batch(const Batch&)> with_drawn_labels = [](const Batch& same) { return same; };
  std::function<Batch(int64_t)> batch;
  std::shared_ptr<Randomness> randomness = std::make_shared<Randomness>();
  std::shared_ptr<const void> owner;  // of the parameters
};

// At the start the losses are: 138 in the mean over draws, 4, ln 2 and about ln 16.
struct ProblemTask {
  const char* name;
  Problem (*make)(uint64_t seed);  // where it starts; what is to be found is always the same
  int64_t steps;
  double target;
};
const std::array<ProblemTask, problem_count>& problem_tasks();

// The training of `problem`, task `at` of problem_tasks(), at a learning rate that falls linearly
// to 0, or stays for optimizers that need no schedule. Problem and optimizer must outlive it.
Training training_of(const Problem& problem, size_t at, const OptimizerEntry& entry, double rate,
                     Optimizer& optimizer);

// The loss at the weights that are to be evaluated.
double loss_of(const Problem& problem, Optimizer& optimizer);

}  // namespace ingot
