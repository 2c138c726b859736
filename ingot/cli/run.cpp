#include "ingot/cli/run.h"

#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "ingot/base/config_toml.h"
#include "ingot/base/files.h"
#include "ingot/base/log.h"
#include "ingot/base/progress.h"
#include "ingot/base/signals.h"
#include "ingot/base/text_size.h"
#include "ingot/cli/run_answers.h"
#include "ingot/cli/run_data.h"
#include "ingot/cli/run_folder.h"
#include "ingot/cli/run_rows.h"
#include "ingot/cli/sample.h"
#include "ingot/cli/session.h"
#include "ingot/io/checkpoint.h"
#include "ingot/models/pretrained.h"
#include "ingot/train/console.h"
#include "ingot/train/evaluate.h"
#include "ingot/train/loss_curve.h"
#include "ingot/train/machine_peak.h"
#include "ingot/train/run_log.h"
#include "ingot/train/saver.h"

namespace ingot {
namespace {

std::filesystem::path folder_path(const RunOptions& options) {
  return options.folder.empty() ? std::filesystem::path("runs") / options.recipe.stem()
                                : options.folder;
}

// Evaluates every so many steps, after the saver has saved: a failing evaluation loses nothing.
class Validator : public Observer {
 public:
  Validator(Session& session, const RunData& data, RunLog& log)
      : session_(session), data_(data), log_(log) {}

  void after_step(const TrainState& state, const StepReport&) override {
    measure_if_due(state.step);
  }

  // Also where a run continues: it may have been killed after saving and before measuring.
  void measure_if_due(int64_t step) {
    const int64_t every = session_.recipe().evaluate.every;
    if (every > 0 && step > 0 && step % every == 0 && step < session_.recipe().train.steps &&
        !log_.has_evaluation(step)) {
      const int64_t limit = session_.recipe().evaluate.batches;
      measure(step,
              limit > 0 ? std::min(limit, data_.validation_batches) : data_.validation_batches);
    }
  }

  // On the whole held-out text, as the figure that a run is known by.
  Evaluation measure_all(int64_t step) { return measure(step, data_.validation_batches); }

 private:
  Evaluation measure(int64_t step, int64_t batches) {
    const EvaluatedWeights shown(session_.optimizer());
    Evaluation found =
        evaluate(session_.objective(), batches, data_.validation, *session_.model().randomness());
    found.bytes_per_target = data_.bytes_per_target;
    log_.evaluated(step, found);
    if (run_kind(session_.recipe().kind).rows > 1) {
      std::string metrics;
      for (const auto& [name, value] : found.metrics) {
        metrics += fmt::format(", {} {:.4f}", name, value);
      }
      log_info(fmt::format("step {}: held-out loss {:.4f}{} ({} in {})", step, found.loss, metrics,
                           found.tokens, text_duration(found.seconds)));
      return found;
    }
    log_info(fmt::format("step {}: held-out loss {:.4f}, {:.4f} bits per byte ({} bytes in {})",
                         step, found.loss, found.bits(),
                         text_count(static_cast<double>(found.tokens) * found.bytes_per_target),
                         text_duration(found.seconds)));
    return found;
  }

