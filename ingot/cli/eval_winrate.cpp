#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "ingot/base/json_library.h"
#include "ingot/base/progress.h"
#include "ingot/cli/eval_kinds.h"
#include "ingot/cli/evaluated_model.h"
#include "ingot/cli/version.h"
#include "ingot/data/example_reader.h"
#include "ingot/eval/win_rate.h"

namespace ingot {
namespace {

struct WinRateOptions {
  std::string ours, theirs, judge, dtype;
  int64_t max_tokens = 256;
  bool json = false;
};

// The last question of a conversation and its answer.
struct Answered {
  std::string place, question, answer;
};

std::string content_of(const Message& message) {
  const jinja::Value* content = message.fields.find("content");
  return content == nullptr || content->text() == nullptr ? "" : *content->text();
}

std::vector<Answered> answers_of(const std::string& file) {
  std::vector<Answered> out;
  for (const Example& example : read_examples({file}, {}, ExampleKind::chat)) {
    const auto& messages = example.conversation.messages;
    check(messages.size() >= 2 && role_of(messages.back()) == "assistant", ErrorKind::format,
          example.place.text(),
          ": no question with an answer; a row is {\"prompt\": …, \"completion\": …} or a "
          "conversation");
    out.push_back({example.place.text(), content_of(messages[messages.size() - 2]),
                   content_of(messages.back())});
  }
  return out;
}

EvalModel::Prompt prompt_of(const EvalModel& judge, const Answered& first, const Answered& second,
                            int64_t max_tokens) {
  std::string text = judge_prompt(first.question, first.answer, second.answer);
  const bool chat = static_cast<bool>(judge.chat);
  text = chat ? judge.chat(text) : text + "\nVerdict:";
  EvalModel::Prompt out{
      judge.encode(text, !chat, chat), {}, std::min(max_tokens, judge.context / 2)};
  check(static_cast<int64_t>(out.ids.size()) + out.max_tokens <= judge.context, ErrorKind::config,
        first.place, ": ", out.ids.size(), " tokens to judge and ", out.max_tokens,
        " to write are beyond the judge's context of ", judge.context,
        "; shorten the answers, or take another judge");
  return out;
}

void compare(const WinRateOptions& options) {
  const std::vector<Answered> ours = answers_of(options.ours);
  const std::vector<Answered> theirs = answers_of(options.theirs);
  check(ours.size() == theirs.size(), ErrorKind::config, options.ours, " has ", ours.size(),
        " answers, ", options.theirs, " has ", theirs.size(),
        "; answer the same questions in the same order");
  const EvaluatedModel model = load_evaluated(options.judge, options.dtype);
  const EvalModel judge = model.functions();
  Progress progress("judge", static_cast<int64_t>(ours.size()), "pairs");
  std::vector<Comparison> comparisons;
  for (size_t i = 0; i < ours.size(); ++i) {
    check(ours[i].question == theirs[i].question, ErrorKind::config, ours[i].place,
          ": answers another question than ", theirs[i].place,
          "; answer the same questions in the same order");
    const std::vector<EvalModel::Prompt> prompts = {
        prompt_of(judge, ours[i], theirs[i], options.max_tokens),
        prompt_of(judge, theirs[i], ours[i], options.max_tokens)};
    const std::vector<EvalModel::Written> written = judge.write(prompts);
    comparisons.push_back({verdict_of(written[0].text), verdict_of(written[1].text),
                           static_cast<double>(ours[i].answer.size()) -
                               static_cast<double>(theirs[i].answer.size())});
    progress.advance();
  }
  progress.finish();
  const WinRate rate = win_rate(comparisons);
  if (options.json) {
    const nlohmann::ordered_json out = {{"task", "win_rate"},
                                        {"task_version", 1},
                                        {"judge", model.path},
                                        {"engine", engine_version},
                                        {"dtype", model.dtype},
                                        {"tokenizer_hash", model.tokenizer_hash},
                                        {"template_hash", model.template_hash},
                                        {"few_shot_hash", ""},
                                        {"wins", rate.wins},
                                        {"ties", rate.ties},
                                        {"losses", rate.losses},
                                        {"unparsable", rate.unparsable},
                                        {"rate", rate.rate},
                                        {"low", rate.interval.low},
                                        {"high", rate.interval.high},
                                        {"length_controlled", rate.length_controlled},
                                        {"position_bias", rate.position_bias()}};
    std::cout << out.dump(2) << '\n';
    return;
  }
  fmt::print(
      "{} wins, {} ties, {} losses of {} pairs: {:.1f} % (95 %: {:.1f} to {:.1f}), a tie counted "
      "as half\n",
      rate.wins, rate.ties, rate.losses, rate.pairs(), 100 * rate.rate, 100 * rate.interval.low,
      100 * rate.interval.high);
  fmt::print(
      "at equal length {:.1f} %; decided by the place alone {:.1f} %; {} verdicts could not be "
      "read\n",
      100 * rate.length_controlled, 100 * rate.position_bias(), rate.unparsable);
}

}  // namespace

void add_eval_winrate(CLI::App& verb) {
  CLI::App* sub = verb.add_subcommand(
      "winrate", "Two models' answers to the same questions, compared by a judge in both orders.");
  sub->footer("Example: ingot eval winrate ours.jsonl theirs.jsonl --judge models/judge");
  auto options = std::make_shared<WinRateOptions>();
  sub->add_option("ours", options->ours, "rows of prompts and answers")->required();
  sub->add_option("theirs", options->theirs, "the same prompts with other answers")->required();
  sub->add_option("--judge", options->judge, "model folder or GGUF file")->required();
  sub->add_option("--max-tokens", options->max_tokens, "of a verdict with its reasons");
  sub->add_option("--dtype", options->dtype, "compute in this type")
      ->check(CLI::IsMember({"f32", "bf16", "f16"}));
  sub->add_flag("--json", options->json, "print JSON");
  sub->callback([options] { compare(*options); });
}

}  // namespace ingot
