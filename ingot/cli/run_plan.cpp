#include "ingot/cli/run_plan.h"

#include <algorithm>
#include <map>
#include <memory>

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
  const int64_t micro = recipe.train.batch / recipe.train.accumulate;
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
        [&](int64_t) { return shape_batch(recipe.evaluate.batch, recipe.train.sequence); },
        *session->model().randomness());
  });
  out.parameters = session->model().count();
  out.step_tokens = recipe.train.batch * recipe.train.sequence;
  out.checkpoint_bytes =
      session->optimizer().parameters().bytes() + session->optimizer().state().bytes();
  const CheckpointConfig& saving = recipe.checkpoint;
  const int64_t forever = saving.keep_every > 0 ? recipe.train.steps / saving.keep_every : 0;
  out.checkpoints = saving.keep + 1 + forever + (saving.best ? 1 : 0);
  return out;
}

}  // namespace ingot
