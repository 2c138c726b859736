#include "ingot/cli/encoder_run.h"

#include <fmt/format.h>

#include <iostream>

#include "ingot/base/config_toml.h"
#include "ingot/base/files.h"
#include "ingot/base/json_library.h"
#include "ingot/base/log.h"
#include "ingot/base/signals.h"
#include "ingot/base/text_size.h"
#include "ingot/cli/encoder_session.h"
#include "ingot/cli/run_folder.h"
#include "ingot/cli/run_tracker.h"
#include "ingot/cli/text_codec.h"
#include "ingot/train/console.h"
#include "ingot/train/journal.h"
#include "ingot/train/machine_peak.h"
#include "ingot/train/run_log.h"
#include "ingot/train/saver.h"
#include "ingot/train/tensorboard.h"

namespace ingot {
namespace {

// Measures every so many steps, after the saver has saved.
class Validator : public Observer {
 public:
  using Told = std::function<void(int64_t step, const Evaluation& found)>;

  Validator(EncoderSession& session, const EncoderRecipe& recipe, const EncoderData& data,
            RunLog& log, Told told)
      : session_(session), recipe_(recipe), data_(data), log_(log), told_(std::move(told)) {}

  void after_step(const TrainState& state, const StepReport&) override {
    const int64_t every = recipe_.evaluate.every;
    if (every > 0 && state.step % every == 0 && state.step < recipe_.train.steps &&
        !log_.has_evaluation(state.step)) {
      const int64_t limit = recipe_.evaluate.batches;
      measure(state.step,
              limit > 0 ? std::min(limit, data_.validation_batches) : data_.validation_batches);
    }
  }

  Evaluation measure(int64_t step, int64_t batches) {
    const EvaluatedWeights shown(session_.optimizer());
    const Evaluation found =
        evaluate(session_.objective(), batches, data_.validation, *session_.model().randomness());
    log_.evaluated(step, found);
    told_(step, found);
    log_info(fmt::format("step {}: held-out loss {:.4f}", step, found.loss));
    return found;
  }

