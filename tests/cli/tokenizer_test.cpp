#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ingot/base/json_library.h"
#include "tests/cli/program.h"

namespace ingot::testing {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

class TokenizerCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = no_program(); !reason.empty()) {
      GTEST_SKIP() << reason;
    }
    put(work / "text.txt", some_text(20000));
    output({"tokenizer", "train", "text.txt", "--vocab", "280", "--special", "<|end|>", "--out",
            "tok"});
  }
  Workplace work;

  std::string output(const Words& arguments) {
    const Outcome outcome = work.run(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out;
  }
};

TEST_F(TokenizerCommand, ShowsAnExampleForEveryVerb) {
  for (const char* verb : {"train", "encode", "decode", "inspect", "diff"}) {
    EXPECT_THAT(output({"tokenizer", verb, "--help"}),
                HasSubstr(std::string("Example: ingot tokenizer ") + verb));
  }
}

TEST_F(TokenizerCommand, EncodesAndDecodes) {
  const Json encoded =
      Json::parse(output({"tokenizer", "encode", "tok", "--text", "the light<|end|>", "--json"}));
  const Json parsed = Json::parse(output({"tokenizer", "encode", "tok/tokenizer.json", "--text",
                                          "the light<|end|>", "--parse-special", "--json"}));
  EXPECT_LT(parsed["ids"].size(), encoded["ids"].size());
  EXPECT_EQ(parsed["ids"].back(), 0);
  Words ids = {"tokenizer", "decode", "tok"};
  for (const Json& id : encoded["ids"]) {
    ids.push_back(id.dump());
  }
  EXPECT_EQ(output(ids), "the light<|end|>\n");
}

TEST_F(TokenizerCommand, WritesTheIdsOfAFile) {
  const Json written = Json::parse(output(
      {"tokenizer", "encode", "tok", "text.txt", "--out", "ids.u16", "--bits", "16", "--json"}));
  EXPECT_EQ(content(work / "ids.u16").size(), 2 * written["tokens"].get<size_t>());
  EXPECT_EQ(written["bytes"], content(work / "text.txt").size());
  const Words lines = lines_of(output({"tokenizer", "encode", "tok", "text.txt", "--lines"}));
  EXPECT_EQ(lines.size(), lines_of(content(work / "text.txt")).size());
}

TEST_F(TokenizerCommand, NamesTokensThatDiffer) {
  output({"tokenizer", "train", "text.txt", "--vocab", "281", "--special", "<|end|>", "--out",
          "other.json"});
  EXPECT_THAT(output({"tokenizer", "diff", "tok", "tok/tokenizer.json"}), HasSubstr("equal"));
  EXPECT_THAT(output({"tokenizer", "diff", "tok", "other.json"}), HasSubstr("tokens only in b: 1"));
  const Json found = Json::parse(output({"tokenizer", "diff", "tok", "other.json", "--json"}));
  EXPECT_EQ(found["equal"], false);
  EXPECT_EQ(found["only_b"][0]["id"], 280);
  EXPECT_THAT(output({"tokenizer", "inspect", "tok"}), HasSubstr("<|end|>"));
}

TEST_F(TokenizerCommand, RefusesInOneLine) {
  const auto refused = [&](const Words& arguments, int code, const char* reason) {
    const Outcome outcome = work.run(arguments);
    EXPECT_EQ(outcome.code, code);
    EXPECT_THAT(outcome.err, HasSubstr(reason));
    EXPECT_EQ(lines_of(outcome.err).size(), 1U) << outcome.err;
  };
  refused({"tokenizer", "encode", "nowhere.json", "--text", "a"}, 3, "nowhere.json");
  refused({"tokenizer", "encode", "text.txt", "--text", "a"}, 3, "no tokenizer that Ingot knows");
  put(work / "bad.json", R"({"model":{"type":"Q","vocab":{}}})");
  refused({"tokenizer", "inspect", "bad.json"}, 3, "unknown model 'Q'");
  refused({"tokenizer", "train", "text.txt", "--vocab", "100", "--out", "x"}, 2,
          "the vocabulary is too small");
  put(work / "empty.txt", "");
  refused({"tokenizer", "train", "empty.txt", "--out", "x"}, 3, "holds no word");
}

// A model that reads through a tokenizer: trained, measured in bits a byte, saved with it, used.
TEST_F(TokenizerCommand, IsTrainedThroughAndTravelsWithTheModel) {
  const Words through = {"--set", "data.tokenizer=tok", "--set", "model.vocab=320"};
  const Outcome refused =
      work.run(work.train("small", {"--set", "data.tokenizer=tok", "--set", "model.vocab=279"}));
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("the tokenizer has more tokens than the model: it has 280"));
  EXPECT_THAT(refused.err, HasSubstr("would have no embedding"));
  const Json trained = Json::parse(output(work.train("run", joined(through, {"--json"}))));
  const double nats = trained["validation_loss"];
  const double bits = trained["validation_bits"];
  EXPECT_LT(bits, nats / std::log(2.0) / 1.5);  // a token spells more than a byte and a half
  EXPECT_EQ(content(work / "run/model/tokenizer.json"), content(work / "tok/tokenizer.json"));
  const Json config = Json::parse(content(work / "run/model/config.json"));
  const Json inspected = Json::parse(output({"tokenizer", "inspect", "tok", "--json"}));
  EXPECT_EQ(config["ingot"]["tokenizer_hash"], inspected["hash"]);

  const Words generate = {"generate", "run/model", "--prompt", "the light", "--tokens", "8"};
  const Json written = Json::parse(output(joined(generate, {"--json"})));
  const Json encoded =
      Json::parse(output({"tokenizer", "encode", "tok", "--text", "the light", "--json"}));
  EXPECT_EQ(written["prompt_ids"], encoded["ids"]);
  EXPECT_THAT(output(generate), HasSubstr("the light"));

  // A GGUF file carries the tokenizer, and weights in 8 bits still follow the text.
  output({"convert", "run/model", "model.gguf"});
  const Words from_file = {"generate", "model.gguf", "--prompt", "the light", "--tokens", "8"};
  const Json same = Json::parse(output(joined(from_file, {"--json"})));
  EXPECT_EQ(same["prompt_ids"], written["prompt_ids"]);
  EXPECT_EQ(same["text"], written["text"]);
  const Json coded = Json::parse(output(joined(from_file, {"--json", "--int8"})));
  EXPECT_EQ(coded["prompt_ids"], written["prompt_ids"]);
  EXPECT_EQ(coded["ids"].size(), 8U);

  // Resuming with another tokenizer, or generating with one exchanged, is refused.
  output({"tokenizer", "train", "text.txt", "--vocab", "270", "--out", "tok"});
  const Outcome resumed = work.run(work.train("run", joined(through, {"--resume"})));
  EXPECT_EQ(resumed.code, 2);
  EXPECT_THAT(resumed.err, HasSubstr("the training text changed"));
  put(work / "run/model/tokenizer.json", content(work / "tok/tokenizer.json"));
  const Outcome exchanged = work.run(generate);
  EXPECT_EQ(exchanged.code, 2);
  EXPECT_THAT(exchanged.err, HasSubstr("not the one that the model was trained with"));
}

}  // namespace
}  // namespace ingot::testing
