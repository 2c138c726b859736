#include "ingot/train/saver.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "ingot/base/files.h"
#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "ingot/base/log.h"
#include "ingot/tensor/copy.h"

namespace ingot {
namespace {

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
    : options_(std::move(options)), optimizer_(optimizer) {
  if (file_exists(best_path())) {
    const std::string name = best_path().string();
    const nlohmann::json best = parse_json(read_file(best_path()), name);
    best_ = {json_field<int64_t>(best, "step", name),
             json_field<double>(best, "validation_loss", name)};
  }
}

Saver::~Saver() {
  try {
    flush();
  } catch (const std::exception& error) {
    log_error(error.what());
  }
}

void Saver::after_step(const TrainState& state, const StepReport&) {
  const bool due = options_.every > 0 && state.step % options_.every == 0;
  const bool asked = options_.requested && options_.requested();
  if (due || asked) {
    save(state);
  }
  if (asked) {
    flush();
    log_info("saved step ", state.step, ", as requested");
  }
}

int64_t Saver::bytes_of_all(int64_t steps) const {
  const int64_t forever = options_.keep_every > 0 ? steps / options_.keep_every : 0;
  const int64_t best = options_.best ? 1 : 0;
  return (options_.keep + 1 + forever + best) * checkpoint_bytes(checkpoint_of({}));
}

void Saver::check_space(int64_t steps) const {
  const auto there = static_cast<int64_t>(checkpoint_steps(options_.folder).size());
  const int64_t one = checkpoint_bytes(checkpoint_of({}));
  check_free_space(options_.folder, std::max(one, bytes_of_all(steps) - there * one));
}

Checkpoint Saver::checkpoint_of(const TrainState& state) const {
  Checkpoint checkpoint;
  checkpoint.step = state.step;
  checkpoint.parts = {{"parameters", optimizer_.parameters()}, {"optimizer", optimizer_.state()}};
  checkpoint.state = state_text(state, options_.data_hash);
  checkpoint.recipe = options_.recipe;
  return checkpoint;
}

void Saver::prune() const {
  keep_last(options_.folder, options_.keep, [this](int64_t step) {
    const bool forever = options_.keep_every > 0 && step > 0 && step % options_.keep_every == 0;
    return forever || (best_ && best_->step == step);
  });
}

void Saver::write(const Checkpoint& checkpoint) {
  save_checkpoint(options_.folder, checkpoint);
  remove_newer(options_.folder, checkpoint.step);
  prune();
}

void Saver::save(const TrainState& state) {
  if (state.step == saved_step_) {
    return;
  }
  flush();
  if (best_ && best_->step > state.step) {
    best_.reset();  // of a stretch that the run goes through again
  }
  Checkpoint checkpoint = checkpoint_of(state);
  saved_step_ = state.step;
  if (!options_.background) {
    write(checkpoint);
    return;
  }
  writer_ = std::thread([this, checkpoint = std::move(checkpoint)] {
    try {
      write(checkpoint);
    } catch (...) {
      failure_ = std::current_exception();
    }
  });
}

void Saver::flush() {
  if (writer_.joinable()) {
    writer_.join();
  }
  if (const std::exception_ptr failure = std::exchange(failure_, nullptr)) {
    saved_step_ = -1;
    std::rethrow_exception(failure);
  }
}

void Saver::save_anew(const TrainState& state) {
  saved_step_ = -1;
  save(state);
  flush();
}

void Saver::keep_best(const TrainState& state, double loss) {
  save(state);
  flush();
  best_ = {state.step, loss};
  write_file(
      best_path(),
      nlohmann::ordered_json({{"step", state.step}, {"validation_loss", loss}}).dump() + "\n");
  prune();
}

double Saver::best_loss() const {
  return best_ ? best_->loss : std::numeric_limits<double>::infinity();
}

std::optional<int64_t> Saver::best_step() const {
  return best_ ? std::optional(best_->step) : std::nullopt;
}

SavedRun find_run(const std::filesystem::path& folder) { return read_run(newest(folder)); }

SavedRun read_run(const std::filesystem::path& checkpoint) {
  SavedRun out;
  out.path = checkpoint;
  out.checkpoint = read_checkpoint(out.path);
  ParsedState parsed = parse_state(out.checkpoint.state, out.path.string());
  out.state = std::move(parsed.state);
  out.data_hash = std::move(parsed.data_hash);
  out.recipe = out.checkpoint.recipe;
  return out;
}

std::optional<TrainState> restore_before(const std::filesystem::path& folder, int64_t step,
                                         Optimizer& optimizer) {
  std::vector<int64_t> steps = checkpoint_steps(folder);
  for (auto at = steps.rbegin(); at != steps.rend(); ++at) {
    if (*at >= step) {
      continue;
    }
    try {
      const SavedRun saved = read_run(checkpoint_path(folder, *at));
      restore_run(saved, optimizer);
      return saved.state;
    } catch (const Error& error) {
      log_warn("passing over a damaged checkpoint: ", error.what());
    }
  }
  return std::nullopt;
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
