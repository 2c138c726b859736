#include "ingot/cli/encoder_plan.h"

#include "ingot/base/config_toml.h"
#include "ingot/cli/encoder_session.h"
#include "ingot/tensor/factories.h"
#include "ingot/train/evaluate.h"

namespace ingot {
namespace {

// A batch of so many texts, or pairs of texts, of shapes alone.
Batch shape_batch(const EncoderRecipe& recipe, int64_t rows) {
  const int64_t T = recipe.train.sequence;
  const Shape labels = recipe.kind == "mlm" ? Shape{rows, T} : Shape{rows};
  Batch out;
  out.ids = empty({recipe.kind == "embed" ? 2 * rows : rows, T}, DType::i64, meta_device);
  out.labels = empty(labels, DType::i64, meta_device);
  return out;
}

}  // namespace

RunPlan plan_run(const EncoderRecipe& recipe) {
  const EncoderData data = recipe.kind == "classify" ? open_encoder_data(recipe) : EncoderData();
  std::unique_ptr<EncoderSession> session;
  const EncoderLoopConfig& loop = recipe.train;
  const auto build = [&] {
    session = std::make_unique<EncoderSession>(recipe, data, meta_device);
    const auto batch = [&](int64_t) { return shape_batch(recipe, loop.batch / loop.accumulate); };
    const auto measured = [&] {
      evaluate(
          session->objective(), 1,
          [&](int64_t) { return shape_batch(recipe, recipe.evaluate.batch); },
          *session->model().randomness());
    };
    const int64_t texts = recipe.kind == "embed" ? 2 : 1;
    return Rehearsal{session->state, session->optimizer(),     session->training(batch),
                     measured,       session->model().count(), texts * loop.batch * loop.sequence};
  };
  RunPlan out = rehearsed(build, recipe.checkpoint, loop.steps);
  out.measured = nearest_speed(recipe.dtype, out.step_flops);
  return out;
}

PlannedRecipe planned(const EncoderRecipe& recipe) {
  PlannedRecipe out;
  out.steps = recipe.train.steps;
  out.accumulate = recipe.train.accumulate;
  out.divides = recipe.kind != "embed";  // the others of a micro-batch are the negatives
  out.recompute = recipe.train.recompute;
  out.dtype = recipe.dtype;
  out.schedule = drawn(recipe.schedule.schedule, recipe.optim.learning_rate, recipe.train.steps);
  out.plan = [recipe] { return plan_run(recipe); };
  out.with = [recipe](const std::vector<std::string>& settings) -> std::optional<RunPlan> {
    std::optional<EncoderRecipe> changed;
    try {
      changed = parse_encoder_recipe(to_toml(recipe), "recipe", settings);
    } catch (const Error&) {
      return std::nullopt;
    }
    return plan_run(*changed);
  };
  return out;
}

}  // namespace ingot
