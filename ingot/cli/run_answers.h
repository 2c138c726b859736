#pragma once

#include <filesystem>

#include "ingot/cli/run_data.h"
#include "ingot/cli/run_folder.h"
#include "ingot/cli/session.h"

namespace ingot {

// What runs on answers, and runs with adapters, do besides the loop.

// Before the first step: tells the session how text is read, and where all weights are trained
// against a reference, computes what the reference gives to every answer; the run folder keeps
// that, for a resumed run has other weights. Throws Error(io) where such a run does not find it.
void prepare_answers(Session& session, const RunData& data, const RunFolder& folder);

// The model that a run's adapter belongs to: the one it began from, or, where the run added tokens,
// base/ in its folder.
std::string adapted_base(const Session& session, const RunData& data, const RunFolder& folder);
// Writes adapter/ into the run's folder, in PEFT's layout, with the tokenizer beside it; before it
// base/, the model with the rows of added tokens, where there are any. Returns the adapter's
// folder.
std::filesystem::path save_run_adapter(Session& session, const RunData& data,
                                       const RunFolder& folder);

// Writes a reward model's head, score.weight [1, D], into `folder`.
void save_score_head(Session& session, const std::filesystem::path& folder);

}  // namespace ingot