  Session& session_;
  const RunData& data_;
  RunLog& log_;
};

void introduce(Session& session, const RunData& data, const RunFolder& folder, double peak) {
  const Recipe& recipe = session.recipe();
  const auto count = [](int64_t n) { return text_count(static_cast<double>(n)); };
  log_info(fmt::format(
      "run {}: {} parameters in {}{}, {}", folder.path().string(), count(session.model().count()),
      recipe.dtype,
      recipe.train.freeze.empty() ? ""
                                  : fmt::format(" ({} of them trained)",
                                                count(session.optimizer().parameters().elements())),
      data.sizes.empty() ? fmt::format("{} training and {} held-out bytes", count(data.train_bytes),
                                       count(data.validation_bytes))
                         : data.sizes));
  if (data.added.count > 0) {
    log_info(data.added.count, " tokens added, from id ", data.added.first,
             " on; they start as the mean of the others");
  }
  if (session.adapters() != nullptr) {
    log_info(session.adapters()->coverage().text(recipe.peft.kind));
  }
  if (!data.example.empty()) {
    log_info("one example; what is learnt is ",
             standard_error_style().terminal ? "green" : "between « and »", ":\n", data.example);
  }
  log_info(fmt::format(
      "{} steps of {} x {} tokens{}", recipe.train.steps, recipe.train.batch, recipe.train.sequence,
      peak > 0 ? fmt::format("; matrix peak of this machine {}/s, measured", text_flops(peak))
               : ""));
  const int64_t tokens = tokens_of_steps(recipe.train, recipe.train.steps);
  log_info(session.tokens_per_parameter(tokens).text());
  log_info("learning rate over the run:\n",
           drawn(recipe.schedule.schedule, recipe.optim.learning_rate, schedule_total(recipe)));
}

// The checkpoint to continue from, after its recipe and text are found to be this run's.
SavedRun found_run(const RunFolder& folder, const RunOptions& options, const Recipe& recipe,
                   const RunData& data) {
  SavedRun saved = options.resume ? find_run(folder.checkpoints()) : read_run(options.branch);
  const Recipe before = parse_recipe(saved.recipe, saved.path.string());
  if (options.resume) {
    check_resumable(before, recipe);
  } else {
    check_branchable(before, recipe);
    const int64_t step = saved.state.step;
    check(step < recipe.train.steps, ErrorKind::config, "branch: the checkpoint is at step ", step,
          ", train.steps is ", recipe.train.steps, "; raise train.steps");
    log_info("branching off at step ", step, ": the learning rate was ",
             learning_rate_of_step(before, step), ", is ", learning_rate_of_step(recipe, step));
  }
  check(saved.data_hash == data.hash, ErrorKind::config,
        "resume: the training text changed: its hash is ", data.hash,
        ", the checkpoint was trained on ", saved.data_hash,
        "; give it the same text, or start another --run");
  return saved;
}

void resume(Session& session, const SavedRun& saved) {
  restore_run(saved, session.optimizer());
  session.state = saved.state;
  log_info("continuing at step ", saved.state.step, ", sample ", saved.state.position,
           ", data hash ", saved.data_hash.substr(0, 12), " matches");
}

void write_sample(Session& session, const TextCodec& codec, const ChatTemplate* chat) {
  const SampleConfig& config = session.recipe().sample;
  if (config.tokens > 0) {
    std::cout << "\n"
              << sample_text(session.model(), codec, config,
                             static_cast<uint64_t>(session.recipe().seed), chat)
              << "\n\n";
  }
}

void print_summary(const Session& session, const Evaluation& found, const RunFolder& folder) {
  const TrainState& state = session.state;
  const TokensPerParameter seen = session.tokens_per_parameter(state.tokens);
  nlohmann::ordered_json out;
  out["run"] = folder.path().string();
  out["steps"] = state.step;
  out["tokens"] = state.tokens;
  out["parameters"] = seen.parameters;
  out["tokens_per_parameter"] = seen.total();
  out["tokens_per_non_embedding_parameter"] = seen.without_embeddings();
  out["validation_loss"] = found.loss;
  out["validation_bits"] = found.bits();
  out["peak_memory"] = allocator(cpu_device).stats().peak_total;
  out["dtype"] = session.recipe().dtype;
  std::cout << out.dump() << '\n';
}

// What the model's config.json says besides its shape: what it reads, what it was made from, and
// how far it is: "base", or the kind of fine-tuning.
std::string base_config(const Recipe& recipe, const std::string& text) {
  const ModelConfig& model = recipe.model;
  nlohmann::json out = nlohmann::json::parse(text);
  out["ingot"]["stage"] = recipe.kind == "pretrain" ? "base" : recipe.kind;
  if (!model.from.empty()) {
    nlohmann::json trained = nlohmann::json::parse(open_source(model.from).published);
    trained.update(out, true);
    out = std::move(trained);
  }
  return out.dump();
}

// After the last step: saved first, then measured, exported and shown.
void finish(Session& session, const RunFolder& folder, Saver& saver, Validator& validator,
            const RunLog& log, const RunData& data, bool json) {
  const TextCodec& codec = data.codec;
  saver.save(session.state);
  const Evaluation found = validator.measure_all(session.state.step);
  const EvaluatedWeights shown(session.optimizer());
  const std::filesystem::path made =
      session.adapters() != nullptr ? folder.path() / "adapter" : folder.model();
  if (session.adapters() != nullptr) {
    save_run_adapter(session, data, made);
  } else {
    SaveOptions options;
    options.base_config = base_config(session.recipe(), codec_config(codec));
    write_reading(data, made, options);
    save_pretrained(session.model(), made, options);
  }
  if (session.score_head() != nullptr) {
    save_score_head(session, made);
  }
  if (json) {
    print_summary(session, found, folder);
    return;
  }
  std::cout << '\n' << loss_curve(log.steps()) << '\n';
  std::cout << fmt::format(
      "trained {} tokens; held-out {:.4f} nats, {:.4f} bits per byte; peak memory {}\n",
      text_count(static_cast<double>(session.state.tokens)), found.loss, found.bits(),
      text_bytes(allocator(cpu_device).stats().peak_total));
  std::cout << session.tokens_per_parameter(session.state.tokens).text() << '\n';
  if (session.adapters() != nullptr) {
    const std::string& base = session.recipe().model.from;
    std::cout << "adapter in " << made.string() << "; `ingot generate " << base << " --lora "
              << made.string() << "`, or put it into the weights with `ingot merge " << base
              << " OUT --lora " << made.string() << "`\n";
  } else {
    std::cout << "model in " << made.string() << "; continue its text with `ingot generate "
              << made.string() << "`\n";
  }
  write_sample(session, codec, data.chat.get());
}

}  // namespace

bool run_recipe(const RunOptions& options) {
  Recipe recipe = read_recipe(options.recipe, options.assignments);
  check(!options.resume || options.branch.empty(), ErrorKind::config,
        "train: --resume continues a run and --branch begins one; give one of them");
  const RunData data = open_run_data(recipe, folder_path(options).parent_path() / ".tokens");
  Session(recipe, meta_device,
          data.added);  // what no field shows is refused before a folder is begun
  RunFolder folder(folder_path(options));
  folder.open(options.resume);
  std::optional<SavedRun> saved;
  if (options.resume || !options.branch.empty()) {
    saved = found_run(folder, options, recipe, data);
  }
  const StopSignals signals;
  const double peak = options.measure_peak ? measured_peak_flops(*dtype_named(recipe.dtype)) : 0;
  Session session(recipe, cpu_device, data.added);
  introduce(session, data, folder, peak);
  if (saved) {
    resume(session, *saved);
    saved.reset();  // its tensors are files that the next checkpoint replaces
  }
  write_file(folder.recipe(), to_toml(recipe));
  prepare_answers(session, data, folder);

  const CheckpointConfig& saving = recipe.checkpoint;
  Saver saver({folder.checkpoints(), to_toml(recipe), data.hash, saving.every, saving.keep},
              session.optimizer());
  saver.save(session.state);  // a full disk or a wrong mount shows now, not in an hour
  RunLog log(folder.log(), session.state.step, peak);
  Console console(session.state.step, recipe.train.steps, peak, data.codec.tokenizer() == nullptr);
  Validator validator(session, data, log);
  Training training = session.training(data.batch);
  training.observers = {&log, &saver, &validator, &console};
  training.stop = stop_requested;
  validator.measure_if_due(session.state.step);
  allocator(cpu_device).reset_peak();
  train(session.state, training);
  console.finish();
  if (session.state.step < recipe.train.steps) {
    saver.save(session.state);
    log_info("stopped at step ", session.state.step, ", saved; continue with --resume");
    return false;
  }
  finish(session, folder, saver, validator, log, data, options.json);
  return true;
}

}  // namespace ingot
