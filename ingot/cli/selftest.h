#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ingot {

// How far one optimizer got on one problem, and how far it must get.
struct OptimizerRun {
  std::string optimizer;
  std::string problem;
  double learning_rate = 0;
  int64_t steps = 0;
  double loss = 0;
  double target = 0;
  bool reached() const { return loss <= target; }
};

// Every optimizer of the table on a quadratic, Rosenbrock's function, logistic regression and a
// tiny language model, from the same starts. Seconds in all; the same figures in every run.
std::vector<OptimizerRun> selftest_optim();

}  // namespace ingot
