#include "ingot/generate/generate.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "ingot/base/files.h"
#include "ingot/base/log.h"
#include "ingot/base/signals.h"
#include "ingot/cli/adapter_model.h"
#include "ingot/cli/commands.h"
#include "ingot/cli/sample.h"
#include "ingot/generate/self_speculation.h"
#include "ingot/models/stored_model.h"

namespace ingot {
namespace {

struct Arguments {
  std::string model;
  std::string prompt;
  std::string dtype;
  GenerateConfig config;
  std::vector<std::string> adapters;
  bool ids = false;
  bool int8 = false;
  bool self_speculative = false;
  bool parse_special = false;
  bool json = false;
};

// A number whose value `fits`; the message names the range in words. NaN fits nowhere.
CLI::Validator number_that(const std::function<bool(double)>& fits, const std::string& range) {
  return CLI::Validator(
      [fits, range](std::string& text) {
        double value = 0;
        const bool good = CLI::detail::lexical_cast(text, value) && fits(value);
        return good ? std::string() : concat("got ", text, ", allowed is ", range);
      },
      "");
}

CLI::Validator at_least_zero() {
  return number_that([](double value) { return value >= 0 && std::isfinite(value); }, "at least 0");
}

CLI::Validator whole_number() {
  return number_that(
      [](double value) { return value >= 0 && value < 0x1p63 && value == std::floor(value); },
      "a whole number from 0 and below 2^63");
}

CLI::Validator from_zero_to_one() {
  return number_that([](double value) { return value >= 0 && value <= 1; }, "0 to 1");
}

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

Tokens prompt_tokens(const Arguments& arguments, const TextCodec& codec, int64_t vocab) {
  const Tokens out =
      arguments.ids ? tokens_listed(arguments.prompt)
                    : codec.prompt(arguments.prompt,
                                   {.add_special = true, .parse_special = arguments.parse_special});
  for (const int64_t token : out) {
    check(token < vocab, ErrorKind::config, "generate: token ", token,
          " is outside the model's vocabulary of ", vocab,
          arguments.ids ? "" : "; it does not read bytes: give --ids");
  }
  return out;
}

void print_json(const Arguments& arguments, const TextCodec& codec, const Tokens& prompt,
                const Tokens& written, double seconds,
                const nlohmann::ordered_json& more = nlohmann::ordered_json::object()) {
  nlohmann::ordered_json out;
  out["prompt_ids"] = prompt;
  out["ids"] = written;
  if (!arguments.ids) {
    out["text"] = codec.text(written);
  }
  out["seed"] = arguments.config.seed;
  out["tokens_per_second"] = static_cast<double>(written.size()) / seconds;
  out.update(more);
  std::cout << out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
}

// A model, what is put onto it, and how its tokens are text.
struct Loaded {
  std::unique_ptr<Decoder> model;
  std::vector<std::unique_ptr<peft::Adapters>> adapters;
  TextCodec codec;
};

Loaded load(const Arguments& arguments) {
  std::optional<DType> dtype;
  if (!arguments.dtype.empty()) {
    dtype = dtype_named(arguments.dtype);
  }
  Loaded out;
  std::optional<TextCodec> codec;
  if (is_folder(arguments.model)) {
    Pretrained folder = load_pretrained(arguments.model, dtype);
    if (!arguments.ids) {
      codec = codec_of(arguments.model, folder.config, folder.model->config().vocab);
    }
    out.model = std::move(folder.model);
  } else {
    const StoredModel file = open_model(arguments.model);
    if (!arguments.ids) {
      codec = codec_of(file, arguments.model);
    }
    out.model = load_stored(file, dtype).model;
  }
  check(arguments.ids || codec, ErrorKind::config, arguments.model,
        ": it holds no tokenizer and does not say that this model reads bytes; put tokenizer.json "
        "into the folder, or give token ids with --ids");
  out.codec = codec.value_or(TextCodec());
  std::vector<AdapterChoice> choices;
  for (const std::string& text : arguments.adapters) {
    choices.push_back(adapter_choice(text));
  }
  if (!choices.empty()) {
    out.adapters = put_on(*out.model, choices, base_hash(arguments.model));
  }
  if (arguments.int8) {
    out.model->to_int8();
  }
  return out;
}

// The likeliest text, drafted by the model's own heads.
void write_speculated(const Arguments& arguments, const Loaded& loaded, const Tokens& prompt,
                      const GenerateConfig& config) {
  check(config.sampling.temperature == 0, ErrorKind::config,
        "--self-speculative: writes the likeliest text: temperature is ",
        config.sampling.temperature, "; set --temperature 0");
  const auto start = std::chrono::steady_clock::now();
  const SelfSpeculated found =
      generate_self_speculatively(*loaded.model, prompt, config.max_tokens, config.stop_tokens);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (arguments.json) {
    print_json(arguments, loaded.codec, prompt, found.tokens, seconds,
               {{"tokens_per_round", found.tokens_per_round()}});
    return;
  }
  CodecStream stream(loaded.codec);
  std::cout << (arguments.ids ? "" : arguments.prompt);
  for (const int64_t token : found.tokens) {
    std::cout << (arguments.ids ? std::to_string(token) + " " : stream.add(token));
  }
  std::cout << (arguments.ids ? "" : stream.finish()) << '\n';
  log_info(found.tokens_per_round(), " tokens a round");
}

void write_text(const Arguments& arguments) {
  const Loaded loaded = load(arguments);
  const int64_t vocab = loaded.model->config().vocab;
  const TextCodec& codec = loaded.codec;
  const Tokens prompt = prompt_tokens(arguments, codec, vocab);
  GenerateConfig config = arguments.config;
  if (config.stop_tokens.empty()) {
    config.stop_tokens = codec.stops();
  }
  if (arguments.self_speculative) {
    write_speculated(arguments, loaded, prompt, config);
    return;
  }
  CodecStream stream(codec);
  const StopSignals signals;
  const auto start = std::chrono::steady_clock::now();
  std::string before = arguments.json || arguments.ids ? "" : arguments.prompt;
  const std::vector<Tokens> written =
      generate(*loaded.model, {prompt}, config, [&](int64_t, int64_t token) {
        std::cout << std::exchange(before, "");  // not before it is known to fit
        if (!arguments.json) {
          std::cout << (arguments.ids ? std::to_string(token) + " " : stream.add(token))
                    << std::flush;
        }
        return !stop_requested();
      });
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (arguments.json) {
    print_json(arguments, codec, prompt, written[0], seconds);
    return;
  }
  std::cout << (arguments.ids ? "" : stream.finish()) << '\n';
  log_debug(written[0].size(), " tokens in ", seconds, " s");
}

}  // namespace

void add_generate_command(CLI::App& program) {
  CLI::App* verb = program.add_subcommand("generate", "Continue a text with a trained model.");
  verb->footer(
      "Example: ingot generate runs/kjv/model --prompt \"In the beginning\" --tokens 200 --seed 3");
  auto arguments = std::make_shared<Arguments>();
  verb->add_option("model", arguments->model,
                   "folder with config.json and model.safetensors, or a GGUF file")
      ->required();
  verb->add_option("--prompt", arguments->prompt,
                   "text to continue; with --ids, token ids as 1,2,3");
  verb->add_option("--lora", arguments->adapters,
                   "folder of an adapter in PEFT's layout, or FOLDER=WEIGHT; any number of times");
  verb->add_flag("--ids", arguments->ids, "read and write token ids instead of text");
  verb->add_flag("--parse-special", arguments->parse_special,
                 "special tokens spelled in the prompt are these tokens; otherwise they are text");
  verb->add_option("--tokens", arguments->config.max_tokens, "tokens to write at most")
      ->check(whole_number());
  verb->add_option("--temperature", arguments->config.sampling.temperature,
                   "0 takes the likeliest token each time")
      ->check(at_least_zero());
  verb->add_option("--top-k", arguments->config.sampling.top_k, "draw from the k likeliest; 0: all")
      ->check(whole_number());
  verb->add_option("--top-p", arguments->config.sampling.top_p,
                   "draw from the fewest that have this probability")
      ->check(from_zero_to_one());
  verb->add_option("--min-p", arguments->config.sampling.min_p,
                   "drop tokens less likely than this share of the likeliest")
      ->check(from_zero_to_one());
  verb->add_option("--seed", arguments->config.seed, "the same seed writes the same text")
      ->check(whole_number());
  verb->add_option("--stop", arguments->config.stop_tokens, "token ids that end the text");
  verb->add_option("--dtype", arguments->dtype, "compute in this type (default: the file's)")
      ->check(CLI::IsMember({"f32", "bf16", "f16"}));
  verb->add_flag(
      "--int8", arguments->int8,
      "keep the weights of linear maps in 8 bits: half the memory, up to twice the speed");
  verb->add_flag("--self-speculative", arguments->self_speculative,
                 "draft with the model's heads for further tokens (model.mtp); the text is that of "
                 "--temperature 0");
  verb->add_flag("--json", arguments->json, "print JSON: ids, text, speed");
  verb->callback([arguments] { write_text(*arguments); });
}

}  // namespace ingot
