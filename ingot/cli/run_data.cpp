#include "ingot/cli/run_data.h"

#include <algorithm>

#include "ingot/data/shuffle.h"

namespace ingot {

RunData open_run_data(const Recipe& recipe) {
  const Text text(recipe.data);
  const int64_t sequence = recipe.train.sequence;
  const auto seed = static_cast<uint64_t>(recipe.seed);
  const auto training =
      std::make_shared<Shuffled<TokenWindow>>(text.training(sequence, seed), seed);
  const std::shared_ptr<const Dataset<TokenWindow>> validation = text.validation(sequence);
  const bool by_file = !recipe.data.validation_files.empty();
  check(validation->size() > 0, ErrorKind::config,
        by_file
            ? concat("data.validation_files: nothing to measure in them: they have no byte "
                     "after their first; give longer ones")
            : concat("data.validation_fraction: nothing is held out: it is ",
                     recipe.data.validation_fraction, "; raise it, or name data.validation_files"));
  const int64_t rows = recipe.train.batch / recipe.train.accumulate;
  const int64_t batch = recipe.evaluate.batch;

  RunData out;
  out.batch = [=](int64_t position) { return batch_from(*training, position, rows, sequence); };
  out.validation = [=](int64_t index) {
    const int64_t first = index * batch;
    return batch_from(*validation, first, std::min(batch, validation->size() - first), sequence);
  };
  out.validation_batches = (validation->size() + batch - 1) / batch;
  out.train_bytes = text.training_bytes();
  out.validation_bytes = text.validation_targets();
  out.hash = text.hash();
  return out;
}

}  // namespace ingot
