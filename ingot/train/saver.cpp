#include "ingot/train/saver.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "ingot/base/json.h"
#include "ingot/base/log.h"
#include "ingot/io/checkpoint.h"
#include "ingot/tensor/copy.h"

namespace ingot {
namespace {

std::string state_text(const TrainState& state, const std::string& data_hash) {
  nlohmann::ordered_json out;
  out["step"] = state.step;
  out["position"] = state.position;
  out["tokens"] = state.tokens;
  out["data_hash"] = data_hash;
  return out.dump();
}

SavedRun saved_run(const std::filesystem::path& path, const Checkpoint& checkpoint) {
  const std::string name = path.string();
  const nlohmann::json state = parse_json(checkpoint.state, name);
  SavedRun out;
  out.path = path;
  out.state.step = json_field<int64_t>(state, "step", name);
  out.state.position = json_field<int64_t>(state, "position", name);
  out.state.tokens = json_field<int64_t>(state, "tokens", name);
  out.data_hash = json_field<std::string>(state, "data_hash", name);
  out.recipe = checkpoint.recipe;
  return out;
}

std::filesystem::path newest(const std::filesystem::path& folder) {
  const Latest latest = latest_checkpoint(folder);
  for (const std::string& reason : latest.skipped) {
    log_warn("passing over a damaged checkpoint: ", reason);
  }
  check(latest.path, ErrorKind::io, folder.string(), ": no checkpoint to continue from",
        latest.skipped.empty() ? "" : " that is undamaged", "; start the run without --resume");
  return *latest.path;
}

void copy_parameters(const TensorDict& parameters, const TensorDict& saved,
                     const std::string& name) {
  for (const auto& [path, tensor] : parameters) {
    check(saved.contains(path), ErrorKind::format, name, ": holds no parameter ", path,
          "; it is a checkpoint of another model");
    const Tensor& value = saved.at(path);
    check(value.shape() == tensor.shape(), ErrorKind::format, name, ": parameter ", path,
          " has shape ", value.shape(), ", the model's is ", tensor.shape(),
          "; it is a checkpoint of another model");
  }
  for (const auto& [path, tensor] : parameters) {
    Tensor target = tensor;
    copy_into(target, saved.at(path));
  }
}

}  // namespace

Saver::Saver(Options options, const Optimizer& optimizer)
    : options_(std::move(options)), optimizer_(optimizer) {}

void Saver::after_step(const TrainState& state, const StepReport&) {
  if (options_.every > 0 && state.step % options_.every == 0) {
    save(state);
  }
}

void Saver::save(const TrainState& state) {
  if (state.step == saved_step_) {
    return;
  }
  Checkpoint checkpoint;
  checkpoint.step = state.step;
  checkpoint.parts = {{"parameters", optimizer_.parameters()}, {"optimizer", optimizer_.state()}};
  checkpoint.state = state_text(state, options_.data_hash);
  checkpoint.recipe = options_.recipe;
  save_checkpoint(options_.folder, checkpoint);
  keep_last(options_.folder, options_.keep);
  saved_step_ = state.step;
}

SavedRun restore_run(const std::filesystem::path& folder, Optimizer& optimizer) {
  const std::filesystem::path path = newest(folder);
  const Checkpoint checkpoint = read_checkpoint(path);
  copy_parameters(optimizer.parameters(), checkpoint.part("parameters"), path.string());
  optimizer.load(checkpoint.part("optimizer"));
  return saved_run(path, checkpoint);
}

SavedRun peek_run(const std::filesystem::path& folder) {
  const std::filesystem::path path = newest(folder);
  return saved_run(path, read_checkpoint(path));
}

}  // namespace ingot
