#include "ingot/train/evaluate.h"

#include <chrono>
#include <cmath>
#include <numbers>

#include "ingot/autograd/grad_mode.h"

namespace ingot {

double Evaluation::bits() const { return loss / std::numbers::ln2 / bytes_per_target; }
double Evaluation::perplexity() const { return std::exp(loss); }

Evaluation evaluate(const Objective& objective, int64_t batches,
                    const std::function<Batch(int64_t)>& batch, Randomness& randomness) {
  const auto start = std::chrono::steady_clock::now();
  const NoGrad quiet;
  randomness.training = false;
  double sum = 0;
  double count = 0;
  std::map<std::string, double> metrics;
  for (int64_t i = 0; i < batches; ++i) {
    const Loss loss = objective(batch(i));
    sum += loss.sum.device().kind == DeviceKind::meta ? 0 : loss.sum.item();
    count += loss.count;
    for (const auto& [name, value] : loss.metrics) {
      metrics[name] += value;
    }
  }
  check(count > 0, ErrorKind::config, "evaluation: no target counts: the validation set is empty");
  check(std::isfinite(sum), ErrorKind::numeric, "evaluation: the loss over ", count, " targets is ",
        sum);
  Evaluation out;
  out.loss = sum / count;
  for (const auto& [name, value] : metrics) {
    out.metrics[name] = value / count;
  }
  out.tokens = static_cast<int64_t>(count);
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return out;
}

}  // namespace ingot
