#pragma once

#include <memory>

#include "ingot/cli/on_policy.h"
#include "ingot/cli/recipe.h"
#include "ingot/models/decoder.h"
#include "ingot/nn/expert_load.h"
#include "ingot/peft/adapters.h"
#include "ingot/posttrain/added_tokens.h"
#include "ingot/posttrain/reference_cache.h"
#include "ingot/posttrain/teacher_cache.h"
#include "ingot/scaling/tokens_per_parameter.h"
#include "ingot/train/train.h"

namespace ingot {

// A recipe joined to a model, an optimizer and an objective. On the meta device it is the same
// program without values: what `ingot plan` runs.
class Session {
 public:
  // Builds the model with its initial weights and the optimizer's state. `added`: tokens that a
  // trained model's tokenizer was given.
  Session(const Recipe& recipe, Device device, const AddedRows& added = {});
  Session(const Session&) = delete;  // what it hands out refers to it
  Session& operator=(const Session&) = delete;

  const Recipe& recipe() const { return recipe_; }
  Decoder& model() { return *model_; }
  Optimizer& optimizer() { return *optimizer_; }
  const Objective& objective() const { return objective_; }
  peft::Adapters* adapters() { return adapters_.get(); }  // null where all weights are trained
  nn::Linear* score_head() { return score_.get(); }       // [1, D], of a reward model
  // The model that distill.teacher names, read when it is first asked; null where there is none.
  Decoder* teacher();
  TeacherCache* teacher_cache() { return teacher_cache_.get(); }  // null without distill.cache
  ReferenceCache& reference() { return reference_; }  // empty where adapters are switched off
  nn::ExpertLoads& loads() { return loads_; }         // of the step that is being computed
  DType dtype() const { return dtype_; }
  // The documents of the batch that is being computed, for what wraps layers; undefined: one a row.
  const std::shared_ptr<Tensor>& documents() const { return documents_; }
  // Of the run when it has seen `tokens`.
  TokensPerParameter tokens_per_parameter(int64_t tokens) const;

  // A training that draws its batches from `batch`; everything else is the recipe's.
  Training training(std::function<Batch(int64_t position)> batch);

  // Steps of the whole run: train.steps, or what a deadline has made of them.
  int64_t last_step() const { return state.last_step > 0 ? state.last_step : recipe_.train.steps; }

  TrainState state;
  // What an objective needs of how text is read: known when the data is open.
  struct Reads {
    TeacherContext context;
    std::vector<int64_t> stops;
  } reads;

 private:
  Recipe recipe_;
  DType dtype_;
  std::unique_ptr<Decoder> model_;
  std::unique_ptr<peft::Adapters> adapters_;  // on the model
  std::unique_ptr<nn::Linear> score_;
  std::unique_ptr<Decoder> teacher_;
  std::unique_ptr<TeacherCache> teacher_cache_;
  ReferenceCache reference_;
  std::unique_ptr<Optimizer> optimizer_;
  nn::ExpertLoads loads_;
  std::shared_ptr<Tensor> documents_ = std::make_shared<Tensor>();
  Objective objective_;
};

// The cross-entropy of every next token: Loss{sum over tokens, number of tokens}. With gradients
// recorded the losses of the model's further heads and routers are in it, and what its experts are
// given goes to `loads`.
Objective next_token_objective(const Decoder& model, const LoopConfig& config,
                               nn::ExpertLoads& loads);
Objective next_token_objective_of(Session& session);

// What a forward knows of a batch besides its ids.
BatchInfo info_of(const Batch& batch);

// The batch with every label that counts drawn from the model's own distribution, a function of the
// model's randomness.
Batch with_drawn_labels(const Decoder& model, const Batch& batch);

// A batch of shapes alone, for the meta device.
Batch shape_batch(int64_t batch, int64_t sequence);

// Where the large blocks of that device's memory lie from now on: those that train.offload names in
// files below `folder`. Before a session is built on it, and while none lives.
void place_memory(const Recipe& recipe, Device device, const std::filesystem::path& folder);

}  // namespace ingot
