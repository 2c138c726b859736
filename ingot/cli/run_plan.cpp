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

RunPlan plan_run(const Recipe& recipe) {
  RunPlan out;
  std::unique_ptr<Session> session;
  const int64_t rows = run_kind(recipe.kind).rows;
  const int64_t micro = rows * recipe.train.batch / recipe.train.accumulate;
  out.train = plan_of([&] {
    session = std::make_unique<Session>(recipe, meta_device);
    Training training =
        session->training([&](int64_t) { return shape_batch(micro, recipe.train.sequence); });
    training.micro_batches = nullptr;  // a whole step, not the first of the batch's warm-up
    {
      const Recording recording;
      out.step_flops = train_step(session->state, training).flops;
      out.kernels = flops_by_kernel(recording);
    }
    train_step(session->state, training);
  });
  out.evaluate = plan_of([&] {
    const EvaluatedWeights shown(session->optimizer());
    evaluate(
        session->objective(), 1,
        [&](int64_t) { return shape_batch(rows * recipe.evaluate.batch, recipe.train.sequence); },
        *session->model().randomness());
  });
  out.parameters = session->model().count();
  out.step_tokens = recipe.train.batch * recipe.train.sequence;
  out.checkpoint_bytes =
      session->optimizer().parameters().bytes() + session->optimizer().state().bytes();
  out.measured = nearest_speed(recipe.dtype, out.step_flops);
  const CheckpointConfig& saving = recipe.checkpoint;
  const int64_t forever = saving.keep_every > 0 ? recipe.train.steps / saving.keep_every : 0;
  out.checkpoints = saving.keep + 1 + forever + (saving.best ? 1 : 0);
  return out;
}

namespace {

int64_t peak_with(Recipe recipe, int64_t accumulate) {
  recipe.train.accumulate = accumulate;
  return plan_run(recipe).train.memory.peak_total;
}

// A recipe with settings over it; absent where they contradict it.
std::optional<Recipe> changed(const Recipe& recipe, const std::vector<std::string>& settings) {
  try {
    return parse_recipe(to_toml(recipe), "recipe", settings);
  } catch (const Error&) {
    return std::nullopt;
  }
}

struct Candidate {
  std::vector<std::string> settings;
  const char* price;
};

// From the cheapest to the dearest.
std::vector<Candidate> candidates(const Recipe& recipe) {
  std::vector<Candidate> out;
  const auto divided = [&](int64_t times) {
    return concat("train.accumulate=", recipe.train.accumulate * times);
  };
  for (const int64_t times : {2, 4, 8, 16}) {
    out.push_back({{divided(times)}, "smaller products; the same gradient up to rounding"});
  }
  const std::string recompute = "train.recompute=true";
  if (!recipe.train.recompute) {
    out.push_back({{recompute}, "about a third more arithmetic; the same bits"});
    out.push_back({{recompute, divided(4)}, "both of these"});
    out.push_back({{recompute, divided(16)}, "both of these"});
  }
  if (recipe.dtype == "f32") {
    out.push_back({{"dtype=bf16"}, "products rounded to bf16"});
    out.push_back(
        {{"dtype=bf16", recompute, divided(8)}, "products rounded to bf16, recomputation"});
  }
  out.push_back(
      {{"optim.kind=adamw_8bit", recompute, divided(8)}, "moments in 8 bits, recomputation"});
  out.push_back({{"dtype=bf16", "optim.halves=stochastic", recompute, divided(8)},
                 "no master weights, recomputation"});
  out.push_back(
      {{"dtype=bf16", "optim.halves=stochastic", "optim.kind=adamw_8bit", recompute, divided(16)},
       "no master weights, moments in 8 bits, recomputation"});
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

std::vector<Saving> cheapest_savings(const Recipe& recipe, int64_t bytes) {
  std::vector<Saving> out;
  for (const Candidate& candidate : candidates(recipe)) {
    const std::optional<Recipe> other = changed(recipe, candidate.settings);
    if (!other || out.size() == 3) {
      continue;
    }
    const int64_t peak = plan_run(*other).train.memory.peak_total;
    if (peak <= bytes) {
      out.push_back({candidate.settings, candidate.price, peak});
    }
  }
  return out;
}

}  // namespace ingot
