#include "ingot/cli/run.h"

#include <fmt/format.h>

#include <iostream>
#include <optional>

#include "ingot/base/config_toml.h"
#include "ingot/base/cpu_features.h"
#include "ingot/base/files.h"
#include "ingot/base/json_library.h"
#include "ingot/base/log.h"
#include "ingot/base/progress.h"
#include "ingot/base/signals.h"
#include "ingot/base/text_size.h"
#include "ingot/cli/recipe_effects.h"
#include "ingot/cli/run_answers.h"
#include "ingot/cli/run_data.h"
#include "ingot/cli/run_folder.h"
#include "ingot/cli/run_observers.h"
#include "ingot/cli/run_rows.h"
#include "ingot/cli/sample.h"
#include "ingot/cli/session.h"
#include "ingot/io/checkpoint.h"
#include "ingot/models/pretrained.h"
#include "ingot/train/deadline.h"
#include "ingot/train/loss_curve.h"
#include "ingot/train/machine_peak.h"
#include "ingot/train/saver.h"
#include "ingot/train/time_ledger.h"

namespace ingot {

std::filesystem::path folder_path(const RunOptions& options) {
  return options.folder.empty() ? std::filesystem::path("runs") / options.recipe.stem()
                                : options.folder;
}

bool save_requested(const std::filesystem::path& run) {
  const bool by_signal = take_save_request();
  std::error_code none;
  return std::filesystem::remove(run / "save", none) || by_signal;
}

namespace {

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
  for (const ValidationSet& set : data.sets) {
    log_info("measured on ", set.name, " too, hash ", set.hash.substr(0, 12));
  }
  if (data.anneal_from) {
    log_info("annealing from step ", decay_start(recipe, session.last_step()) + 1,
             " on: ", recipe.data.anneal_files.size(), " other files are read");
  }
  if (session.model().config().moe.experts > 0 && !learns_tokens(recipe)) {
    log_warn(recipe.kind, ": the routers' losses and corrections are of kinds that learn tokens, ",
             "pretrain and sft: the loads of the experts may go apart");
  }
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
    saved.state.last_step = 0;  // a branch has an end of its own
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

// train.fit: the number of micro-batches of the run so far, or the least that fits now.
Recipe fitted(Recipe recipe, const RunOptions& options) {
  if (!recipe.train.fit) {
    return recipe;
  }
  const std::filesystem::path before = RunFolder(folder_path(options)).recipe();
  if (options.resume && file_exists(before)) {
    recipe.train.accumulate = parse_recipe(read_file(before), before.string()).train.accumulate;
    return recipe;
  }
  // A tenth is left to the system, to files and to the program itself.
  recipe.train.accumulate = accumulate_that_fits(recipe, machine().memory_available_bytes / 10 * 9);
  log_info("train.fit: ", recipe.train.accumulate, " micro-batches of ",
           recipe.train.batch / recipe.train.accumulate, " sequences");
  return recipe;
}

// train.until: places the decay, and with it the end of the run, when its time has come. What is
// decided is a part of the state, so that a run that goes on keeps to it.
void keep_deadline(Session& session, const RunData& data, Saver& saver, Training& training) {
  const Recipe& recipe = session.recipe();
  if (recipe.train.until.empty()) {
    return;
  }
  const double now = now_seconds();
  const double ends = deadline_of(recipe.train.until, now);
  log_info(fmt::format("to be over in {}", text_duration(std::max(0.0, ends - now))));
  auto deadline = std::make_shared<Deadline>(ends, now, session.state.step);
  training.last_step = [&session, &data, &saver, &recipe, deadline](TrainState& state) {
    const auto& wsd = std::get<WsdSchedule>(recipe.schedule.schedule);
    const int64_t decay = decay_steps(wsd, state.step);
    if (state.last_step == 0 && state.step + decay < recipe.train.steps &&
        deadline->due(state.step, now_seconds(), decay)) {
      state.last_step = state.step + decay;
      place_annealing(data, recipe, state.last_step);
      saver.save_anew(state);
      log_info("train.until: the decay begins after step ", state.step, "; the run ends with step ",
               state.last_step);
    }
    return session.last_step();
  };
}

// The run is over though steps are left: it gives the weights of its best checkpoint.
void end_early(Session& session, const RunFolder& folder, Saver& saver) {
  saver.save(session.state);
  saver.flush();
  log_info("ended at step ", session.state.step, ": ", session.recipe().evaluate.patience,
           " evaluations without gain in held-out loss");
  if (const std::optional<int64_t> best = saver.best_step()) {
    restore_run(read_run(checkpoint_path(folder.checkpoints(), *best)), session.optimizer());
    log_info("taking the weights of step ", *best, ", whose held-out loss was ", saver.best_loss());
  }
}

// After the last step: saved first, then measured, exported and shown.
void finish_run(Session& session, const RunFolder& folder, Saver& saver, RunObservers& observers,
                const RunData& data, bool json) {
  const TextCodec& codec = data.codec;
  const int64_t peak = allocator(cpu_device).stats().peak_total;
  saver.save(session.state);
  saver.flush();
  const Evaluation found = observers.validator().measure_all(session.state);
  const EvaluatedWeights shown(session.optimizer());
  std::filesystem::path made = folder.model();
  if (session.adapters() != nullptr) {
    made = save_run_adapter(session, data, folder);
  } else {
    SaveOptions options;
    options.base_config = base_config(session.recipe(), codec_config(codec));
    write_reading(data, made, options);
    save_pretrained(session.model(), made, options);
  }
  if (session.score_head() != nullptr) {
    save_score_head(session, made);
  }
  observers.end("finished");
  const std::string comparison = observers.report(peak);
  if (json) {
    print_summary(session, found, folder);
    return;
  }
  std::cout << '\n' << loss_curve(observers.log().steps()) << '\n';
  std::cout << fmt::format(
      "trained {} tokens; held-out {:.4f} nats, {:.4f} bits per byte; peak memory {}\n",
      text_count(static_cast<double>(session.state.tokens)), found.loss, found.bits(),
      text_bytes(allocator(cpu_device).stats().peak_total));
  if (const int64_t on_disk = allocator(cpu_device).stats().on_disk_peak; on_disk > 0) {
    std::cout << "train.offload kept " << text_bytes(on_disk) << " on disk\n";
  }
  std::cout << session.tokens_per_parameter(session.state.tokens).text() << '\n';
  std::cout << "plan against actual: " << comparison << '\n';
  if (session.adapters() != nullptr) {
    const std::string base = adapted_base(session, data, folder);
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
  const double began = now_seconds();
  Recipe recipe = fitted(read_recipe(options.recipe, options.assignments), options);
  check(!options.resume || options.branch.empty(), ErrorKind::config,
        "train: --resume continues a run and --branch begins one; give one of them");
  const RunData data = open_run_data(recipe, folder_path(options).parent_path() / ".tokens");
  Session(recipe, meta_device,
          data.added);  // what no field shows is refused before a folder is begun
  if (!recipe.train.until.empty()) {
    deadline_of(recipe.train.until, began);  // whether it is a time
  }
  RunFolder folder(folder_path(options));
  folder.open(options.resume);
  place_memory(recipe, cpu_device, folder.path());
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
    place_annealing(data, recipe, session.last_step());
    saved.reset();  // its tensors are files that the next checkpoint replaces
  }
  write_file(folder.recipe(), to_toml(recipe));
  prepare_answers(session, data, folder);

  const CheckpointConfig& saving = recipe.checkpoint;
  Saver saver({folder.checkpoints(), to_toml(recipe), data.hash, saving.every, saving.keep,
               saving.keep_every, keeps_best(recipe), saving.background,
               [&folder] { return save_requested(folder.path()); }},
              session.optimizer());
  saver.check_space(recipe.train.steps);
  saver.save(session.state);  // a full disk or a wrong mount shows now, not in an hour
  saver.flush();
  RunObservers observers(session, data, folder, saver, peak,
                         options.resume ? "" : options.branch.string(), began);
  Training training = session.training(data.batch);
  observers.join(training);
  keep_deadline(session, data, saver, training);
  const auto paused = [&] {
    return options.pause_after > 0 && session.state.step >= options.pause_after;
  };
  training.stop = [&, stop = training.stop] { return stop() || paused(); };
  try {
    observers.validator().measure_if_due(session.state);
    allocator(cpu_device).reset_peak();
    train(session.state, training);
    observers.finish();
    if (session.state.step < session.last_step() && !observers.validator().wants_to_stop()) {
      saver.save(session.state);
      saver.flush();
      observers.end("stopped");
      log_info("stopped at step ", session.state.step, ", saved; continue with --resume");
      return paused();
    }
    if (session.state.step < session.last_step()) {
      end_early(session, folder, saver);
    }
    finish_run(session, folder, saver, observers, data, options.json);
  } catch (const Error& error) {
    observers.end(error.kind() == ErrorKind::numeric ? "diverged" : "failed");
    throw;
  }
  return true;
}

}  // namespace ingot
