// Norms of queries and keys bound the attention logits, and with them a rate that is too high for
// the model without becomes one it learns at (Henry et al. 2020, arXiv:2010.04245; Dehghani et al.
// 2023, arXiv:2302.05442; Wortsman et al. 2023, arXiv:2309.14322).
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/cli/program.h"

namespace ingot::testing {
namespace {

// Words of which each is followed by one of three.
std::string chained_text(size_t bytes) {
  const Words words = {"in", "the", "beginning", "was", "word", "and", "light", "shone"};
  std::mt19937 random(1);
  std::string out;
  for (size_t word = 0; out.size() < bytes;) {
    const size_t fifth = random() % 5;
    word = (word * 3 + (fifth < 3 ? 1 : fifth < 4 ? 4 : 6)) % words.size();
    out += words[word] + (random() % 10 == 0 ? "\n" : " ");
  }
  return out;
}

struct Trained {
  double loss = NAN;       // held out, at the end
  double max_logit = NAN;  // of all layers and measured steps
};

Trained trained(const Workplace& work, const std::string& run, const Words& settings) {
  Words words = work.train(run, {"--json"});
  for (const std::string& setting : settings) {
    words = joined(words, {"--set", setting});
  }
  const Outcome outcome = work.run(words);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  Trained out;
  if (outcome.code == 0) {
    out.loss = nlohmann::json::parse(outcome.out)["validation_loss"].get<double>();
    out.max_logit = 0;
    for (const char* layer : {"max_logit/layers.0", "max_logit/layers.1"}) {
      const Words values = logged(work / run, layer);
      EXPECT_EQ(values.size(), 160) << layer;
      for (const std::string& value : values) {
        out.max_logit = std::max(out.max_logit, std::stod(value.substr(value.find(' '))));
      }
    }
  }
  std::cout << run << ": held-out loss " << out.loss << ", largest logit " << out.max_logit << '\n';
  return out;
}

TEST(QkNorm, BoundsTheLogitsAndLearnsAtARateWhereTheyGrowWithout) {
  if (const std::string reason = no_program(); !reason.empty()) {
    GTEST_SKIP() << reason;
  }
  const Workplace work;
  put(work / "text.txt", chained_text(400000));
  put(work / "tiny.toml",
      "dtype = \"f32\"\n[data]\nfiles = [\"text.txt\"]\n"
      "[model]\nwidth = 32\nheads = 2\nlayers = 2\nhidden = 64\ncontext = 32\n"
      "[train]\nsteps = 800\nsequence = 32\nbatch = 8\n[schedule]\nwarmup = 20\n"
      "[optim]\nclip = 0.0\nweight_decay = 0.0\n[numbers]\ndiagnose = 5\n"
      "[evaluate]\nevery = 0\n[checkpoint]\nevery = 0\n[sample]\ntokens = 0\n");
  const std::string high = "optim.lr=0.12";
  const Words normed = {"model.qk_norm=true",
                        "train.freeze=[\"**.q_norm.**\", \"**.k_norm.**\"]"};  // gains stay 1
  const Trained normal = trained(work, "normal", {"optim.lr=0.003"});
  const Trained without = trained(work, "without", {high});
  const Trained with = trained(work, "with", joined(normed, {high}));
  EXPECT_LE(with.max_logit, std::sqrt(16.0) * (1 + 1e-6));  // d_head = 16
  EXPECT_GT(without.max_logit, 1000);
  EXPECT_LT(with.loss, 1.1 * normal.loss);
  EXPECT_GT(without.loss, 2 * normal.loss);
}

}  // namespace
}  // namespace ingot::testing
