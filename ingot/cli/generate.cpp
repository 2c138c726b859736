#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>
#include <utility>

#include "ingot/base/json_library.h"
#include "ingot/base/log.h"
#include "ingot/base/signals.h"
#include "ingot/cli/answer_text.h"
#include "ingot/cli/commands.h"
#include "ingot/cli/generate_arguments.h"
#include "ingot/cli/generate_filter.h"
#include "ingot/cli/number_checks.h"
#include "ingot/cli/token_json.h"

namespace ingot {
namespace {

// "1,2,3" → tokens. Throws Error(config) naming what is not a number.
Tokens tokens_listed(const std::string& text) {
  Tokens out;
  size_t at = 0;
  while (at <= text.size()) {
    const size_t comma = std::min(text.find(',', at), text.size());
    const std::string word = text.substr(at, comma - at);
    check(!word.empty() && word.find_first_not_of("0123456789") == std::string::npos &&
              word.size() < 10,
          ErrorKind::config, "--ids: '", word, "' is not a token id; give ids as 1,2,3");
    out.push_back(std::stoll(word));
    at = comma + 1;
  }
  return out;
}

Tokens prompt_tokens(const GenerateArguments& arguments, const LoadedModel& loaded) {
  Tokens out;
  if (arguments.ids) {
    out = tokens_listed(arguments.prompt);
  } else if (arguments.chat) {
    Conversation conversation;
    conversation.messages.push_back(make_message("user", arguments.prompt));
    out = chat_tokens(loaded, conversation);
  } else {
    out = loaded.text().prompt(arguments.prompt,
                               {.add_special = true, .parse_special = arguments.parse_special});
  }
  const int64_t vocab = loaded.decoder().config().vocab;
  for (const int64_t token : out) {
    check(token < vocab, ErrorKind::config, "generate: token ", token,
          " is outside the model's vocabulary of ", vocab,
          arguments.ids ? "" : "; it does not read bytes: give --ids");
  }
  return fitted(std::move(out), truncate_named(arguments.truncate),
                loaded.decoder().config().context, arguments.sampling.config.max_tokens,
                "generate: the prompt");
}

// One prompt, continued on standard output while it is written.
class SinglePrompt {
 public:
  SinglePrompt(const GenerateArguments& arguments, const LoadedModel& loaded, Tokens prompt)
      : arguments_(arguments),
        loaded_(loaded),
        prompt_(std::move(prompt)),
        config_(settings_for(arguments.sampling, loaded)),
        before_(arguments.json || arguments.ids || arguments.chat ? "" : arguments.prompt),
        text_(codec(), arguments.sampling.stop_texts, config_.stop_tokens) {}

  void run() {
    const int64_t context = loaded_.decoder().config().context;
    SchedulerConfig room = room_for(1,
                                    std::min(context, static_cast<int64_t>(prompt_.size()) +
                                                          std::min(config_.max_tokens, context)),
                                    arguments_.model.kv);
    room.go_on = true;
    Scheduler scheduler(loaded_.decoder(), room);
    const StopSignals signals;
    const auto start = std::chrono::steady_clock::now();
    scheduler.add(request());
    while (scheduler.step()) {
    }
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    put(arguments_.ids ? "" : text_.finish());
    if (arguments_.json) {
      print_json(seconds);
    } else {
      std::cout << std::exchange(before_, "") << '\n';
    }
    log_debug(answer_.tokens.size(), " tokens in ", seconds, " s");
  }

 private:
  // A codec of bytes where ids are wanted: its text is not looked at.
  const TextCodec& codec() const { return arguments_.ids ? no_text_ : loaded_.text(); }

  void put(const std::string& part) {
    written_ += part;
    if (!arguments_.json) {
      std::cout << std::exchange(before_, "") << part
                << std::flush;  // not before it is known to fit
    }
  }

