// A model of short texts becomes one of longer texts by stretching its rotation and training on.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/cli/program.h"

namespace ingot::testing {
namespace {

class ContextExtension : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = no_program(); !reason.empty()) {
      GTEST_SKIP() << reason;
    }
    put(work / "text.txt", some_text(60000));
  }

  // Trains on from `from` for so many steps; the held-out loss at the end.
  double held_out(const std::string& run, const Words& settings) const {
    Words words = work.train(run, {"--json"});
    for (const std::string& setting : settings) {
      words = joined(words, {"--set", setting});
    }
    const Outcome outcome = work.run(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.code == 0 ? nlohmann::json::parse(outcome.out)["validation_loss"].get<double>()
                             : NAN;
  }

  Workplace work;
};

// Four times the length: at first far worse than on short texts, after some hundred steps within a
// tenth of their perplexity.
TEST_F(ContextExtension, BringsPerplexityOnLongTextsBackToThatOnShortOnes) {
  const Words both = {"model.width=32",     "model.heads=4",  "model.layers=2",
                      "model.hidden=64",    "optim.lr=5e-3",  "evaluate.every=0",
                      "checkpoint.every=0", "sample.tokens=0"};
  const double trained = held_out("short", joined(both, {"model.context=32", "train.sequence=32",
                                                         "train.batch=16", "train.steps=800"}));
  put(work / "tiny.toml", "dtype = \"f32\"\n[data]\nfiles = [\"text.txt\"]\n");
  const Words longer = {"model.from=short/model", "model.context=128", "train.sequence=128",
                        "train.batch=8",          "evaluate.every=0",  "checkpoint.every=0",
                        "sample.tokens=0"};
  const double unchanged =
      held_out("unchanged", joined(longer, {"train.steps=1", "optim.lr=1e-12"}));
  for (const char* kind : {"linear", "ntk", "yarn"}) {
    const Words stretched =
        joined(longer, {std::string("model.rope.scaling=") + kind, "model.rope.factor=4"});
    const double before = held_out(std::string(kind) + "-before",
                                   joined(stretched, {"train.steps=1", "optim.lr=1e-12"}));
    const double after = held_out(std::string(kind) + "-after",
                                  joined(stretched, {"train.steps=300", "optim.lr=2e-3"}));
    std::cout << kind << ": short " << trained << ", long unchanged " << unchanged << ", stretched "
              << before << ", trained on " << after << '\n';
    EXPECT_LT(after, trained + std::log(1.1)) << kind;
    EXPECT_LT(after, before) << kind;
  }
}

}  // namespace
}  // namespace ingot::testing
