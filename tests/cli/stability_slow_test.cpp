// What keeps logits small: norms of queries and keys those of attention, the z-loss those of the
// vocabulary. Each in pairs of runs that differ in nothing else.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/cli/program.h"

namespace ingot::testing {
namespace {

class LogitStability : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = no_program(); !reason.empty()) {
      GTEST_SKIP() << reason;
    }
    put(work / "text.txt", chain(120000));
    put(work / "tiny.toml", R"(dtype = "f32"
[model]
width = 32
layers = 2
heads = 4
hidden = 64
context = 32
[data]
files = ["text.txt"]
[train]
sequence = 32
batch = 8
[evaluate]
every = 0
[checkpoint]
every = 0
[sample]
tokens = 0
)");
  }

  // Letters of a Markov chain: no model can get below its entropy, so losses are comparable.
  static std::string chain(size_t size) {
    constexpr size_t letters = 16;
    std::mt19937 random(7);
    const auto uniform = [&] { return static_cast<double>(random()) / 4294967296.0; };
    double weight[letters][letters];
    for (auto& row : weight) {
      for (double& w : row) {
        w = std::pow(uniform(), 3) + 0.02;
      }
    }
    std::string out;
    for (size_t state = 0; out.size() < size;) {
      double total = 0;
      for (const double w : weight[state]) {
        total += w;
      }
      double left = uniform() * total;
      size_t next = 0;
      while (next + 1 < letters && left >= weight[state][next]) {
        left -= weight[state][next++];
      }
      state = next;
      out += out.size() % 81 == 80 ? '\n' : static_cast<char>('a' + state);
    }
    return out;
  }

  struct Run {
    double loss = NAN;                  // held out
    std::vector<double> logits, log_z;  // by diagnosed step: the largest of attention, mean |log Z|
  };

  Run train(const std::string& name, const Words& settings) const {
    Words words = work.train(name, {"--json"});
    for (const std::string& setting : settings) {
      words = joined(words, {"--set", setting});
    }
    const Outcome outcome = work.run(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    Run run;
    if (outcome.code != 0) {
      return run;
    }
    run.loss = nlohmann::json::parse(outcome.out)["validation_loss"].get<double>();
    for (const std::string& line : lines_of(content(work / name / "log.jsonl"))) {
      const nlohmann::json entry = nlohmann::json::parse(line);
      if (entry.contains("log_z")) {
        run.logits.push_back(std::max(entry["max_logit/layers.0"].get<double>(),
                                      entry["max_logit/layers.1"].get<double>()));
        run.log_z.push_back(entry["log_z"].get<double>());
      }
    }
    EXPECT_FALSE(run.logits.empty());
    return run;
  }

  static double largest(const std::vector<double>& values) {
    return *std::max_element(values.begin(), values.end());
  }

  Workplace work;
};

// |q̂·k̂| / √d ≤ √d where both have the norm √d.
TEST_F(LogitStability, WithUnitGainsNoAttentionLogitExceedsTheRootOfTheHead) {
  const Run run =
      train("unit", {"model.qk_norm=true", "train.steps=200", "optim.lr=0.1", "numbers.diagnose=1",
                     R"(train.freeze=["**.q_norm.*", "**.k_norm.*"])"});
  ASSERT_EQ(run.logits.size(), 200u);
  const double bound = std::sqrt(8.0);  // 32 features in 4 heads
  EXPECT_LE(largest(run.logits), bound * (1 + 1e-5));
  EXPECT_GT(largest(run.logits), 0.9 * bound) << "the bound was never near";
}

// At a rate too high for this model. Over seeds 1 to 4 the largest logits were 42 to 73 times
// apart, and the loss was 0.04 to 0.18 lower with the norms, yet up to 3 % above that at a good
// rate: this does not show that nothing is lost.
TEST_F(LogitStability, AtAHighRateAttentionLogitsGrowTenfoldMoreWithoutNormsAndTheLossIsHigher) {
  const Words both = {"train.steps=400", "numbers.diagnose=10", "optim.lr=0.1"};
  const Run normed = train("normed", joined(both, {"model.qk_norm=true"}));
  const Run plain = train("plain", joined(both, {"model.qk_norm=false"}));
  ASSERT_EQ(normed.logits.size(), 40u);
  ASSERT_EQ(plain.logits.size(), 40u);
  std::cout << "with " << normed.loss << " (largest logit " << largest(normed.logits)
            << "), without " << plain.loss << " (" << largest(plain.logits) << ")\n";
  EXPECT_GT(largest(plain.logits), 10 * largest(normed.logits));
  EXPECT_LT(normed.loss, plain.loss);
}

// Nothing in the cross-entropy holds log Z. SGD keeps Σ_v logit_v as it was, so that log Z rises
// with every logit that falls. The weight is 100 times that of large models: what it pulls a step
// is proportional to it, and 1e-4 would take some hundred thousand steps here.
TEST_F(LogitStability, TheZLossBringsLogZBelowOneWhileItDriftsUpwardWithout) {
  const Words both = {"train.steps=1500", "optim.kind=sgd",       "optim.momentum=0.9",
                      "optim.lr=0.3",     "optim.weight_decay=0", "numbers.diagnose=50"};
  const Run held = train("held", joined(both, {"train.z_loss=1e-2"}));
  const Run free = train("free", both);
  ASSERT_EQ(held.log_z.size(), 30u);
  ASSERT_EQ(free.log_z.size(), 30u);
  const auto mean = [](const std::vector<double>& values, size_t begin) {
    double sum = 0;
    for (size_t i = begin; i < begin + 5; ++i) {
      sum += values[i];
    }
    return sum / 5;
  };
  std::cout << "mean |log Z| without: " << mean(free.log_z, 0) << " … " << mean(free.log_z, 25)
            << ", with: " << mean(held.log_z, 0) << " … " << mean(held.log_z, 25)
            << "; loss without " << free.loss << ", with " << held.loss << '\n';
  EXPECT_GT(mean(free.log_z, 25), mean(free.log_z, 0) + 1);
  EXPECT_LT(*std::max_element(held.log_z.end() - 10, held.log_z.end()), 1);
  EXPECT_NEAR(held.loss, free.loss, 0.005 * free.loss);
}

}  // namespace
}  // namespace ingot::testing
