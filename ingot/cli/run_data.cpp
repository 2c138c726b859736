#include "ingot/cli/run_data.h"

#include <algorithm>
#include <array>
#include <limits>

#include "ingot/base/files.h"
#include "ingot/base/hash.h"
#include "ingot/cli/run_rows.h"
#include "ingot/data/shuffle.h"
#include "ingot/data/token_text.h"
#include "ingot/text/load_tokenizer.h"

namespace ingot {
namespace {

using Windows = std::shared_ptr<const Dataset<TokenWindow>>;

std::function<Batch(int64_t)> validation_batch(const Recipe& recipe, const Windows& windows) {
  const int64_t sequence = recipe.train.sequence;
  const int64_t batch = recipe.evaluate.batch;
  return [=](int64_t index) {
    const int64_t first = index * batch;
    return batch_from(*windows, first, std::min(batch, windows->size() - first), sequence);
  };
}

int64_t validation_batches(const Recipe& recipe, const Dataset<TokenWindow>& windows) {
  return (windows.size() + recipe.evaluate.batch - 1) / recipe.evaluate.batch;
}

// "name=file" as a set; through the tokenizer where there is one.
ValidationSet set_of(const Recipe& recipe, const std::string& spelled, const Tokenizer* tokenizer) {
  const size_t equals = spelled.find('=');
  check(equals != std::string::npos && equals > 0 && equals + 1 < spelled.size(), ErrorKind::config,
        "evaluate.sets: not understood: got \"", spelled, "\"; write \"name=file\"");
  ValidationSet out;
  out.name = spelled.substr(0, equals);
  TextConfig config;
  config.files = config.validation_files = {spelled.substr(equals + 1)};
  const Text text(config);
  Windows windows = text.validation(recipe.train.sequence);
  if (tokenizer != nullptr) {
    const TokenText tokens(text, *tokenizer);
    windows = tokens.validation(recipe.train.sequence);
    out.bytes_per_target = static_cast<double>(tokens.validation_bytes()) /
                           static_cast<double>(std::max<int64_t>(1, tokens.validation_targets()));
  }
  check(windows->size() > 0, ErrorKind::config, "evaluate.sets: nothing to measure in ",
        config.files[0], ": it has no token after its first; give a longer one");
  out.hash = hash_file(config.files[0]);
  out.batch = validation_batch(recipe, windows);
  out.batches = validation_batches(recipe, *windows);
  return out;
}

std::vector<ValidationSet> sets_of(const Recipe& recipe, const Tokenizer* tokenizer) {
  std::vector<ValidationSet> out;
  for (const std::string& spelled : recipe.evaluate.sets) {
    ValidationSet set = set_of(recipe, spelled, tokenizer);
    for (const ValidationSet& known : out) {
      check(known.name != set.name, ErrorKind::config, "evaluate.sets: two are named ", set.name,
            "; give each a name of its own");
    }
    out.push_back(std::move(set));
  }
  return out;
}

// The training batches of a run that reads these windows.
void set_training(const Recipe& recipe, const Windows& windows, RunData& out) {
  const auto seed = static_cast<uint64_t>(recipe.seed);
  const int64_t sequence = recipe.train.sequence;
  const int64_t rows = recipe.train.batch / recipe.train.accumulate;
  const auto training = std::make_shared<Shuffled<TokenWindow>>(windows, seed);
  out.batch = [=](int64_t position) { return batch_from(*training, position, rows, sequence); };
  out.sources = [training, files = recipe.data.files](int64_t sample) {
    std::vector<Source> sources;
    for (const Origin& origin : training->origins(sample)) {
      sources.push_back({files.at(static_cast<size_t>(origin.document)), origin.begin, origin.end});
    }
    return sources;
  };
}

void set_batches(const Recipe& recipe, const Windows& windows, const Windows& validation,
                 RunData& out) {
  check_held_out(recipe, validation->size());
  set_training(recipe, windows, out);
  out.validation = validation_batch(recipe, validation);
  out.validation_batches = validation_batches(recipe, *validation);
}

void open_tokens(const Recipe& recipe, const Text& text, RunData& out) {
  const auto tokenizer = std::make_shared<const Tokenizer>(load_tokenizer(recipe.data.tokenizer));
  check_vocabulary(*tokenizer, recipe.model.vocab, "data.tokenizer: " + recipe.data.tokenizer);
  const auto prompt =
      static_cast<int64_t>(TextCodec(tokenizer).prompt(recipe.sample.prompt).size());
  check(recipe.sample.tokens == 0 || prompt <= recipe.model.context, ErrorKind::config,
        "sample.prompt: longer than the model allows: the prompt has ", prompt,
        " tokens, model.context is ", recipe.model.context,
        "; shorten it, or set sample.tokens = 0");
  const TokenText tokens(text, *tokenizer);
  set_batches(recipe, tokens.training(recipe.train.sequence, static_cast<uint64_t>(recipe.seed)),
              tokens.validation(recipe.train.sequence), out);
  out.validation_bytes = tokens.validation_bytes();
  out.bytes_per_target = static_cast<double>(tokens.validation_bytes()) /
                         static_cast<double>(tokens.validation_targets());
  out.codec = TextCodec(tokenizer);
  out.tokenizer_files = recipe.data.tokenizer;
  out.sets = sets_of(recipe, tokenizer.get());
  out.hash = hash_hex(text.hash() + tokenizer->hash());
}

// The files of the annealing phase in windows, and what is read of both: before its first sample
// the run's, from there on these from their first on.
void add_annealing(const Recipe& recipe, RunData& out) {
  TextConfig config;
  config.files = recipe.data.anneal_files;
  config.validation_fraction = 0;
  const Text text(config);
  const auto seed = static_cast<uint64_t>(recipe.seed);
  const int64_t sequence = recipe.train.sequence;
  Windows windows;
  if (out.codec.tokenizer() != nullptr) {
    windows = TokenText(text, *out.codec.tokenizer()).training(sequence, seed);
  } else {
    windows = text.training(sequence, seed);
  }
  RunData later;
  Recipe as = recipe;
  as.data.files = config.files;
  set_training(as, windows, later);
  out.anneal_from = std::make_shared<int64_t>(std::numeric_limits<int64_t>::max());
  out.batch = [first = out.batch, then = later.batch, from = out.anneal_from](int64_t position) {
    return position < *from ? first(position) : then(position - *from);
  };
  out.sources = [first = out.sources, then = later.sources,
                 from = out.anneal_from](int64_t sample) {
    return sample < *from ? first(sample) : then(sample - *from);
  };
  out.hash = hash_hex(out.hash + text.hash());
}

RunData open_only_text(const Recipe& recipe) {
  const Text text(recipe.data);
  RunData out;
  out.train_bytes = text.training_bytes();
  if (!recipe.data.tokenizer.empty()) {
    open_tokens(recipe, text, out);
    return out;
  }
  const int64_t sequence = recipe.train.sequence;
  set_batches(recipe, text.training(sequence, static_cast<uint64_t>(recipe.seed)),
              text.validation(sequence), out);
  out.validation_bytes = text.validation_targets();
  out.sets = sets_of(recipe, nullptr);
  out.hash = text.hash();
  return out;
}

RunData open_text(const Recipe& recipe) {
  RunData out = open_only_text(recipe);
  if (!recipe.data.anneal_files.empty()) {
    add_annealing(recipe, out);
  }
  return out;
}

bool holds_rows(const std::string& file) {
  constexpr std::array<std::string_view, 5> extensions = {".jsonl", ".json", ".csv", ".gz", ".zst"};
  const std::string extension = std::filesystem::path(file).extension().string();
  return std::find(extensions.begin(), extensions.end(), extension) != extensions.end();
}

}  // namespace

void check_held_out(const Recipe& recipe, int64_t samples) {
  const bool by_file = !recipe.data.validation_files.empty();
  check(samples > 0, ErrorKind::config,
        by_file
            ? concat("data.validation_files: nothing to measure in them: they have no byte "
                     "after their first; give longer ones")
            : concat("data.validation_fraction: nothing is held out: it is ",
                     recipe.data.validation_fraction, "; raise it, or name data.validation_files"));
}

bool reads_rows(const Recipe& recipe) {
  const std::string& from = recipe.model.from;
  const bool in_file = !from.empty() && !is_folder(from);  // with its tokenizer
  return recipe.kind != "pretrain" || in_file ||
         std::any_of(recipe.data.files.begin(), recipe.data.files.end(), holds_rows);
}

RunData open_text_or_rows(Recipe& recipe, const std::filesystem::path& cache) {
  if (reads_rows(recipe)) {
    return open_rows(recipe, cache);
  }
  const std::string& from = recipe.model.from;
  check(recipe.train.epochs == 0, ErrorKind::config,
        "train.epochs: plain text is read by steps; set train.steps and leave epochs out");
  // A model that reads tokens is not trained on bytes.
  if (recipe.data.tokenizer.empty() && !from.empty() && open_source(from).tokenizer != nullptr) {
    recipe.data.tokenizer = from;
  }
  return open_text(recipe);
}

RunData open_run_data(Recipe& recipe, const std::filesystem::path& cache) {
  RunData out = run_kind(recipe.kind).open(recipe, cache);
  check(out.sets.size() == recipe.evaluate.sets.size(), ErrorKind::config,
        "evaluate.sets: are plain texts, and this run reads rows; measure them afterwards "
        "with `ingot eval MODEL --text FILE`");
  check((out.anneal_from != nullptr) == !recipe.data.anneal_files.empty(), ErrorKind::config,
        "data.anneal_files: are plain texts, and this run reads rows; branch off with other "
        "data.files instead");
  check_recipe(recipe);
  place_annealing(out, recipe, recipe.train.steps);
  return out;
}

void place_annealing(const RunData& data, const Recipe& recipe, int64_t steps) {
  if (data.anneal_from) {
    *data.anneal_from =
        tokens_of_steps(recipe.train, decay_start(recipe, steps)) / recipe.train.sequence;
  }
}

}  // namespace ingot
