#include "ingot/cli/run_plan.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "ingot/base/config_toml.h"
#include "ingot/base/text_size.h"
#include "ingot/cli/kinds.h"
#include "ingot/cli/session.h"
#include "ingot/device/profile.h"
#include "ingot/train/evaluate.h"

namespace ingot {
namespace {

// The FLOPs of each kernel in a recording, most first.
std::vector<std::pair<std::string, int64_t>> flops_by_kernel(const Recording& recording) {
  std::map<std::string, int64_t> sums;
  for (const KernelCall& call : recording.calls()) {
    sums[call.name] += call.flops;
  }
  std::vector<std::pair<std::string, int64_t>> out(sums.begin(), sums.end());
  std::erase_if(out, [](const auto& entry) { return entry.second == 0; });
  std::sort(out.begin(), out.end(),
            [](const auto& a, const auto& b) { return a.second > b.second; });
  return out;
}

}  // namespace

RunPlan rehearsed(const std::function<Rehearsal()>& build, const CheckpointConfig& saving,
                  int64_t steps) {
  RunPlan out;
  std::optional<Rehearsal> run;
  out.train = plan_of([&] {
    run.emplace(build());
    run->training.micro_batches = nullptr;  // a whole step, not the first of the batch's warm-up
    {
      const Recording recording;
      out.step_flops = train_step(run->state, run->training).flops;
      out.kernels = flops_by_kernel(recording);
    }
    train_step(run->state, run->training);
  });
  out.evaluate = plan_of([&] {
    const EvaluatedWeights shown(run->optimizer);
    run->evaluate();
  });
  out.parameters = run->parameters;
  out.step_tokens = run->step_tokens;
  out.checkpoint_bytes = run->optimizer.parameters().bytes() + run->optimizer.state().bytes();
  const int64_t forever = saving.keep_every > 0 ? steps / saving.keep_every : 0;
  out.checkpoints = saving.keep + 1 + forever + (saving.best ? 1 : 0);
  return out;
}

RunPlan plan_run(const Recipe& recipe) {
  place_memory(recipe, meta_device, "meta");
  std::unique_ptr<Session> session;
  const LoopConfig& loop = recipe.train;
  const int64_t rows = run_kind(recipe.kind).rows;
  const auto build = [&] {
    session = std::make_unique<Session>(recipe, meta_device);
    const auto batch = [&, micro = rows * loop.batch / loop.accumulate](int64_t) {
      return shape_batch(micro, loop.sequence);
    };
    const auto measured = [&] {
      evaluate(
          session->objective(), 1,
          [&](int64_t) { return shape_batch(rows * recipe.evaluate.batch, loop.sequence); },
          *session->model().randomness());
    };
    return Rehearsal{session->state, session->optimizer(),     session->training(batch),
                     measured,       session->model().count(), loop.batch * loop.sequence};
  };
  RunPlan out = rehearsed(build, recipe.checkpoint, loop.steps);
  out.measured = nearest_speed(recipe.dtype, out.step_flops);
  return out;
}

PlannedRecipe planned(const Recipe& recipe) {
  PlannedRecipe out;
  out.steps = recipe.train.steps;
  out.accumulate = recipe.train.accumulate;
  out.recompute = recipe.train.recompute;
  out.dtype = recipe.dtype;
  out.schedule =
      drawn(recipe.schedule.schedule, recipe.optim.learning_rate, schedule_total(recipe));
  out.plan = [recipe] { return plan_run(recipe); };
  out.with = [recipe](const std::vector<std::string>& settings) -> std::optional<RunPlan> {
    std::optional<Recipe> changed;
    try {
      changed = parse_recipe(to_toml(recipe), "recipe", settings);
    } catch (const Error&) {
      return std::nullopt;
    }
    return plan_run(*changed);
  };
  return out;
}

namespace {

int64_t peak_with(Recipe recipe, int64_t accumulate) {
  recipe.train.accumulate = accumulate;
  return plan_run(recipe).train.memory.peak_total;
}

struct Candidate {
  std::vector<std::string> settings;
  const char* price;
};

// From the cheapest to the dearest.
std::vector<Candidate> candidates(const PlannedRecipe& recipe) {
  std::vector<Candidate> out;
  // Further settings with the batch in so many more parts, where that leaves the task as it is.
  const auto add = [&](std::vector<std::string> settings, int64_t times, const char* price) {
    if (times > 1 && recipe.divides) {
      settings.push_back(concat("train.accumulate=", recipe.accumulate * times));
    }
    if (!settings.empty()) {
      out.push_back({std::move(settings), price});
    }
  };
  for (const int64_t times : {2, 4, 8, 16}) {
    add({}, times, "smaller products; the same gradient up to rounding");
  }
  const std::string recompute = "train.recompute=true";
  if (!recipe.recompute) {
    add({recompute}, 1, "about a third more arithmetic; the same bits");
    add({recompute}, 4, "both of these");
    add({recompute}, 16, "both of these");
  }
  add({R"(train.offload=["optimizer"])"}, 1, "what the update reads lies on disk");
  if (recipe.dtype == "f32") {
    add({"dtype=bf16"}, 1, "products rounded to bf16");
    add({"dtype=bf16", recompute}, 8, "products rounded to bf16, recomputation");
  }
  add({"optim.kind=adamw_8bit", recompute}, 8, "moments in 8 bits, recomputation");
  add({"dtype=bf16", "optim.halves=stochastic", recompute}, 8, "no master weights, recomputation");
  add({"dtype=bf16", "optim.halves=stochastic", "optim.kind=adamw_8bit", recompute}, 16,
      "no master weights, moments in 8 bits, recomputation");
  return out;
}

}  // namespace

int64_t accumulate_that_fits(const Recipe& recipe, int64_t bytes) {
  int64_t least = 0;
  for (int64_t parts = recipe.train.accumulate; parts <= recipe.train.batch; ++parts) {
    if (recipe.train.batch % parts != 0) {
      continue;
    }
    least = peak_with(recipe, parts);
    if (least <= bytes) {
      return parts;
    }
  }
  throw Error(ErrorKind::config,
              concat("train.fit: one sequence at a time does not fit: it takes ", text_bytes(least),
                     ", available are ", text_bytes(bytes), "; `ingot plan` shows what helps"));
}

std::vector<Saving> cheapest_savings(const PlannedRecipe& recipe, int64_t bytes) {
  std::vector<Saving> out;
  for (const Candidate& candidate : candidates(recipe)) {
    const auto other = out.size() < 3 ? recipe.with(candidate.settings) : std::nullopt;
    if (other && other->train.memory.peak_total <= bytes) {
      out.push_back({candidate.settings, candidate.price, other->train.memory.peak_total});
    }
  }
  return out;
}

}  // namespace ingot
