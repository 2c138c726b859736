#include "ingot/cli/kinds.h"

#include <algorithm>

#include "ingot/base/error.h"
#include "ingot/cli/answer_data.h"
#include "ingot/cli/answer_kinds.h"
#include "ingot/cli/run_data.h"
#include "ingot/cli/run_rows.h"
#include "ingot/cli/session.h"

namespace ingot {

const std::vector<RunKind>& run_kinds() {
  static const std::vector<RunKind> table = {
      {"pretrain", "every next token of texts", open_text_or_rows, next_token_objective_of},
      {"sft", "the answers in rows of prompts and answers, or of conversations", open_rows,
       next_token_objective_of},
      {"dpo", "which of two answers is better, against a reference", open_pairs, dpo_of, 2},
      {"orpo", "the same beside the likelihood of the better one, without a reference", open_pairs,
       orpo_of, 2},
      {"simpo", "the same by mean log-probabilities and a margin, without a reference", open_pairs,
       simpo_of, 2},
      {"cpo", "the same by log-probabilities, beside the likelihood of the better one", open_pairs,
       cpo_of, 2},
      {"kto", "answers that are wanted or not, against a reference", open_labelled, kto_of, 2},
      {"reward", "a score of answers, from which of two is better", open_scored_pairs, reward_of,
       2},
      {"distill", "a teacher's distributions over the answers", open_rows, distillation_of},
  };
  return table;
}

const RunKind& run_kind(std::string_view name) {
  const auto found = std::find_if(run_kinds().begin(), run_kinds().end(),
                                  [name](const RunKind& kind) { return kind.name == name; });
  check(found != run_kinds().end(), ErrorKind::internal, "kind: there is no '", name, "'");
  return *found;
}

std::vector<std::string> run_kind_names() {
  std::vector<std::string> out;
  for (const RunKind& kind : run_kinds()) {
    out.emplace_back(kind.name);
  }
  return out;
}

}  // namespace ingot
