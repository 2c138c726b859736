// A model of short texts becomes one of longer texts by stretching its rotation and training on.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/cli/program.h"

namespace ingot::testing {
namespace {

// Lines of two kinds: some letters and digits over and over, which an attention that finds their
// last occurrence foretells; and sentences around "The number of the house is 4821.", which is
// asked for at the end. What is to be found lies up to `scale` times as far back.
class RepeatedText {
 public:
  RepeatedText(int scale, unsigned seed) : scale_(scale), random_(seed) {}

  std::string of_bytes(size_t bytes) {
    std::string out;
    while (out.size() < bytes) {
      out += (below(10) < 7 ? repeated() : asked()) + "\n";
    }
    return out;
  }
  std::string sentences(int count) {
    static const Words all = {" The road climbs between old elms and turns towards the river.",
                              " In the afternoon the wind dropped and boats lay still.",
                              " She kept letters in a wooden box.",
                              " Nobody remembered when the bridge had been built."};
    std::string out;
    for (int i = 0; i < count; ++i) {
      out += all[below(all.size())];
    }
    return out;
  }

 private:
  size_t below(size_t bound) { return random_() % bound; }

  std::string repeated() {
    std::string unit, out;
    for (size_t left = (4 + below(5)) * static_cast<size_t>(scale_); left > 0; --left) {
      const size_t drawn = below(36);
      unit += drawn < 26 ? std::string(" ") + static_cast<char>('a' + drawn)
                         : std::to_string(drawn - 26);
    }
    for (size_t times = 5 + below(5); times > 0; --times) {
      out += unit;
    }
    return out;
  }
  std::string asked() {
    const std::string number =
        " The number of the house is " + std::to_string(1000 + below(9000)) + ".";
    const auto some = [&] { return sentences(static_cast<int>(below(3 * scale_ + 1))); };
    const std::string before = some();
    return before + number + some() + " What is the number of the house?" + number;
  }

  int scale_;
  std::mt19937 random_;
};

class ContextExtension : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = no_program(); !reason.empty()) {
      GTEST_SKIP() << reason;
    }
    put(work / "short.txt", RepeatedText(1, 1).of_bytes(600000));
    put(work / "long.txt", RepeatedText(4, 2).of_bytes(1500000));
    put(work / "short-held-out.txt", RepeatedText(1, 3).of_bytes(40000));
    put(work / "long-held-out.txt", RepeatedText(4, 4).of_bytes(80000));
    put(work / "filler.txt", RepeatedText(1, 5).sentences(60));
    put(work / "tiny.toml",
        "dtype = \"f32\"\n[data]\ntokenizer = \"tokenizer\"\n[evaluate]\nevery = 0\n"
        "[checkpoint]\nevery = 0\n[sample]\ntokens = 0\n");
    const Outcome outcome =
        work.run({"tokenizer", "train", "short.txt", "--vocab", "390", "--pattern",
                  " ?[A-Za-z]+|[0-9]|[^A-Za-z0-9]", "--out", "tokenizer"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }

  // Trains; the perplexity of held-out text at the end.
  double perplexity(const std::string& run, const std::string& text, const Words& settings) const {
    Words words = work.train(run, {"--json"});
    for (const std::string& setting :
         joined({"data.files=[\"" + text + ".txt\"]",
                 "data.validation_files=[\"" + text + "-held-out.txt\"]"},
                settings)) {
      words = joined(words, {"--set", setting});
    }
    const Outcome outcome = work.run(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.code == 0
               ? std::exp(nlohmann::json::parse(outcome.out)["validation_loss"].get<double>())
               : NAN;
  }

  // The share of hidden numbers that are found in texts of so many tokens.
  double found(const std::string& run, const std::string& length) const {
    const Outcome outcome = work.run({"eval", "needle", run + "/model", "--lengths", length,
                                      "--trials", "8", "--filler", "filler.txt", "--json"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    if (outcome.code != 0) {
      return NAN;
    }
    const auto scores = nlohmann::json::parse(outcome.out)["scores"];
    double sum = 0;
    for (const auto& score : scores) {
      sum += score["acc"].get<double>();
    }
    return sum / static_cast<double>(scores.size());
  }

  Workplace work;
};

// From 64 tokens to 256. Perplexity on long texts is that of the short ones times more than five,
// whether the rotation is left or only stretched; training on brings it back.
TEST_F(ContextExtension, BringsPerplexityAndRetrievalOnLongTextsBackToThoseOnShortOnes) {
  const double trained =
      perplexity("short", "short",
                 {"model.vocab=390", "model.width=128", "model.heads=4", "model.layers=2",
                  "model.hidden=128", "model.context=64", "train.sequence=64", "train.batch=16",
                  "train.steps=1500", "optim.lr=2e-3", "optim.beta2=0.99", "schedule.warmup=50"});
  EXPECT_GE(found("short", "64"), 0.95);
  const Words longer = {"model.from=short/model", "model.context=256", "train.sequence=256",
                        "train.batch=8"};
  const Words as_it_is = {"train.steps=1", "optim.lr=1e-12"};
  const double unchanged = perplexity("unchanged", "long", joined(longer, as_it_is));
  EXPECT_GT(unchanged, 5 * trained);
  std::cout << "perplexity: short " << trained << ", long " << unchanged << '\n';
  for (const std::string kind : {"linear", "ntk", "yarn"}) {
    const Words stretched = joined(longer, {"model.rope.scaling=" + kind, "model.rope.factor=4"});
    const double before = perplexity(kind + "-before", "long", joined(stretched, as_it_is));
    const double after = perplexity(kind + "-after", "long",
                                    joined(stretched, {"train.steps=200", "optim.lr=1e-3"}));
    const double retrieved = found(kind + "-after", "256");
    std::cout << kind << ": stretched " << before << ", trained on " << after << ", finds "
              << retrieved << " of the numbers\n";
    EXPECT_GT(before, 5 * trained) << kind;
    EXPECT_LT(after, 1.1 * trained) << kind;
    EXPECT_GE(retrieved, 0.95) << kind;
  }
}

}  // namespace
}  // namespace ingot::testing
