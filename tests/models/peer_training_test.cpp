#include <gtest/gtest.h>

#include <cstring>

#include "ingot/autograd/backward.h"
#include "ingot/base/files.h"
#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "ingot/models/pretrained.h"
#include "ingot/ops/cross_entropy.h"
#include "ingot/ops/elementwise.h"
#include "ingot/optim/clip.h"
#include "ingot/optim/table.h"
#include "ingot/tensor/factories.h"
#include "tests/support/paths.h"

namespace ingot::testing {
namespace {

std::vector<int64_t> tokens_of(const std::filesystem::path& path) {
  const std::string bytes = read_file(path);
  std::vector<uint16_t> words(bytes.size() / 2);
  std::memcpy(words.data(), bytes.data(), 2 * words.size());
  return {words.begin(), words.end()};
}

// Step s, row b reads sequence + 1 tokens from position (s · batch + b) · sequence.
struct Batches {
  std::vector<int64_t> tokens;
  int64_t batch, sequence;

  Tensor at(int64_t step, int64_t shift) const {
    std::vector<int64_t> ids;
    for (int64_t row = 0; row < batch; ++row) {
      const auto begin = tokens.begin() + (step * batch + row) * sequence + shift;
      ids.insert(ids.end(), begin, begin + sequence);
    }
    return tensor_of(ids, {batch, sequence});
  }
};

void expect_followed(const std::filesystem::path& file) {
  const auto oracle = parse_json_file(file);
  const Batches batches{tokens_of(oracle_folder() / oracle["tokens"].get<std::string>()),
                        oracle["batch"], oracle["sequence"]};
  const Pretrained loaded =
      load_pretrained(oracle_folder() / oracle["model"].get<std::string>(), DType::f32);
  Decoder& model = *loaded.model;
  model.require_gradients();
  // The defaults of AdamW are the oracle's: β 0.9 and 0.95, ε 1e-8, decay 0.1 on matrices.
  Optimizer optimizer = make_optimizer({}, model.parameters());
  const auto& settings = oracle["optimizer"];
  for (int64_t step = 0; step < oracle["steps"].get<int64_t>(); ++step) {
    const Tensor labels = batches.at(step, 1);
    const Tensor loss =
        linear_cross_entropy(model.hidden(batches.at(step, 0)), model.output_weight(), labels) /
        static_cast<double>(labels.elements());
    ASSERT_NEAR(loss.item(), oracle["losses"][static_cast<size_t>(step)].get<double>(),
                oracle["tolerance"].get<double>())
        << "step " << step;
    backward(loss);
    const double norm = gradient_norm(model.parameters());
    optimizer.step(settings["learning_rate"], clip_factor(norm, settings["clip"]));
  }
}

TEST(PublishedModels, FollowPyTorchsLossesOverFiftySteps) {
  for (const char* name : {"gpt2-base.json", "llama-gqa.json"}) {
    const auto file = oracle_folder() / "train" / name;
    if (!std::filesystem::exists(file)) {
      GTEST_SKIP() << "needs " << file << ": unset INGOT_ORACLES";
    }
    SCOPED_TRACE(name);
    expect_followed(file);
  }
}

}  // namespace
}  // namespace ingot::testing
