#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "ingot/base/describe.h"
#include "ingot/text/jinja_value.h"

namespace ingot {

// A task as a TOML file describes it. Texts in `prompt`, `target`, `choices`, `gold` and `contexts`
// are Jinja templates over a row of the files, so that any layout can be read; so is `description`.
// Beside the row's fields they see `_file`, the name of its file without extension.
struct TaskConfig {
  std::string name;
  int64_t version = 1;
  std::string kind = "choice";
  std::vector<std::string> files;
  std::vector<std::string> shot_files;
  std::vector<std::string> columns;
  std::string rows;
  std::string prompt;
  std::string target;
  std::vector<std::string> choices;
  std::string gold;
  std::vector<std::string> contexts;
  std::string aliases;
  std::string description;
  std::string delimiter = " ";
  std::string shot_delimiter = "\n\n";
  int64_t shots = 0;
  std::string shot_order = "first";
  std::vector<std::string> until = {"\n\n"};
  int64_t max_tokens = 256;
  std::vector<std::string> extract = {"none"};
  std::string normalize = "none";

  template <class V>
  void describe(V& v) {
    v("name", name, "of the task");
    v("version", version, at_least(0), "raised when a change of this file changes scores");
    v("kind", kind, one_of({"choice", "contexts", "continuation", "generate", "ifeval", "text"}),
      "choice: the likeliest of several answers; contexts: the likeliest of several beginnings of "
      "one "
      "end; continuation: whether the target is what the model says; generate: what it writes, "
      "compared; ifeval: what it writes, verified; text: perplexity");
    v("files", files, "files of rows, below the data folder");
    v("shot_files", shot_files,
      "files that examples are taken from; empty: the files themselves; as many as files: "
      "each file's from its own");
    v("columns", columns, "names of the fields of a CSV file without a line of names");
    v("rows", rows, "member of a JSON file that holds the rows; empty: the file is the rows");
    v("prompt", prompt, "what stands before the answer");
    v("target", target, "the right answer");
    v("choices", choices, "the answers; a single template may print a JSON list");
    v("gold", gold, "which of them is right: its number from 0, its letter, or its text");
    v("contexts", contexts, "the beginnings; a single template may print a JSON list");
    v("aliases", aliases, "template that prints a JSON list of other right answers");
    v("description", description, "stands before everything");
    v("delimiter", delimiter, "between prompt and answer");
    v("shot_delimiter", shot_delimiter, "between examples");
    v("shots", shots, at_least(0), "examples with answers before each question");
    v("shot_order", shot_order, one_of({"first", "drawn"}),
      "the first rows, or rows drawn for each question");
    v("until", until, "texts at which writing ends");
    v("max_tokens", max_tokens, at_least(1), "tokens to write at most");
    v("extract", extract,
      "how the answer is found in what was written; each is a score of its own");
    v("normalize", normalize, one_of({"none", "gsm8k", "number", "trivia", "lower"}),
      "what is done to both before comparing");
  }
};

// Reads a task. Throws Error(io) or Error(config) naming the file and the key.
TaskConfig read_task(const std::filesystem::path& path,
                     const std::vector<std::string>& assignments = {});

// One question.
struct TaskItem {
  int64_t row = 0;                    // counted from 0 over all files
  std::string place;                  // "arc_easy.jsonl:7"
  std::string prompt;                 // with description and examples
  std::vector<std::string> contexts;  // kind contexts
  std::vector<std::string> answers;   // choice: all; otherwise the right one
  std::vector<std::string> right;     // generate: all that are right
  int64_t gold = 0;
  std::string question;  // the last prompt alone
  jinja::Value fields;   // the row
};

struct TaskItems {
  std::vector<TaskItem> items;
  std::string shots_hash;  // XXH3-128 of the examples' texts; "" without
};

// The questions of a task from files below `data`, at most `limit` (0: all). Throws Error(io),
// Error(format) or Error(config), naming file and line.
TaskItems task_items(const TaskConfig& task, const std::filesystem::path& data, int64_t limit,
                     uint64_t seed);

}  // namespace ingot
