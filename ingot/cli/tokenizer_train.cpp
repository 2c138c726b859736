#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "ingot/base/error.h"
#include "ingot/base/files.h"
#include "ingot/base/json_library.h"
#include "ingot/base/progress.h"
#include "ingot/base/signals.h"
#include "ingot/cli/tokenizer.h"
#include "ingot/text/load_tokenizer.h"
#include "ingot/text/tiktoken.h"
#include "ingot/text/tokenizer_json.h"
#include "ingot/text/train_bpe.h"
#include "ingot/text/train_unigram.h"

namespace ingot {
namespace {

using Json = nlohmann::ordered_json;

std::string_view training_text(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

struct TrainArguments {
  std::vector<std::string> files;
  std::string out;
  std::string model = "bpe";
  std::string pattern = "gpt2";
  std::string ties = "smallest_ids";
  int64_t vocabulary = 32000;
  int64_t least_count = 2;
  double coverage = 1;
  std::vector<std::string> special;
  bool json = false;
};

std::string pattern_named(const std::string& name) {
  const std::string encoding = name == "gpt2"     ? "r50k_base"
                               : name == "cl100k" ? "cl100k_base"
                               : name == "o200k"  ? "o200k_base"
                                                  : "";
  return encoding.empty() ? name : tiktoken_encoding(encoding)->pattern;
}

TokenizerSpec trained_bpe(const TrainArguments& arguments) {
  BpeTraining settings;
  settings.vocabulary = arguments.vocabulary;
  settings.least_count = arguments.least_count;
  settings.special = arguments.special;
  settings.pattern = pattern_named(arguments.pattern);
  settings.ties = arguments.ties == "largest_bytes" ? TieBreak::largest_bytes
                  : arguments.ties == "first_seen"  ? TieBreak::first_seen
                                                    : TieBreak::smallest_ids;
  BpeTrainer trainer(settings);
  Progress counting("count words", static_cast<int64_t>(arguments.files.size()), "files");
  for (const std::string& path : arguments.files) {
    trainer.add(training_text(MappedFile(path)));
    counting.advance();
  }
  counting.finish();
  const StopSignals signals;
  Progress merging("merge pairs", arguments.vocabulary, "tokens");
  TrainedBpe trained = trainer.train([&](int64_t tokens) {
    merging.set(tokens);
    return !stop_requested();
  });
  merging.finish();
  check(!stop_requested(), ErrorKind::config, "tokenizer train: stopped; nothing was written");
  return std::move(trained.tokenizer);
}

TokenizerSpec trained_unigram(const TrainArguments& arguments) {
  UnigramTraining settings;
  settings.vocabulary = arguments.vocabulary;
  settings.character_coverage = arguments.coverage;
  settings.special = arguments.special;
  std::vector<MappedFile> files(arguments.files.begin(), arguments.files.end());
  std::vector<std::string_view> texts;
  for (const MappedFile& file : files) {
    texts.push_back(training_text(file));
  }
  return train_unigram(texts, settings);
}

void train(const TrainArguments& arguments) {
  const TokenizerSpec spec =
      arguments.model == "unigram" ? trained_unigram(arguments) : trained_bpe(arguments);
  std::filesystem::path out = arguments.out;
  if (out.extension() != ".json") {
    make_directories(out);
    out /= "tokenizer.json";
  }
  write_file(out, to_tokenizer_json(spec));
  const Tokenizer tokenizer = load_tokenizer(out);
  if (arguments.json) {
    const Json summary = {{"file", out.string()},
                          {"model", name(spec.model)},
                          {"vocabulary", tokenizer.vocabulary_size()},
                          {"merges", spec.merges.size()},
                          {"hash", tokenizer.hash()}};
    std::cout << summary.dump() << '\n';
    return;
  }
  std::cout << fmt::format("{}: {} with {} tokens, hash {}\n", out.string(), name(spec.model),
                           tokenizer.vocabulary_size(), tokenizer.hash());
  if (tokenizer.vocabulary_size() < arguments.vocabulary) {
    std::cout << fmt::format("the text gave {} tokens and not {}: no other pair occurs {} times\n",
                             tokenizer.vocabulary_size(), arguments.vocabulary,
                             arguments.least_count);
  }
}

}  // namespace

void add_tokenizer_train(CLI::App& parent) {
  CLI::App* verb = parent.add_subcommand("train", "Learn a tokenizer from text files.");
  verb->footer("Example: ingot tokenizer train corpus.txt --vocab 8000 --out tokenizer");
  auto arguments = std::make_shared<TrainArguments>();
  verb->add_option("files", arguments->files, "text files")->required();
  verb->add_option("--out", arguments->out, "tokenizer.json to write, or a folder for it")
      ->required();
  verb->add_option("--model", arguments->model, "bpe: byte-level; unigram: SentencePiece's")
      ->check(CLI::IsMember({"bpe", "unigram"}))
      ->capture_default_str();
  verb->add_option("--vocab", arguments->vocabulary, "tokens in all")
      ->check(CLI::Range(1, 1 << 24))
      ->capture_default_str();
  verb->add_option("--pattern", arguments->pattern,
                   "how bpe cuts words: gpt2, cl100k, o200k, or a regular expression")
      ->capture_default_str();
  verb->add_option("--least-count", arguments->least_count,
                   "bpe merges no pair that occurs less often")
      ->check(CLI::Range(1, 1 << 30))
      ->capture_default_str();
  verb->add_option("--ties", arguments->ties, "which of equally frequent pairs bpe merges first")
      ->check(CLI::IsMember({"smallest_ids", "largest_bytes", "first_seen"}))
      ->capture_default_str();
  verb->add_option("--coverage", arguments->coverage,
                   "share of the characters that unigram gives tokens")
      ->check(CLI::Range(0.5, 1.0))
      ->capture_default_str();
  verb->add_option("--special", arguments->special,
                   "a special token; any number of times; they divide the text");
  verb->add_flag("--json", arguments->json, "print JSON");
  verb->callback([arguments] { train(*arguments); });
}

}  // namespace ingot
