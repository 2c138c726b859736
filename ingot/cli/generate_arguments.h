#pragma once

#include <optional>
#include <string>

#include "ingot/cli/sampling_options.h"
#include "ingot/generate/scheduler.h"

namespace ingot {

// What `ingot generate` was told.
struct GenerateArguments {
  ModelArguments model;
  SamplingArguments sampling;
  std::string prompt;
  bool ids = false;
  bool parse_special = false;
  bool chat = false;
  bool json = false;
  std::string truncate;
  int64_t log_probabilities = -1;
  bool prompt_log_probabilities = false;
  std::string regex, schema;  // what is written must match

  std::string in, out;  // JSONL files
  int64_t rows = 16;
  int64_t cache_mib = 2048;

  int64_t best_of = 0, votes = 0, beams = 0;
  std::string match, answer;
  double length_penalty = 1;
  std::string draft;
  int64_t draft_tokens = 4;
  bool self_speculative = false;
};

// The name of how a text ended, in JSON: "stop", "length" or "context".
std::string finish_name(Finish finish, bool by_stop_text);

// `ingot generate --in FILE`: continues every prompt of a JSONL file, and goes on where an earlier
// run stopped.
void generate_rows(const GenerateArguments& arguments, const LoadedModel& loaded);

// One prompt with --best-of, --votes, --beams or --draft.
void generate_by_strategy(const GenerateArguments& arguments, const LoadedModel& loaded,
                          const Tokens& prompt);

}  // namespace ingot
