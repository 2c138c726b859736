#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>

#include "ingot/base/config_toml.h"
#include "ingot/base/files.h"
#include "ingot/base/hash.h"
#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "ingot/base/log.h"
#include "ingot/base/progress.h"
#include "ingot/base/signals.h"
#include "ingot/cli/commands.h"
#include "ingot/cli/eval_kinds.h"
#include "ingot/cli/evaluated_model.h"
#include "ingot/cli/version.h"
#include "ingot/eval/run_task.h"

namespace ingot {
namespace {

using Json = nlohmann::ordered_json;

struct EvalOptions {
  std::string model, dtype, data = ".", tasks = "recipes/tasks", out;
  std::vector<std::string> task, assignments, text;
  int64_t limit = 0, shots = -1, seed = 1;
  bool chat = false, json = false;
};

std::filesystem::path task_path(const EvalOptions& options, const std::string& name) {
  if (name.ends_with(".toml")) {
    return name;
  }
  const std::filesystem::path path = std::filesystem::path(options.tasks) / (name + ".toml");
  check(file_exists(path), ErrorKind::config, "--task ", name, ": there is no ", path.string(),
        "; name a file, or the folder of tasks with --tasks");
  return path;
}

// Everything that a score depends on besides the answers themselves.
Json record_of(const EvaluatedModel& model, const TaskConfig& task, const TaskItems& items,
               const EvalOptions& options) {
  Json out;
  out["task"] = task.name;
  out["task_version"] = task.version;
  out["task_hash"] = hash_hex(to_toml(task));
  out["model"] = model.path;
  out["engine"] = engine_version;
  out["dtype"] = model.dtype;
  out["tokenizer_hash"] = model.tokenizer_hash;
  out["template_hash"] = options.chat ? model.template_hash : "";
  out["shots"] = task.shots;
  out["few_shot_hash"] = items.shots_hash;
  out["items"] = items.items.size();
  return out;
}

Json json_of(const ItemResult& result) {
  Json out = {{"row", result.row}, {"scores", result.scores}};
  if (!result.written.empty()) {
    out["written"] = result.written;
  }
  return out;
}

// Results of questions, a line each after a line with the record that they belong to.
class ResultFile {
 public:
  ResultFile(const std::string& path, const Json& record) {
    if (path.empty()) {
      return;
    }
    if (file_exists(path)) {
      read(path, record);
    }
    file_.open(path, std::ios::binary | std::ios::app);
    check(file_.good(), ErrorKind::io, path, ": cannot be written; choose another folder");
    if (!known_) {
      file_ << record.dump() << '\n' << std::flush;
    }
  }

  const std::vector<ItemResult>& done() const { return done_; }
  void add(const std::vector<ItemResult>& results) {
    for (const ItemResult& result : results) {
      if (file_.is_open()) {
        file_ << json_of(result).dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
      }
    }
    file_.flush();
  }

 private:
  void read(const std::string& path, const Json& record) {
    std::istringstream lines(read_file(path));
    std::string whole;
    for (std::string line; std::getline(lines, line);) {
      const Json entry = Json::parse(line, nullptr, false);
      if (!entry.is_object()) {
        continue;  // the last line of a killed run
      }
      if (entry.contains("task")) {
        check(entry == record, ErrorKind::config, path,
              ": holds results of another model, task or "
              "setting; name another file with --out, or remove it");
        known_ = true;
      } else if (known_) {
        ItemResult result;
        result.row = entry.at("row").get<int64_t>();
        result.scores = entry.at("scores").get<std::map<std::string, double>>();
        result.written = entry.value("written", "");
        done_.push_back(std::move(result));
      }
      whole += line + "\n";
    }
    write_file(path, whole);
  }

