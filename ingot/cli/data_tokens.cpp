#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <bit>
#include <iostream>

#include "ingot/base/files.h"
#include "ingot/base/json_library.h"
#include "ingot/base/log.h"
#include "ingot/base/progress.h"
#include "ingot/base/signals.h"
#include "ingot/base/text_size.h"
#include "ingot/cli/data.h"
#include "ingot/cli/run_rows.h"
#include "ingot/data/token_store.h"
#include "ingot/data/tokenize.h"

namespace ingot {
namespace {

using Json = nlohmann::ordered_json;

struct TokenOptions {
  std::vector<std::string> files;
  std::string model, tokenizer, chat, out;
  std::string layout = "auto", policy = "error", duplicates = "keep", learn = "answers";
  std::vector<std::string> roles = {"assistant"};
  int64_t sequence = 0;
  bool json = false;
};

std::string short_count(int64_t n) { return text_count(static_cast<double>(n)); }

// Rows by length: 1, 2 to 3, 4 to 7, … tokens.
std::vector<int64_t> length_histogram(const TokenStore& store) {
  std::vector<int64_t> out;
  for (int64_t row = 0; row < store.size(); ++row) {
    const auto bin =
        static_cast<size_t>(std::bit_width(static_cast<uint64_t>(store.length(row))) - 1);
    out.resize(std::max(out.size(), bin + 1));
    ++out[bin];
  }
  return out;
}

void print_histogram(const std::vector<int64_t>& bins) {
  const int64_t most = *std::max_element(bins.begin(), bins.end());
  for (size_t bin = 0; bin < bins.size(); ++bin) {
    const auto width = static_cast<int64_t>(40.0 * static_cast<double>(bins[bin]) /
                                                static_cast<double>(std::max<int64_t>(1, most)) +
                                            0.5);
    std::string bar;
    for (int64_t i = 0; i < width; ++i) {
      bar += "█";
    }
    fmt::print("  {:>8} … {:<8} {:>9}  {}\n", int64_t{1} << bin, (int64_t{2} << bin) - 1, bins[bin],
               bar);
  }
}

int64_t rows_longer(const TokenStore& store, int64_t sequence) {
  int64_t out = 0;
  for (int64_t row = 0; sequence > 0 && row < store.size(); ++row) {
    out += store.length(row) > sequence + 1 ? 1 : 0;
  }
  return out;
}

Json json_of_store(const TokenStore& store, int64_t sequence) {
  const StoreManifest& manifest = store.manifest();
  const RowCounts counts = manifest.counts();
  Json out;
  out["store"] = store.folder().string();
  out["rows_read"] = counts.rows;
  out["rows"] = manifest.rows();
  out["tokens"] = manifest.tokens();
  out["learnt"] = manifest.targets();
  out["dropped"] = Json::object();
  int64_t duplicates = 0;
  int64_t bytes = 0;
  out["files"] = Json::array();
  for (const StoreSource& source : manifest.sources) {
    duplicates += source.duplicates;
    bytes += source.bytes;
    out["files"].push_back({{"path", source.path},
                            {"hash", source.hash},
                            {"layout", source.layout},
                            {"rows", source.rows},
                            {"tokens", source.tokens},
                            {"learnt", source.targets}});
  }
  for (size_t i = 0; i < row_faults; ++i) {
    if (counts.dropped[i] > 0) {
      out["dropped"][std::string(name(static_cast<RowFault>(i)))] = counts.dropped[i];
    }
  }
  out["duplicates"] = duplicates;
  out["bytes_per_token"] =
      static_cast<double>(bytes) / static_cast<double>(std::max<int64_t>(1, manifest.tokens()));
  out["longer_than_sequence"] = rows_longer(store, sequence);
  out["lengths"] = length_histogram(store);
  out["tokenizer_hash"] = manifest.tokenizer_hash;
  out["template_hash"] = manifest.render_hash;
  return out;
}

void print_store(const TokenStore& store, int64_t sequence) {
  const StoreManifest& manifest = store.manifest();
  int64_t duplicates = 0;
  for (const StoreSource& source : manifest.sources) {
    duplicates += source.duplicates;
    fmt::print("{}: {}, {} rows, {} tokens, {:.1f} % learnt\n", source.path, source.layout,
               short_count(source.rows), short_count(source.tokens),
               100 * static_cast<double>(source.targets) /
                   static_cast<double>(std::max<int64_t>(1, source.tokens)));
  }
  fmt::print(
      "{} rows of {} tokens, {:.1f} % of the tokens learnt\n", short_count(manifest.rows()),
      short_count(manifest.tokens()),
      100 * static_cast<double>(manifest.targets()) / static_cast<double>(manifest.tokens()));
  if (const RowCounts counts = manifest.counts(); counts.all_dropped() > 0) {
    fmt::print("{}\n", counts.text());
  }
  if (duplicates > 0) {
    fmt::print("{} rows say what an earlier one says\n", duplicates);
  }
  if (const int64_t longer = rows_longer(store, sequence); longer > 0) {
    fmt::print("{} rows are longer than a sequence of {}\n", longer, sequence);
  }
  fmt::print("tokens a row:\n");
  print_histogram(length_histogram(store));
}

// The store of these files; made where it is not there.
std::filesystem::path made_store(const TokenOptions& options, const std::filesystem::path& folder) {
  Recipe recipe;
  recipe.data.files = options.files;
  recipe.data.tokenizer = options.tokenizer;
  recipe.data.chat = options.chat;
  recipe.data.layout = options.layout;
  recipe.data.policy = options.policy;
  recipe.data.duplicates = options.duplicates;
  recipe.data.learn = options.learn;
  recipe.data.roles = options.roles;
  recipe.model.from = options.model;
  check(
      !options.model.empty() || !options.tokenizer.empty(), ErrorKind::config,
      "data: tokens need a tokenizer; name a model with --model, or a tokenizer with --tokenizer");
  const Reading reading = reading_of(recipe);
  const Renderer renderer(reading.tokenizer, reading.chat,
                          render_options(recipe.data, *reading.tokenizer, 0));
  TokenizeOptions tokenizing = tokenize_options(recipe.data);
  const std::filesystem::path path =
      folder.empty() ? std::filesystem::path("runs/.tokens") /
                           store_key(options.files, renderer, tokenizing).substr(0, 16)
                     : folder;
  const StopSignals signals;
  int64_t bytes = 0;
  for (const std::string& file : options.files) {
    bytes += file_exists(file) ? static_cast<int64_t>(std::filesystem::file_size(file)) : 0;
  }
  Progress progress("tokenize", bytes, "bytes");
  tokenizing.stop = stop_requested;
  tokenizing.progress = [&](int64_t done, int64_t) { progress.set(done); };
  if (!tokenize(options.files, renderer, tokenizing, path)) {
    log_info("stopped; the same command continues");
    throw CLI::RuntimeError(130);
  }
  return path;
}

void print_stored(const TokenOptions& options, const std::filesystem::path& folder) {
  const TokenStore store(folder);
  if (options.json) {
    std::cout << json_of_store(store, options.sequence).dump(2) << '\n';
  } else {
    print_store(store, options.sequence);
  }
}

void add_reading(CLI::App& sub, TokenOptions& options) {
  sub.add_option("--model", options.model, "model folder or GGUF file: its tokenizer and template");
  sub.add_option("--tokenizer", options.tokenizer, "tokenizer file or folder, over the model's");
  sub.add_option("--template", options.chat, "chat template: chatml, or a file; over the model's");
  sub.add_option("--layout", options.layout, "of the rows (default: told by their keys)");
  sub.add_option("--policy", options.policy, "of a row that cannot be used")
      ->check(CLI::IsMember({"error", "drop"}))
      ->capture_default_str();
  sub.add_option("--duplicates", options.duplicates, "of rows that say the same")
      ->check(CLI::IsMember({"keep", "drop", "error"}))
      ->capture_default_str();
  sub.add_option("--learn", options.learn, "what the loss counts")
      ->check(CLI::IsMember({"answers", "all"}))
      ->capture_default_str();
  sub.add_option("--roles", options.roles, "whose turns are learnt")
      ->delimiter(',')
      ->capture_default_str();
  sub.add_option("--sequence", options.sequence, "count rows longer than this");
  sub.add_flag("--json", options.json, "print JSON");
}

}  // namespace

void add_data_tokenize(CLI::App& verb) {
  CLI::App* sub = verb.add_subcommand(
      "tokenize", "Turns files of rows into a folder of tokens that training maps into memory.");
  sub->footer(
      "A recipe does the same by itself and keeps the result below runs/.tokens; its data.store "
      "names a folder.\n"
      "Example: ingot data tokenize chats.jsonl --model models/qwen3 --out chats.tokens");
  auto options = std::make_shared<TokenOptions>();
  sub->add_option("files", options->files, "files of rows, see docs/data.md")->required();
  sub->add_option("--out", options->out, "folder to make")->required();
  add_reading(*sub, *options);
  sub->callback([options] { print_stored(*options, made_store(*options, options->out)); });
}

void add_data_stats(CLI::App& verb) {
  CLI::App* sub = verb.add_subcommand(
      "stats",
      "Rows, tokens, lengths, what is learnt, dropped and doubled, of files or of a store.");
  sub->footer("Example: ingot data stats chats.jsonl --model models/qwen3 --sequence 2048");
  auto options = std::make_shared<TokenOptions>();
  sub->add_option("files", options->files, "files of rows, or one folder of tokens")->required();
  add_reading(*sub, *options);
  sub->callback([options] {
    const std::filesystem::path first = options->files.front();
    const bool store = options->files.size() == 1 && file_exists(first / "store.json");
    print_stored(*options, store ? first : made_store(*options, ""));
  });
}

}  // namespace ingot
