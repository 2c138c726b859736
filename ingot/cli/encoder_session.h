#pragma once

#include <map>
#include <memory>
#include <string>

#include "ingot/cli/encoder_data.h"
#include "ingot/train/evaluate.h"
#include "ingot/train/train.h"

namespace ingot {

// A recipe of an encoder joined to a model, an optimizer and an objective.
class EncoderSession {
 public:
  // On the meta device the same program without values: what `ingot plan` runs.
  EncoderSession(const EncoderRecipe& recipe, const EncoderData& data, Device device = cpu_device);
  EncoderSession(const EncoderSession&) = delete;  // what it hands out refers to it
  EncoderSession& operator=(const EncoderSession&) = delete;

  Bert& model() { return *model_; }
  Optimizer& optimizer() { return *optimizer_; }
  const Objective& objective() const { return objective_; }
  Training training(std::function<Batch(int64_t position)> batch);

  TrainState state;

 private:
  EncoderRecipe recipe_;
  std::unique_ptr<Bert> model_;
  std::unique_ptr<Optimizer> optimizer_;
  Objective objective_;
};

// The loss of a batch by the recipe's kind, a sum over what it counts, with the metric that people
// read: of "mlm" and "classify" `accuracy`, of "embed" `recall`, the share of texts whose own is
// the nearest of the micro-batch.
Objective encoder_objective(const Bert& model, const EncoderRecipe& recipe, int64_t padding);

// What a trained encoder does on held-out data, by name: the metric above over all of it; of "mlm"
// also `unigram`, the accuracy of always naming the commonest token; of "embed" `recall_at_1` among
// `candidates` (at most 100), and `chance`.
std::map<std::string, double> encoder_scores(const Bert& model, const EncoderRecipe& recipe,
                                             const EncoderData& data);

}  // namespace ingot