  std::ofstream file_;
  std::vector<ItemResult> done_;
  bool known_ = false;
};

std::string result_path(const EvalOptions& options, const TaskConfig& task) {
  if (options.out.empty()) {
    return "";
  }
  make_directories(options.out);
  return (std::filesystem::path(options.out) / (task.name + ".jsonl")).string();
}

Json evaluate_task(const EvaluatedModel& model, const TaskConfig& task,
                   const EvalOptions& options) {
  const TaskItems items =
      task_items(task, options.data, options.limit, static_cast<uint64_t>(options.seed));
  Json record = record_of(model, task, items, options);
  ResultFile file(result_path(options, task), record);
  const StopSignals signals;
  Progress progress(task.name, static_cast<int64_t>(items.items.size()), "questions");
  progress.start_at(static_cast<int64_t>(file.done().size()));
  RunTaskOptions running;
  running.chat = options.chat;
  running.on_results = [&](const std::vector<ItemResult>& results) {
    file.add(results);
    progress.advance(static_cast<int64_t>(results.size()));
    return !stop_requested();
  };
  const EvalModel functions = model.functions();
  const std::vector<ItemResult> results =
      run_task(functions, task, items.items, file.done(), running);
  progress.finish();
  if (results.size() < items.items.size()) {
    log_info("stopped after ", results.size(), " of ", items.items.size(), " questions",
             options.out.empty() ? "" : "; the same command continues");
    throw CLI::RuntimeError(130);
  }
  for (const auto& [name, estimate] : summary(task, results)) {
    record["scores"][name] = {{"value", estimate.value}, {"stderr", estimate.error}};
  }
  return record;
}

void print(const Json& record) {
  fmt::print("{} (version {}, {} examples, {} questions)\n", record["task"].get<std::string>(),
             record["task_version"].get<int64_t>(), record["shots"].get<int64_t>(),
             record["items"].get<int64_t>());
  for (const auto& [name, score] : record["scores"].items()) {
    const auto error = score["stderr"].get<double>();
    fmt::print("  {:<24} {:.4f}{}\n", name, score["value"].get<double>(),
               error > 0 ? fmt::format(" ± {:.4f}", error) : "");
  }
}

// Perplexity of text files, without a task file.
TaskConfig text_task(const std::vector<std::string>& files) {
  TaskConfig task;
  task.name = "text";
  task.kind = "text";
  task.files = files;
  task.prompt = "{{ text }}";
  return task;
}

void evaluate_all(const EvalOptions& options) {
  check(!options.model.empty(), ErrorKind::config,
        "eval: no model given; try `ingot eval runs/kjv/model --text book.txt`");
  check(!options.task.empty() || !options.text.empty(), ErrorKind::config,
        "eval: nothing to evaluate; name tasks with --task, or text files with --text");
  std::vector<TaskConfig> tasks;
  for (const std::string& name : options.task) {
    tasks.push_back(read_task(task_path(options, name), options.assignments));
    tasks.back().shots = options.shots >= 0 ? options.shots : tasks.back().shots;
  }
  if (!options.text.empty()) {
    tasks.push_back(text_task(options.text));
  }
  const EvaluatedModel model = load_evaluated(options.model, options.dtype);
  Json out = Json::array();
  for (const TaskConfig& task : tasks) {
    out.push_back(evaluate_task(model, task, options));
    if (!options.json) {
      print(out.back());
    }
  }
  if (options.json) {
    std::cout << out.dump(2) << '\n';
  } else {
    fmt::print("{}, {}, tokenizer {}{}\n", engine_version, model.dtype,
               model.tokenizer_hash.substr(0, 12),
               options.chat ? ", template " + model.template_hash.substr(0, 12) : "");
  }
}

}  // namespace

void add_eval_command(CLI::App& program) {
  CLI::App* verb = program.add_subcommand(
      "eval", "Measure a model: perplexity of text, multiple choice, written answers.");
  verb->footer(
      "Scores are those of lm-evaluation-harness, with standard errors; docs/eval.md says what "
      "they "
      "record.\n"
      "Example: ingot eval runs/sft/model --text held_out.txt --task arc_easy --data "
      "../shared/data");
  auto options = std::make_shared<EvalOptions>();
  verb->add_option("model", options->model, "model folder or GGUF file");
  verb->add_option("--task", options->task, "task by name or file, any number of times")
      ->delimiter(',');
  verb->add_option("--text", options->text, "text files: perplexity and bits per byte");
  verb->add_option("--data", options->data, "folder that tasks name their files below")
      ->capture_default_str();
  verb->add_option("--tasks", options->tasks, "folder of tasks")->capture_default_str();
  verb->add_option("--set", options->assignments, "KEY=VALUE over the task's file");
  verb->add_option("--limit", options->limit, "questions of each task at most; 0: all");
  verb->add_option("--shots", options->shots,
                   "examples before each question (default: the task's)");
  verb->add_option("--seed", options->seed, "of examples that are drawn");
  verb->add_option("--out", options->out,
                   "folder for each question's result; an interrupted run continues from it");
  verb->add_option("--dtype", options->dtype, "compute in this type (default: the file's)")
      ->check(CLI::IsMember({"f32", "bf16", "f16"}));
  verb->add_flag("--chat", options->chat, "ask through the model's chat template");
  verb->add_flag("--json", options->json, "print JSON");
  add_eval_needle(*verb);
  add_eval_winrate(*verb);
  verb->require_subcommand(0, 1);
  verb->callback([verb, options] {
    if (verb->get_subcommands().empty()) {
      evaluate_all(*options);
    }
  });
}

}  // namespace ingot
