#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "ingot/data/batch.h"
#include "ingot/data/token_file.h"
#include "ingot/models/pretrained.h"
#include "tests/support/paths.h"
#include "tests/train/tiny.h"

namespace ingot::testing {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> runs() {
  std::vector<fs::path> out;
  const fs::path folder = oracle_folder() / "train";
  if (fs::is_directory(folder)) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().extension() == ".json") {
        out.push_back(entry.path());
      }
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

OptimizerConfig optimizer_of(const nlohmann::json& oracle) {
  const nlohmann::json& settings = oracle["optimizer"];
  EXPECT_EQ(settings["name"], "adamw");
  AdamWConfig rule;
  rule.beta1 = settings["beta1"];
  rule.beta2 = settings["beta2"];
  rule.eps = settings["eps"];
  rule.weight_decay = settings["weight_decay"];
  OptimizerConfig config;
  config.rule = rule;
  return config;
}

// The training loop itself: windows in file order, constant learning rate, clipping.
std::vector<double> our_losses(const nlohmann::json& oracle) {
  const Pretrained loaded =
      load_pretrained(oracle_folder() / oracle["model"].get<std::string>(), DType::f32);
  loaded.model->require_gradients();
  Optimizer optimizer = make_optimizer(optimizer_of(oracle), loaded.model->parameters());
  const int64_t T = oracle["sequence"];
  const auto windows = windows_of(
      std::make_shared<TokenFile>(oracle_folder() / oracle["tokens"].get<std::string>()), T);
  Training training = tiny_training(*loaded.model, optimizer, oracle["steps"], 1,
                                    oracle["optimizer"]["learning_rate"]);
  training.max_norm = oracle["optimizer"]["clip"];
  training.batch = [&, rows = oracle["batch"].get<int64_t>()](int64_t position) {
    return batch_from(*windows, position, rows, T);
  };
  Reports reports;
  training.observers = {&reports};
  TrainState state;
  train(state, training);
  return reports.losses();
}

TEST(TorchComparison, TheLoopFollowsPyTorchsLosses) {
  if (runs().empty()) {
    GTEST_SKIP() << "needs " << oracle_folder() / "train"
                 << ": unset INGOT_ORACLES";
  }
  for (const fs::path& file : runs()) {
    const nlohmann::json oracle = parse_json_file(file);
    const auto expected = oracle["losses"].get<std::vector<double>>();
    const std::vector<double> losses = our_losses(oracle);
    ASSERT_EQ(losses.size(), expected.size()) << file;
    double largest = 0;
    for (size_t step = 0; step < losses.size(); ++step) {
      largest = std::max(largest, std::abs(losses[step] - expected[step]));
    }
    fmt::print("{}: largest difference from PyTorch over {} steps: {:.1e}\n", file.stem().string(),
               losses.size(), largest);
    EXPECT_LE(largest, oracle["tolerance"].get<double>()) << file;
    EXPECT_LT(losses.back(), losses.front() - 0.3) << file;  // a run that learns
  }
}

}  // namespace
}  // namespace ingot::testing
