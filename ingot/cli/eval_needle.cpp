#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "ingot/base/files.h"
#include "ingot/base/json_library.h"
#include "ingot/base/progress.h"
#include "ingot/base/signals.h"
#include "ingot/cli/eval_kinds.h"
#include "ingot/cli/evaluated_model.h"
#include "ingot/cli/version.h"
#include "ingot/eval/needle.h"

namespace ingot {
namespace {

struct NeedleOptions {
  std::string model, dtype, filler;
  NeedleConfig config;
  int64_t seed = 1;
  bool json = false;
};

void find_needles(NeedleOptions options) {
  const EvaluatedModel model = load_evaluated(options.model, options.dtype);
  options.config.seed = static_cast<uint64_t>(options.seed);
  if (!options.filler.empty()) {
    options.config.filler = read_file(options.filler);
  }
  const StopSignals signals;
  Progress progress("needle", 0, "trials");
  const EvalModel functions = model.functions();
  const std::vector<NeedleScore> scores =
      needle_scores(functions, options.config, [&](int64_t done, int64_t) {
        progress.set(done);
        return !stop_requested();
      });
  progress.finish();
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const NeedleScore& score : scores) {
    if (options.json) {
      rows.push_back({{"length", score.length},
                      {"depth", score.depth},
                      {"acc", score.accuracy.value},
                      {"acc_stderr", score.accuracy.error},
                      {"greedy", score.greedy.value}});
    } else {
      fmt::print("{:>8} tokens  depth {:.2f}  acc {:.3f} ± {:.3f}  greedy {:.3f}\n", score.length,
                 score.depth, score.accuracy.value, score.accuracy.error, score.greedy.value);
    }
  }
  if (options.json) {
    const nlohmann::ordered_json out = {{"task", "needle"},
                                        {"task_version", 1},
                                        {"model", model.path},
                                        {"engine", engine_version},
                                        {"dtype", model.dtype},
                                        {"tokenizer_hash", model.tokenizer_hash},
                                        {"template_hash", ""},
                                        {"few_shot_hash", ""},
                                        {"trials", options.config.trials},
                                        {"scores", rows}};
    std::cout << out.dump(2) << '\n';
  }
}

}  // namespace

void add_eval_needle(CLI::App& verb) {
  CLI::App* sub = verb.add_subcommand("needle",
                                      "A number hidden in a long text: found by length of the text "
                                      "and depth in it; chance is 0.1.");
  sub->footer("Example: ingot eval needle runs/long/model --lengths 512,1024,2048");
  auto options = std::make_shared<NeedleOptions>();
  sub->add_option("model", options->model, "model folder or GGUF file")->required();
  sub->add_option("--lengths", options->config.lengths,
                  "tokens of the text (default: quarters of the context)")
      ->delimiter(',');
  sub->add_option("--depths", options->config.depths, "places from start to end")
      ->check(CLI::Range(1, 100));
  sub->add_option("--trials", options->config.trials, "of each length and depth")
      ->check(CLI::Range(1, 100000));
  sub->add_option("--filler", options->filler, "text file to hide it in");
  sub->add_option("--seed", options->seed, "of the numbers");
  sub->add_option("--dtype", options->dtype, "compute in this type")
      ->check(CLI::IsMember({"f32", "bf16", "f16"}));
  sub->add_flag("--json", options->json, "print JSON");
  sub->callback([options] { find_needles(*options); });
}

}  // namespace ingot