  Request request() {
    Request out;
    out.prompt = prompt_;
    out.config = config_;
    out.log_probabilities = arguments_.log_probabilities;
    out.prompt_log_probabilities = arguments_.prompt_log_probabilities;
    out.filter = filter_for(arguments_.regex, arguments_.schema, loaded_, config_.stop_tokens);
    out.on_token = [this](const Drawn& drawn) {
      put(arguments_.ids ? std::to_string(drawn.token) + " " : text_.add(drawn.token));
      if (drawn.log_probability) {
        drawn_.push_back(drawn);
      }
      return !stop_requested() && !text_.ended();
    };
    out.on_end = [this](const Answer& answer) {
      if (answer.failure) {
        throw Error(*answer.failure);
      }
      answer_ = answer;
    };
    return out;
  }

  void print_json(double seconds) const {
    nlohmann::ordered_json out;
    out["prompt_ids"] = prompt_;
    out["ids"] = answer_.tokens;
    if (!arguments_.ids) {
      out["text"] = written_;
    }
    out["finish"] = finish_name(answer_.finish, text_.ended());
    out["seed"] = config_.seed;
    if (arguments_.log_probabilities >= 0) {
      out["logprobs"] = log_probabilities_json(codec(), drawn_);
    }
    if (arguments_.prompt_log_probabilities) {
      out["prompt_logprobs"] = log_probabilities_json(codec(), answer_.prompt);
    }
    out["tokens_per_second"] = static_cast<double>(answer_.tokens.size()) / seconds;
    std::cout << text_of(out) << '\n';
  }