 private:
  EncoderSession& session_;
  const EncoderRecipe& recipe_;
  const EncoderData& data_;
  RunLog& log_;
  Told told_;
};

SavedRun found_run(const RunFolder& folder, const EncoderRecipe& recipe, const EncoderData& data) {
  SavedRun saved = find_run(folder.checkpoints());
  const EncoderRecipe before = parse_encoder_recipe(saved.recipe, saved.path.string());
  for (const Difference& one : diff_configs(before, recipe)) {
    check(may_change_on_resume(one.path), ErrorKind::config,
          "resume: the recipe changed: ", one.path, " was ", one.a, ", is ", one.b,
          "; put it back, or start another --run");
  }
  check(saved.data_hash == data.hash, ErrorKind::config,
        "resume: the training text changed: its hash is ", data.hash,
        ", the checkpoint was trained on ", saved.data_hash,
        "; give it the same text, or start another --run");
  return saved;
}

// A spike may take the run back to a checkpoint before it.
void let_rewind(Training& training, const RunFolder& folder, Saver& saver, RunLog& log,
                Journal& journal, Optimizer& optimizer) {
  training.rewind.restore = [&](int64_t step) {
    saver.flush();
    return restore_before(folder.checkpoints(), step, optimizer);
  };
  training.rewind.resumed = [&](const TrainState& state, const std::string& event) {
    saver.save_anew(state);
    log.rewind(state.step, event);
    journal.rewind(state.step);
  };
}

// What config.json says besides the model's shape.
std::string base_config(const EncoderRecipe& recipe, const EncoderData& data) {
  nlohmann::json out = recipe.model.from.empty()
                           ? nlohmann::json::object()
                           : nlohmann::json::parse(read_bert(recipe.model.from).json);
  if (recipe.kind == "classify") {
    out["id2label"] = nlohmann::json::object();
    out["label2id"] = nlohmann::json::object();
    for (size_t i = 0; i < data.labels.size(); ++i) {
      out["id2label"][std::to_string(i)] = data.labels[i];
      out["label2id"][data.labels[i]] = i;
    }
  }
  out["ingot"]["tokens"] = data.tokens.tokenizer ? data.tokens.tokenizer->hash() : "framed bytes";
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void finish_encoder(EncoderSession& session, const EncoderRecipe& recipe, const EncoderData& data,
                    const RunFolder& folder, Saver& saver, Validator& validator, bool json) {
  saver.save(session.state);
  saver.flush();
  const Evaluation found = validator.measure(session.state.step, data.validation_batches);
  const EvaluatedWeights shown(session.optimizer());
  const auto scores = encoder_scores(session.model(), recipe, data);
  save_bert(session.model(), folder.model(), base_config(recipe, data));
  if (data.tokens.tokenizer) {
    copy_tokenizer(recipe.data.tokenizer, folder.model());
  }
  if (json) {
    nlohmann::ordered_json out = {{"run", folder.path().string()},
                                  {"steps", session.state.step},
                                  {"parameters", session.model().count()},
                                  {"validation_loss", found.loss},
                                  {"scores", scores}};
    std::cout << out.dump() << '\n';
    return;
  }
  std::cout << fmt::format("\nheld-out loss {:.4f}", found.loss);
  for (const auto& [name, value] : scores) {
    std::cout << fmt::format(", {} {:.4f}", name, value);
  }
  std::cout << "\nmodel in " << folder.model().string() << '\n';
}

}  // namespace

bool run_encoder_recipe(const RunOptions& options) {
  const EncoderRecipe recipe = read_encoder_recipe(options.recipe, options.assignments);
  check(options.branch.empty(), ErrorKind::config,
        "train: --branch is for language models; a recipe of kind ", recipe.kind, " has none");
  const EncoderData data = open_encoder_data(recipe);
  RunFolder folder(folder_path(options));
  folder.open(options.resume);
  std::optional<SavedRun> saved;
  if (options.resume) {
    saved = found_run(folder, recipe, data);
  }
  const StopSignals signals;
  const double peak = options.measure_peak ? measured_peak_flops(*dtype_named(recipe.dtype)) : 0;
  EncoderSession session(recipe, data);
  log_info(fmt::format("run {}: {} parameters in {}, {} training and {} held-out rows",
                       folder.path().string(),
                       text_count(static_cast<double>(session.model().count())), recipe.dtype,
                       data.rows, data.validation_rows));
  if (saved) {
    restore_run(*saved, session.optimizer());
    session.state = saved->state;
    log_info("continuing at step ", session.state.step, ", sample ", session.state.position,
             ", data hash ", saved->data_hash.substr(0, 12), " matches");
    saved.reset();
  }
  write_file(folder.recipe(), to_toml(recipe));
  const CheckpointConfig& saving = recipe.checkpoint;
  Saver saver({folder.checkpoints(), to_toml(recipe), data.hash, saving.every, saving.keep,
               saving.keep_every, false, saving.background,
               [&folder] { return save_requested(folder.path()); }},
              session.optimizer());
  saver.check_space(recipe.train.steps);
  saver.save(session.state);
  saver.flush();
  RunLog log(folder.log(), session.state.step, peak);
  Journal journal(folder.journal(), session.state.step, recipe.seed);
  Console console(session.state.step, recipe.train.steps, peak, false);
  const TrackedRun run = {to_toml(recipe),         data.hash,          recipe.model.from,
                          session.model().count(), recipe.train.steps, recipe.track.store};
  RunTracker tracker(folder, run, session.state);
  std::optional<Tensorboard> events;
  if (recipe.track.tensorboard) {
    events.emplace(folder.path() / "tensorboard", session.state.step);
  }
  Validator validator(session, recipe, data, log, [&](int64_t step, const Evaluation& found) {
    tracker.evaluated(step, found);
    if (events) {
      events->evaluated(step, found);
    }
  });
  Training training = session.training(data.batch);
  training.observers = {&log, &journal, &tracker, &saver, &validator, &console};
  if (events) {
    training.observers.push_back(&*events);
  }
  training.before_update = [&saver] { saver.flush(); };
  let_rewind(training, folder, saver, log, journal, session.optimizer());
  const auto paused = [&] {
    return options.pause_after > 0 && session.state.step >= options.pause_after;
  };
  training.stop = [&] { return stop_requested() || paused(); };
  allocator(cpu_device).reset_peak();
  try {
    train(session.state, training);
    console.finish();
    if (session.state.step < recipe.train.steps) {
      saver.save(session.state);
      saver.flush();
      tracker.end("stopped");
      log_info("stopped at step ", session.state.step, ", saved; continue with --resume");
      return paused();
    }
    finish_encoder(session, recipe, data, folder, saver, validator, options.json);
    tracker.end("finished");
  } catch (const Error& error) {
    tracker.end(error.kind() == ErrorKind::numeric ? "diverged" : "failed");
    throw;
  }
  return true;
}

}  // namespace ingot
