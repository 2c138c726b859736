#include "ingot/train/tensorboard.h"

namespace ingot {

void Tensorboard::after_step(const TrainState&, const StepReport& report) {
  EventFile::Scalars scalars = {
      {"train/loss", report.loss},
      {"train/learning_rate", report.learning_rate},
      {"train/grad_norm", report.grad_norm},
      {"train/tokens_per_second", static_cast<double>(report.tokens) / report.seconds},
  };
  for (const auto& [name, value] : report.metrics) {
    scalars.emplace_back("train/" + name, value);
  }
  file_.write(report.step, scalars);
}

void Tensorboard::evaluated(int64_t step, const Evaluation& evaluation) {
  file_.write(step, {{"validation/loss", evaluation.loss},
                     {"validation/bits_per_byte", evaluation.bits()},
                     {"validation/perplexity", evaluation.perplexity()}});
}

}  // namespace ingot