  const GenerateArguments& arguments_;
  const LoadedModel& loaded_;
  const TextCodec no_text_{};
  Tokens prompt_;
  GenerateConfig config_;
  std::string before_;  // the prompt, until the first token follows it
  AnswerText text_;
  std::string written_;
  std::vector<Drawn> drawn_;
  Answer answer_;
};

void check_together(const GenerateArguments& a) {
  const int strategies = (a.best_of > 0 ? 1 : 0) + (a.votes > 0 ? 1 : 0) + (a.beams > 0 ? 1 : 0) +
                         (a.draft.empty() ? 0 : 1) + (a.self_speculative ? 1 : 0);
  check(strategies <= 1, ErrorKind::config,
        "generate: give one of --best-of, --votes, --beams, --draft and --self-speculative");
  check(a.in.empty() == a.out.empty(), ErrorKind::config, "generate: --in and --out go together");
  check(a.in.empty() || (strategies == 0 && a.prompt.empty()), ErrorKind::config,
        "generate: --in takes its prompts from the file, each by itself; leave out --prompt, "
        "--best-of, --votes, --beams, --draft and --self-speculative");
  check(a.votes == 0 || !a.answer.empty(), ErrorKind::config,
        "generate: --votes needs --answer, an expression that finds what is voted on");
  const bool kept = !a.regex.empty() || !a.schema.empty();
  check(strategies == 0 ||
            (!kept && !a.ids && a.log_probabilities < 0 && !a.prompt_log_probabilities),
        ErrorKind::config,
        "generate: --best-of, --votes, --beams, --draft and --self-speculative do not go with "
        "--ids, ",
        "--logprobs, --prompt-logprobs, --regex and --json-schema");
  check(!a.self_speculative || a.model.kv == "model", ErrorKind::config,
        "generate: --self-speculative keeps no keys and values; leave out --kv");
  check(a.beams == 0 || a.sampling.config.rules.change_nothing(), ErrorKind::config,
        "generate: --beams finds the likeliest texts of the model itself; leave out the penalties");
}

void generate_command(GenerateArguments& arguments) {
  check_together(arguments);
  arguments.model.text = !arguments.ids || !arguments.in.empty();
  const LoadedModel loaded = load_model(arguments.model);
  if (!arguments.in.empty()) {
    generate_rows(arguments, loaded);
    return;
  }
  Tokens prompt = prompt_tokens(arguments, loaded);
  if (arguments.best_of > 0 || arguments.votes > 0 || arguments.beams > 0 ||
      !arguments.draft.empty() || arguments.self_speculative) {
    generate_by_strategy(arguments, loaded, prompt);
    return;
  }
  SinglePrompt(arguments, loaded, std::move(prompt)).run();
}

void add_strategy_options(CLI::App& verb, GenerateArguments& a) {
  verb.add_option("--best-of", a.best_of, "write so many answers and keep the best")
      ->check(counting_number());
  verb.add_option(
      "--match", a.match,
      "with --best-of: answers in which this expression matches are better than others");
  verb.add_option("--votes", a.votes, "write so many answers and take what most of them say")
      ->check(counting_number());
  verb.add_option("--answer", a.answer,
                  "with --votes: the last match of this expression is what an answer says");
  verb.add_option("--beams", a.beams, "beam search of this width")->check(counting_number());
  verb.add_option("--length-penalty", a.length_penalty,
                  "with --beams: how much longer texts are favoured")
      ->check(at_least_zero());
  verb.add_option("--draft", a.draft, "a small model that proposes tokens: the same text, faster");
  verb.add_flag(
      "--self-speculative", a.self_speculative,
      "draft with the model's own heads for further tokens (model.mtp): the likeliest text");
  verb.add_option("--draft-tokens", a.draft_tokens, "with --draft: proposals at a time")
      ->check(counting_number());
}

void add_row_options(CLI::App& verb, GenerateArguments& a) {
  verb.add_option(
      "--in", a.in,
      "JSONL file of prompts: {\"prompt\": …} or {\"messages\": […]} a line; an answer at the "
      "end of messages is written anew");
  verb.add_option(
      "--out", a.out,
      "JSONL file of answers, which training reads; rows that are there already are not "
      "redone");
  verb.add_option("--rows", a.rows, "with --in: texts written side by side")
      ->check(counting_number());
  verb.add_option("--cache-mib", a.cache_mib, "with --in: MiB of keys and values in memory at most")
      ->check(counting_number());
}

}  // namespace

std::string finish_name(Finish finish, bool by_stop_text) {
  switch (finish) {
    case Finish::stop: return "stop";
    case Finish::length: return "length";
    case Finish::context: return "context";
    case Finish::told: return by_stop_text ? "stop" : "interrupted";
    case Finish::cancelled: return "interrupted";
    case Finish::failed: return "failed";
  }
  return "failed";
}

void add_generate_command(CLI::App& program) {
  CLI::App* verb = program.add_subcommand("generate", "Continue a text with a trained model.");
  verb->footer(
      "Example: ingot generate runs/kjv/model --prompt \"In the beginning\" --tokens 200 --seed 3");
  auto arguments = std::make_shared<GenerateArguments>();
  GenerateArguments& a = *arguments;
  add_model_options(*verb, a.model);
  verb->add_option("--prompt", a.prompt, "text to continue; with --ids, token ids as 1,2,3");
  verb->add_flag("--ids", a.ids,
                 "read and write token ids instead of text; with --in: ids as well");
  verb->add_flag("--parse-special", a.parse_special,
                 "special tokens spelled in the prompt are these tokens; otherwise they are text");
  verb->add_flag("--chat", a.chat,
                 "the prompt is what a user says, as the model's template has it");
  verb->add_option("--truncate", a.truncate,
                   "cut prompts longer than the context at this side (default: refuse them)")
      ->check(CLI::IsMember({"left", "right"}));
  add_sampling_options(*verb, a.sampling);
  verb->add_option("--logprobs", a.log_probabilities,
                   "with --json or --out: log-probabilities, and of so many likeliest tokens")
      ->check(whole_number());
  verb->add_flag("--prompt-logprobs", a.prompt_log_probabilities, "those of the prompt too");
  verb->add_option("--regex", a.regex, "write only what matches this expression as a whole");
  verb->add_option("--json-schema", a.schema,
                   "write only JSON of this schema: a file, or the schema itself");
  add_row_options(*verb, a);
  add_strategy_options(*verb, a);
  verb->add_flag("--json", a.json, "print JSON: ids, text, speed");
  verb->callback([arguments] { generate_command(*arguments); });
}

}  // namespace ingot
