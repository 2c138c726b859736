#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ingot/eval/eval_model.h"
#include "ingot/eval/statistics.h"
#include "ingot/eval/task.h"

namespace ingot {

// What came out of one question: its scores by name ("acc", "acc_norm", "exact_match" …), and what
// was written.
struct ItemResult {
  int64_t row = 0;
  std::map<std::string, double> scores;
  std::string written;
};

struct RunTaskOptions {
  bool chat = false;   // the question goes through the model's chat template, as a user's turn
  int64_t batch = 64;  // questions at a time
  // Called with each batch's results as they are known: to keep them, and to show how far it is.
  // False ends the run.
  std::function<bool(const std::vector<ItemResult>&)> on_results;
};

// Asks a model the questions, those that `done` holds left out, and returns the results of all in
// the order of the questions. As lm-evaluation-harness scores:
//   choice        acc: the gold choice has the largest Σ ln p (of equals the first); acc_norm: the
//                 largest Σ ln p / number of characters; acc_bytes: / number of bytes
//   contexts      acc: the gold context has the largest Σ ln p of the target
//   continuation  acc: the target is what the likeliest tokens spell; log_likelihood of the target
//   generate      exact_match of each extraction rule, ",<rule>" added where there are several
//   ifeval        inst_strict and inst_loose, sums over a prompt's instructions, instructions, and
//                 prompt_strict and prompt_loose
//                 both also `ended`: the answer ended by itself, before max_tokens
//   text          log_likelihood, words, bytes and tokens of a row's text
std::vector<ItemResult> run_task(const EvalModel& model, const TaskConfig& task,
                                 const std::vector<TaskItem>& items,
                                 const std::vector<ItemResult>& done,
                                 const RunTaskOptions& options);

// The scores of a task by name with standard errors. `text` gives word_perplexity, byte_perplexity
// and bits_per_byte, continuation perplexity beside acc, ifeval shares of prompts and instructions.
std::map<std::string, Estimate> summary(const TaskConfig& task,
                                        const std::vector<ItemResult>& results);

}  // namespace ingot
