#include "ingot/cli/run_data.h"

#include <algorithm>

#include "ingot/base/hash.h"
#include "ingot/data/shuffle.h"
#include "ingot/data/token_text.h"
#include "ingot/text/load_tokenizer.h"

namespace ingot {
namespace {

using Windows = std::shared_ptr<const Dataset<TokenWindow>>;

void check_held_out(const Recipe& recipe, const Dataset<TokenWindow>& validation) {
  const bool by_file = !recipe.data.validation_files.empty();
  check(validation.size() > 0, ErrorKind::config,
        by_file
            ? concat("data.validation_files: nothing to measure in them: they have no byte "
                     "after their first; give longer ones")
            : concat("data.validation_fraction: nothing is held out: it is ",
                     recipe.data.validation_fraction, "; raise it, or name data.validation_files"));
}

// The batches of a run that reads these windows.
void set_batches(const Recipe& recipe, const Windows& windows, const Windows& validation,
                 RunData& out) {
  const auto seed = static_cast<uint64_t>(recipe.seed);
  const int64_t sequence = recipe.train.sequence;
  const int64_t rows = recipe.train.batch / recipe.train.accumulate;
  const int64_t batch = recipe.evaluate.batch;
  const auto training = std::make_shared<Shuffled<TokenWindow>>(windows, seed);
  check_held_out(recipe, *validation);
  out.batch = [=](int64_t position) { return batch_from(*training, position, rows, sequence); };
  out.validation = [=](int64_t index) {
    const int64_t first = index * batch;
    return batch_from(*validation, first, std::min(batch, validation->size() - first), sequence);
  };
  out.validation_batches = (validation->size() + batch - 1) / batch;
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
  out.hash = hash_hex(text.hash() + tokenizer->hash());
}

}  // namespace

RunData open_run_data(const Recipe& recipe) {
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
  out.hash = text.hash();
  return out;
}

}  // namespace ingot
