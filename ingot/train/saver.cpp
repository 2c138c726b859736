#include "ingot/train/saver.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "ingot/base/files.h"
#include "ingot/base/json.h"
#include "ingot/base/log.h"
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

std::filesystem::path newest(const std::filesystem::path& folder) {
  const Latest latest = latest_checkpoint(folder);
  for (const std::string& reason : latest.skipped) {
    log_warn("passing over a damaged checkpoint: ", reason);
  }
  check(latest.path, ErrorKind::io, folder.string(), ": no checkpoint to continue from",
        latest.skipped.empty() ? "; start the run without --resume"
                               : " that is undamaged; start anew in another --run");
  return *latest.path;
}

void check_parameters(const TensorDict& parameters, const TensorDict& saved,
                      const std::string& name) {
  constexpr const char* other = "; it is a checkpoint of another model";
  for (const auto& [path, tensor] : parameters) {
    check(saved.contains(path), ErrorKind::format, name, ": holds no parameter ", path, other);
    const Tensor& value = saved.at(path);
    check(value.shape() == tensor.shape(), ErrorKind::format, name, ": parameter ", path,
          " has shape ", value.shape(), ", the model's is ", tensor.shape(), other);
    check(value.dtype() == tensor.dtype(), ErrorKind::format, name, ": parameter ", path, " is ",
          value.dtype(), ", the model's is ", tensor.dtype(), other);
  }
  for (const auto& [path, tensor] : saved) {
    check(parameters.contains(path), ErrorKind::format, name, ": the model has no parameter ", path,
          other);
  }
}

// Of the steps after `step`: what a resumed run passed over and is about to do again.
void remove_newer(const std::filesystem::path& folder, int64_t step) {
  for (const int64_t later : checkpoint_steps(folder)) {
    if (later > step) {
      remove_tree(checkpoint_path(folder, later));
    }
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

int64_t Saver::bytes_of_all() const {
  return (options_.keep + 1) * checkpoint_bytes(checkpoint_of({}));
}

Checkpoint Saver::checkpoint_of(const TrainState& state) const {
  Checkpoint checkpoint;
  checkpoint.step = state.step;
  checkpoint.parts = {{"parameters", optimizer_.parameters()}, {"optimizer", optimizer_.state()}};
  checkpoint.state = state_text(state, options_.data_hash);
  checkpoint.recipe = options_.recipe;
  return checkpoint;
}

void Saver::save(const TrainState& state) {
  if (state.step == saved_step_) {
    return;
  }
  save_checkpoint(options_.folder, checkpoint_of(state));
  remove_newer(options_.folder, state.step);
  keep_last(options_.folder, options_.keep);
  saved_step_ = state.step;
}

SavedRun find_run(const std::filesystem::path& folder) { return read_run(newest(folder)); }

SavedRun read_run(const std::filesystem::path& checkpoint) {
  SavedRun out;
  out.path = checkpoint;
  out.checkpoint = read_checkpoint(out.path);
  const std::string name = out.path.string();
  const nlohmann::json state = parse_json(out.checkpoint.state, name);
  out.state.step = json_field<int64_t>(state, "step", name);
  out.state.position = json_field<int64_t>(state, "position", name);
  out.state.tokens = json_field<int64_t>(state, "tokens", name);
  out.data_hash = json_field<std::string>(state, "data_hash", name);
  out.recipe = out.checkpoint.recipe;
  return out;
}

void restore_run(const SavedRun& saved, Optimizer& optimizer) {
  const TensorDict& values = saved.checkpoint.part("parameters");
  check_parameters(optimizer.parameters(), values, saved.path.string());
  try {
    optimizer.load(saved.checkpoint.part("optimizer"));  // checks everything before it writes
  } catch (const Error& error) {
    throw Error(ErrorKind::format, concat(saved.path.string(), ": ", error.what()));
  }
  for (const auto& [path, tensor] : optimizer.parameters()) {
    Tensor target = tensor;
    copy_into(target, values.at(path));
  }
}

}  // namespace ingot
