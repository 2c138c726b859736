#include "ingot/cli/run_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ingot/base/files.h"
#include "ingot/base/hash.h"
#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "ingot/base/log.h"
#include "ingot/base/progress.h"
#include "ingot/base/signals.h"
#include "ingot/base/text_size.h"
#include "ingot/data/mixture.h"
#include "ingot/data/sample.h"
#include "ingot/data/shuffle.h"
#include "ingot/data/token_store.h"
#include "ingot/models/pretrained.h"
#include "ingot/text/load_tokenizer.h"
#include "ingot/text/tokenizer_json.h"

namespace ingot {
namespace {

using Samples = std::shared_ptr<const Dataset<Sample>>;
using Rows = std::shared_ptr<const TokenRows>;

std::shared_ptr<const Tokenizer> with_tokens(const Tokenizer& tokenizer,
                                             const std::vector<std::string>& wanted,
                                             AddedRows& added) {
  TokenizerSpec spec = tokenizer.spec();
  added.first = tokenizer.vocabulary_size();
  for (const std::string& text : wanted) {
    const bool known = tokenizer.id_of(text).has_value() ||
                       std::any_of(spec.added.begin(), spec.added.end(),
                                   [&](const AddedToken& token) { return token.content == text; });
    if (!known) {
      AddedToken token;
      token.id = static_cast<TokenId>(added.first + added.count++);
      token.content = text;
      token.special = true;
      spec.added.push_back(std::move(token));
    }
  }
  return std::make_shared<const Tokenizer>(std::move(spec));
}

// The end of text of a tokenizer whose files do not tell it, by the names that most models give it.
std::optional<TokenId> usual_end(const Tokenizer& tokenizer) {
  for (const char* name : {"<|endoftext|>", "</s>", "<|end_of_text|>", "<eos>"}) {
    const auto id = tokenizer.id_of(name);
    if (id && tokenizer.is_special(*id)) {
      return id;
    }
  }
  return std::nullopt;
}

// The same tokenizer with another token for the end of a text.
std::shared_ptr<const Tokenizer> ending_with(const Tokenizer& tokenizer, TokenId stop) {
  TokenizerSpec spec = tokenizer.spec();
  spec.eos = stop;
  return std::make_shared<const Tokenizer>(std::move(spec));
}

struct Opened {
  std::shared_ptr<const TokenStore> store;
  std::vector<Rows> training;  // of each file with a weight; else one of all
  Rows held_out;
};

std::shared_ptr<const TokenStore> open_store(const Recipe& recipe, const Renderer& renderer,
                                             const std::filesystem::path& cache) {
  std::vector<std::string> files = recipe.data.files;
  files.insert(files.end(), recipe.data.validation_files.begin(),
               recipe.data.validation_files.end());
  check(!files.empty(), ErrorKind::config, "data: no files are given; set data.files");
  TokenizeOptions options = tokenize_options(recipe.data);
  const std::string key = store_key(files, renderer, options);
  const std::filesystem::path folder = recipe.data.store.empty()
                                           ? cache / key.substr(0, 16)
                                           : std::filesystem::path(recipe.data.store);
  const StopSignals signals;
  options.stop = stop_requested;
  Progress progress("tokenize", 0, "bytes");
  options.progress = [&](int64_t done, int64_t) { progress.set(done); };
  check(tokenize(files, renderer, options, folder), ErrorKind::io, folder.string(),
        ": stopped while tokenizing; start again, it continues");
  progress.finish();
  return std::make_shared<const TokenStore>(folder);
}

// The rows of `all` that come from file `file`, at most `cap` (0: all).
std::vector<int64_t> rows_of_file(const TokenStore& store, const std::vector<int64_t>& all,
                                  size_t file, int64_t cap) {
  std::vector<int64_t> out;
  for (const int64_t row : all) {
    if (store.place(row).file == file && (cap == 0 || static_cast<int64_t>(out.size()) < cap)) {
      out.push_back(row);
    }
  }
  return out;
}

Opened open_samples(const Recipe& recipe, std::shared_ptr<const TokenStore> store) {
  const DataConfig& data = recipe.data;
  const size_t files = data.files.size();
  check(data.weights.empty() || data.weights.size() == files, ErrorKind::config,
        "data.weights: ", data.weights.size(), " weights for ", files,
        " files; give one each, or none");
  check(data.caps.empty() || data.caps.size() == files, ErrorKind::config,
        "data.caps: ", data.caps.size(), " caps for ", files, " files; give one each, or none");
  const bool by_file = !data.validation_files.empty();
  const RowSplit split = split_rows(*store, data.validation_fraction, 0,
                                    by_file ? static_cast<uint32_t>(files) : UINT32_MAX);
  check_held_out(recipe, static_cast<int64_t>(split.held_out.size()));
  const TokenRowsOptions options = token_rows_options(data, recipe.train.sequence);
  Opened out;
  std::vector<int64_t> all;
  for (size_t file = 0; file < files; ++file) {
    const int64_t cap = data.caps.empty() ? 0 : data.caps[file];
    const std::vector<int64_t> rows = rows_of_file(*store, split.training, file, cap);
    if (data.weights.empty()) {
      all.insert(all.end(), rows.begin(), rows.end());
    } else if (data.weights[file] > 0) {
      out.training.push_back(std::make_shared<TokenRows>(store, rows, options));
    }
  }
  if (data.weights.empty()) {
    out.training = {std::make_shared<TokenRows>(store, all, options)};
  }
  out.held_out = std::make_shared<TokenRows>(store, split.held_out, options);
  out.store = std::move(store);
  return out;
}

Samples mixed(const Recipe& recipe, const Opened& opened) {
  const auto seed = static_cast<uint64_t>(recipe.seed);
  std::vector<Samples> sources;
  for (const Rows& rows : opened.training) {
    sources.push_back(std::make_shared<Shuffled<Sample>>(rows, seed));
  }
  if (recipe.data.weights.empty()) {
    return sources.front();
  }
  std::vector<double> weights;
  std::copy_if(recipe.data.weights.begin(), recipe.data.weights.end(), std::back_inserter(weights),
               [](double weight) { return weight > 0; });
  return std::make_shared<Mixture<Sample>>(std::move(sources), weights, seed);
}

Batch batch_at(const Dataset<Sample>& samples, int64_t first, int64_t count, int64_t columns) {
  std::vector<Sample> out;
  for (int64_t i = first; i < first + count; ++i) {
    out.push_back(samples.get(i));
  }
  return batch_of(out, columns);
}

// Bytes that a learnt token spells, on average over the held-out rows.
double bytes_per_target(const TokenRows& rows, const Tokenizer& tokenizer) {
  constexpr int64_t most = 2000;  // samples looked at
  int64_t bytes = 0;
  int64_t targets = 0;
  for (int64_t i = 0; i < std::min(most, rows.size()); ++i) {
    for (const TokenRow& document : rows.get(i).documents) {
      TokenIds learnt;
      for (size_t t = 1; t < document.ids.size(); ++t) {
        if (document.learnt[t] != 0) {
          learnt.push_back(document.ids[t]);
        }
      }
      targets += static_cast<int64_t>(learnt.size());
      bytes += static_cast<int64_t>(tokenizer.decode_bytes(learnt, {.skip_special = false}).size());
    }
  }
  return targets > 0 && bytes > 0 ? static_cast<double>(bytes) / static_cast<double>(targets) : 1;
}

// What is trained on, for the log.
std::string sizes_of(const Recipe& recipe, const Opened& opened) {
  TokenRowsReport all;
  for (const Rows& rows : opened.training) {
    const TokenRowsReport& one = rows->report();
    all.rows += one.rows;
    all.inputs += one.inputs;
    all.targets += one.targets;
    all.samples += one.samples;
    all.truncated += one.truncated;
    all.split += one.split;
    all.dropped += one.dropped;
    all.first_long = all.first_long.empty() ? one.first_long : all.first_long;
  }
  const auto count = [](int64_t n) { return text_count(static_cast<double>(n)); };
  std::string out = fmt::format(
      "{} rows of {} tokens in {} sequences ({:.1f} % filled), {:.1f} % of the tokens learnt; {} "
      "held-out rows",
      count(all.rows), count(all.inputs), count(all.samples),
      100 * all.filled(recipe.train.sequence), 100 * all.share(),
      count(opened.held_out->report().rows));
  if (!all.first_long.empty()) {
    out +=
        fmt::format("\ntoo long for {} tokens: {} rows truncated, {} split, {} dropped (first {})",
                    recipe.train.sequence, all.truncated, all.split, all.dropped, all.first_long);
  }
  int64_t duplicates = 0;
  for (const StoreSource& source : opened.store->manifest().sources) {
    duplicates += source.duplicates;
    out +=
        fmt::format("\n  {}: {}, {} rows", source.path, source.layout, count(source.counts.rows));
  }
  if (const RowCounts counts = opened.store->manifest().counts(); counts.all_dropped() > 0) {
    out += concat("\n", counts.text());
  }
  return duplicates > 0 ? fmt::format("{}\n{} rows say what an earlier one says", out, duplicates)
                        : out;
}

void set_steps(Recipe& recipe, int64_t samples) {
  if (recipe.train.epochs > 0) {
    const double steps = recipe.train.epochs * static_cast<double>(samples) /
                         static_cast<double>(recipe.train.batch);
    recipe.train.steps = std::max<int64_t>(1, static_cast<int64_t>(std::ceil(steps)));
  }
}

}  // namespace

Reading reading_of(const Recipe& recipe) {
  Reading out;
  ModelSource source;
  if (!recipe.model.from.empty()) {
    source = open_source(recipe.model.from);
  }
  std::shared_ptr<const Tokenizer> tokenizer = source.tokenizer;
  if (!recipe.data.tokenizer.empty()) {
    tokenizer = std::make_shared<const Tokenizer>(load_tokenizer(recipe.data.tokenizer));
    out.files = recipe.data.tokenizer;
  } else if (is_folder(recipe.model.from)) {
    out.files = recipe.model.from;
  }
  check(tokenizer != nullptr, ErrorKind::config,
        "data.tokenizer: rows are read through a tokenizer, and ",
        recipe.model.from.empty() ? "none is named" : recipe.model.from + " has none",
        source.reads_bytes ? " (it reads bytes)" : "",
        "; set data.tokenizer to one that the model was trained with");
  std::vector<std::string> wanted = recipe.data.add_tokens;
  if (!recipe.data.chat.empty()) {
    const std::vector<std::string> more = template_tokens(recipe.data.chat);
    wanted.insert(wanted.end(), more.begin(), more.end());
  }
  out.tokenizer = with_tokens(*tokenizer, wanted, out.added);
  if (!out.tokenizer->eos() && usual_end(*out.tokenizer)) {
    out.tokenizer = ending_with(*out.tokenizer, *usual_end(*out.tokenizer));
    out.files.clear();
  }
  if (out.added.count > 0) {
    out.files.clear();
  }
  out.chat = recipe.data.chat.empty() ? source.chat
                                      : chat_template_named(recipe.data.chat, *out.tokenizer);
  out.stop = out.tokenizer->eos();
  if (out.chat != nullptr && !out.chat->stops().empty()) {
    const auto id = out.tokenizer->id_of(out.chat->stops().front());
    check(id.has_value(), ErrorKind::config, "data.template: its end of a turn, '",
          out.chat->stops().front(), "', is no token of the tokenizer; name it in data.add_tokens");
    out.stop = id;
  }
  return out;
}

RunData open_rows(Recipe& recipe, const std::filesystem::path& cache) {
  const Reading reading = reading_of(recipe);
  const Tokenizer& tokenizer = *reading.tokenizer;
  if (reading.added.count > 0) {
    recipe.model.vocab = std::max(recipe.model.vocab, tokenizer.vocabulary_size());
  }
  check_vocabulary(tokenizer, recipe.model.vocab, "data.tokenizer: " + tokenizer.spec().source);
  RenderOptions rendering =
      render_options(recipe.data, tokenizer, static_cast<uint64_t>(recipe.seed));
  const Renderer renderer(reading.tokenizer, reading.chat, rendering);
  const Opened opened = open_samples(recipe, open_store(recipe, renderer, cache));
  const Samples samples = mixed(recipe, opened);
  set_steps(recipe, samples->size());

  RunData out;
  const int64_t micro = recipe.train.batch / recipe.train.accumulate;
  const bool packed = recipe.data.packing != "none";
  const int64_t columns = packed ? recipe.train.sequence : 0;
  out.batch = [=](int64_t position) { return batch_at(*samples, position, micro, columns); };
  const int64_t rows = recipe.evaluate.batch;
  out.validation = [=, held = opened.held_out](int64_t index) {
    const int64_t first = index * rows;
    return batch_at(*held, first, std::min(rows, held->size() - first), columns);
  };
  out.validation_batches = (opened.held_out->size() + rows - 1) / rows;
  out.bytes_per_target = bytes_per_target(*opened.held_out, tokenizer);
  out.codec = TextCodec(reading.stop && reading.stop != tokenizer.eos()
                            ? ending_with(tokenizer, *reading.stop)
                            : reading.tokenizer);
  const TokenRow shown_row = opened.training.front()->get(0).documents.front();
  out.example = shown(shown_row, tokenizer,
                      standard_error_style().terminal ? Colours::terminal : Colours::none);
  out.sizes = sizes_of(recipe, opened);
  out.chat = reading.chat;
  out.added = reading.added;
  out.tokenizer_files = reading.files;
  std::string settings = concat(recipe.data.validation_fraction, recipe.data.long_rows,
                                recipe.data.packing, recipe.train.sequence);
  out.hash = hash_hex(opened.store->manifest().key + settings);
  return out;
}

void write_reading(const RunData& data, const std::filesystem::path& folder, SaveOptions& options) {
  const Tokenizer* tokenizer = data.codec.tokenizer();
  if (tokenizer == nullptr) {
    return;
  }
  make_directories(folder);
  if (!data.tokenizer_files.empty()) {
    copy_tokenizer(data.tokenizer_files, folder);
  } else {
    write_file(folder / "tokenizer.json", to_tokenizer_json(tokenizer->spec()));
  }
  options.bos_token = tokenizer->bos();
  options.eos_token = tokenizer->eos();
  if (data.chat == nullptr) {
    return;
  }
  const std::filesystem::path file = folder / "tokenizer_config.json";
  nlohmann::ordered_json config = nlohmann::ordered_json::object();
  if (file_exists(file)) {
    config = nlohmann::ordered_json::parse(read_file(file));
  }
  config.erase("chat_template");
  const auto put = [&](const char* key, std::optional<TokenId> id) {
    if (id) {
      config[key] = tokenizer->token(*id);
    }
  };
  put("bos_token", tokenizer->bos());
  put("eos_token", tokenizer->eos());
  write_file(file, config.dump(2) + "\n");
  for (const auto& [name, source] : data.chat->sources()) {
    if (name == "default") {
      write_file(folder / "chat_template.jinja", source);
      continue;
    }
    make_directories(folder / "additional_chat_templates");
    write_file(folder / "additional_chat_templates" / (name + ".jinja"), source);
  }
}

}  // namespace ingot
