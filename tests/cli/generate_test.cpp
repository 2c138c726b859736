#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/program.h"

namespace ingot::testing {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

// A tiny model that reads bytes, trained for a moment, and commands on it.
class GenerateCommand : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (no_program().empty()) {
      shared = new Workplace();
      trained = shared->run(shared->train("run", {"--set", "model.context=64"})).code;
    }
  }
  static void TearDownTestSuite() { delete shared; }
  void SetUp() override {
    if (const std::string reason = no_program(); !reason.empty()) {
      GTEST_SKIP() << reason;
    }
    ASSERT_EQ(trained, 0);
  }
  static Outcome run(const Words& more) {
    return shared->run(joined({"generate", "run/model"}, more));
  }
  static Json json(const Words& more) {
    const Outcome outcome = run(joined(more, {"--json"}));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(outcome.out);
  }
  static void refused(const Words& more, int code, const std::string& what) {
    const Outcome outcome = run(more);
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(what));
  }
  static std::vector<Json> rows(const std::string& file) {
    std::vector<Json> out;
    for (const std::string& line : lines_of(content(*shared / file))) {
      out.push_back(Json::parse(line));
    }
    std::sort(out.begin(), out.end(),
              [](const Json& a, const Json& b) { return a["row"] < b["row"]; });
    return out;
  }

  static Workplace* shared;
  static int trained;
};
Workplace* GenerateCommand::shared = nullptr;
int GenerateCommand::trained = -1;

TEST_F(GenerateCommand, PrintsLogProbabilitiesOfThePromptAndOfWhatIsWritten) {
  const Json got =
      json({"--prompt", "in the", "--tokens", "4", "--logprobs", "2", "--prompt-logprobs"});
  EXPECT_EQ(got["logprobs"].size(), 4U);
  EXPECT_EQ(got["logprobs"][0]["top_logprobs"].size(), 2U);
  EXPECT_EQ(got["prompt_logprobs"].size(), 5U);
  EXPECT_EQ(got["prompt_logprobs"][0]["token"], "n");
  EXPECT_EQ(got["finish"], "length");
}

TEST_F(GenerateCommand, StopsAtStopTextsAndKeepsToRules) {
  const Words base = {"--prompt", "in the", "--tokens", "40", "--seed", "3"};
  const std::string whole = json(base)["text"];
  const size_t letter = whole.find_first_of("abcdefghijklmnopqrstuvwxyz ", 3);
  ASSERT_NE(letter, std::string::npos);
  const std::string stop = whole.substr(letter, 1);
  const Json stopped = json(joined(base, {"--stop-text", stop}));
  EXPECT_EQ(stopped["text"], whole.substr(0, whole.find(stop)));
  EXPECT_EQ(stopped["finish"], "stop");
  const Json kept = json(joined(base, {"--regex", "(yes|no)[0-9]{3}"}));
  EXPECT_THAT(kept["text"].get<std::string>(), ::testing::MatchesRegex("(yes|no)[0-9][0-9][0-9]"));
  const Json schema = json(joined(base, {"--json-schema", R"({"enum": ["light", "word"]})"}));
  EXPECT_TRUE(schema["text"] == "\"light\"" || schema["text"] == "\"word\"") << schema["text"];
  const Json one = json(joined(base, {"--logit-bias", "101=1000"}));
  EXPECT_EQ(one["text"], std::string(40, 'e'));
  const std::string banned = json(joined(base, {"--ban", "e", "--logit-bias", "101=1000"}))["text"];
  EXPECT_EQ(banned.find('e'), std::string::npos);
}

TEST_F(GenerateCommand, ChoosesAmongSeveralAnswers) {
  const Words base = {"--prompt", "in the", "--tokens", "6"};
  const Json best = json(joined(base, {"--best-of", "5"}));
  ASSERT_EQ(best["answers"].size(), 5U);
  for (const Json& answer : best["answers"]) {
    EXPECT_LE(answer["mean_log_probability"],
              best["answers"][best["best"].get<size_t>()]["mean_log_probability"]);
  }
  EXPECT_NEAR(best["divergence_bound"].get<double>(), 1.6094 - 0.8, 1e-3);
  const Json matched = json(joined(base, {"--best-of", "20", "--match", "t"}));
  EXPECT_TRUE(matched["answers"][matched["best"].get<size_t>()]["matches"]);
  const Json vote = json(joined(base, {"--votes", "9", "--answer", "[a-z]"}));
  EXPECT_GE(vote["votes"].get<int>(), 1);
  EXPECT_LE(vote["counted"].get<int>(), 9);
  const Json beams = json(joined(base, {"--beams", "3"}));
  EXPECT_EQ(beams["beams"].size(), 3U);
  EXPECT_GE(beams["beams"][0]["score"], beams["beams"][2]["score"]);
  const Json greedy = json(joined(base, {"--temperature", "0"}));
  const Json drafted = json(joined(base, {"--temperature", "0", "--draft", "run/model"}));
  EXPECT_EQ(drafted["ids"], greedy["ids"]);
  EXPECT_EQ(drafted["kept"], drafted["proposed"]);
}

TEST_F(GenerateCommand, CutsPromptsThatAreTooLongWhereTold) {
  const std::string prompt = std::string(60, 'a') + std::string(60, 'b');
  refused({"--prompt", prompt}, 2,
          "the prompt is longer than the model's context: 120 tokens, context 64");
  const Json left = json({"--prompt", prompt, "--truncate", "left", "--tokens", "10"});
  EXPECT_EQ(left["prompt_ids"], Json(std::vector<int>(54, 'b')));
  EXPECT_EQ(json({"--prompt", prompt, "--truncate", "right", "--tokens", "10"})["prompt_ids"],
            Json(std::vector<int>(54, 'a')));
}

TEST_F(GenerateCommand, KeepsKeysAndValuesIn8BitsWhereTold) {
  const Words words = {"--prompt", "in the beginning", "--tokens", "12", "--temperature", "0"};
  const Json whole = json(words);
  const Json coded = json(joined(words, {"--kv", "int8"}));
  EXPECT_EQ(coded["prompt_ids"], whole["prompt_ids"]);
  EXPECT_EQ(coded["ids"].size(), 12U);
  const Json alike = json(joined(words, {"--kv", "int8"}));
  EXPECT_EQ(alike["ids"], coded["ids"]);
  for (const Words& strategy :
       {Words{"--best-of", "2"}, Words{"--beams", "2"}, Words{"--draft", "run/model"}}) {
    EXPECT_TRUE(json(joined(joined(words, strategy), {"--kv", "int8"})).contains("text"));
  }
  refused({"--kv", "int4"}, 2, "--kv");
  refused({"--self-speculative", "--temperature", "0", "--kv", "int8"}, 2,
          "--self-speculative keeps no keys and values");
}

TEST_F(GenerateCommand, AnswersEveryRowOfAFileAndGoesOnWhereItStopped) {
  std::string input;
  for (int i = 0; i < 7; ++i) {
    input += Json({{"id", i}, {"prompt", "in the " + std::to_string(i % 3)}}).dump() + "\n" +
             (i == 2 ? "\n" : "");
  }
  put(*shared / "in.jsonl", input + R"({"prompt": [105, 110]})");
  const Words command = {"--in", "in.jsonl", "--out", "out.jsonl", "--tokens", "9", "--rows", "3"};
  const Json summary = json(command);
  EXPECT_EQ(summary["rows"], 8);
  EXPECT_EQ(summary["written"], 8);
  const std::vector<Json> all = rows("out.jsonl");
  ASSERT_EQ(all.size(), 8U);
  for (size_t i = 0; i < 7; ++i) {
    EXPECT_EQ(all[i]["row"], i);
    EXPECT_EQ(all[i]["input"]["id"], i);
    EXPECT_EQ(all[i]["output_tokens"], 9);
  }
  EXPECT_NE(all[0]["output"], all[3]["output"]);  // equal prompts, other answers
  // Cut within a line, as a kill leaves it: what is missing is written anew, the same.
  const std::string whole = content(*shared / "out.jsonl");
  put(*shared / "out.jsonl", whole.substr(0, whole.size() * 3 / 5));
  EXPECT_LT(json(command)["written"].get<int>(), 8);
  EXPECT_EQ(rows("out.jsonl"), all);
  EXPECT_EQ(json(command)["written"], 0);
  // One row alone, and all at once, say the same.
  std::filesystem::remove(*shared / "out.jsonl");
  json({"--in", "in.jsonl", "--out", "out.jsonl", "--tokens", "9", "--rows", "1"});
  EXPECT_EQ(rows("out.jsonl"), all);
}

TEST_F(GenerateCommand, NamesTheRowThatIsWrong) {
  const auto with = [&](const std::string& input, const std::string& what, int code = 3) {
    put(*shared / "bad.jsonl", input);
    std::filesystem::remove(*shared / "bad.out");
    refused({"--in", "bad.jsonl", "--out", "bad.out", "--tokens", "2"}, code, what);
  };
  with("{\"prompt\": \"x\"}\nno json\n", "bad.jsonl:2:1:");
  with("{\"prompt\": \"a\\ud800b\"}\n", "surrogate U+D800..U+DBFF must be followed");
  with("{\"prompt\": \"a\xff\xfe\"}\n", "ill-formed UTF-8 byte");
  with("[1]\n", "bad.jsonl:1: not an object");
  with("{\"text\": \"x\"}\n", "bad.jsonl:1: neither prompt nor messages");
  with("{\"prompt\": 3}\n", "bad.jsonl:1: prompt: neither a text nor a list of token ids");
  with("{\"prompt\": [\"x\"]}\n", "bad.jsonl:1: prompt: holds what is no token id");
  with("{\"prompt\": [999]}\n", "token 999 of the prompt is outside", 2);
  with(R"({"messages": [{"role": "user", "content": "x"}]})", "it has no chat template", 2);
  with(Json({{"prompt", std::string(65, 'x')}}).dump(), "bad.jsonl:1: the prompt is longer", 2);
  refused({"--in", "absent.jsonl", "--out", "bad.out"}, 3, "absent.jsonl: cannot be read");
  put(*shared / "good.jsonl", "{\"prompt\": \"x\"}\n");
  std::filesystem::remove(*shared / "good.out");
  EXPECT_EQ(run({"--in", "good.jsonl", "--out", "good.out", "--tokens", "2"}).code, 0);
  refused({"--in", "good.jsonl", "--out", "good.out", "--tokens", "3"}, 2,
          "was written with other settings");
  put(*shared / "good.jsonl", "{\"prompt\": \"y\"}\n");
  refused({"--in", "good.jsonl", "--out", "good.out", "--tokens", "2"}, 2,
          "row 0 answers another input");
  put(*shared / "good.out", "no json\n");
  refused({"--in", "good.jsonl", "--out", "good.out", "--tokens", "2"}, 3, "good.out line 1");
}

TEST_F(GenerateCommand, RefusesOptionsThatDoNotGoTogether) {
  refused({"--in", "x"}, 2, "--in and --out go together");
  refused({"--in", "x", "--out", "y", "--prompt", "z"}, 2, "--in takes its prompts from the file");
  refused({"--beams", "2", "--best-of", "2"}, 2,
          "give one of --best-of, --votes, --beams, --draft and --self-speculative");
  refused({"--votes", "2"}, 2, "--votes needs --answer");
  refused({"--beams", "2", "--logprobs", "1"}, 2, "do not go with --ids");
  refused({"--beams", "2", "--presence-penalty", "1"}, 2, "leave out the penalties");
  refused({"--regex", "a", "--json-schema", "{}"}, 2,
          "--regex and --json-schema: give one of them");
  refused({"--regex", "("}, 3, "--regex: the expression at 2 of '(': a ) must stand here");
  refused({"--json-schema", "absent.json"}, 3, "absent.json");
  refused({"--json-schema", "{}"}, 3, "schema: says no type");
  refused({"--logit-bias", "x"}, 2, "--logit-bias: 'x' is no token id with a number");
  refused({"--logit-bias", "999=1"}, 2, "token 999 is outside the model's vocabulary of 256");
  refused({"--ban", ""}, 2, "--ban: an empty word");
  refused({"--chat", "--prompt", "x"}, 2, "it has no chat template");
  refused({"--votes", "2", "--answer", "QQQQ"}, 2, "matches none of the 2 answers");
  refused({"--repetition-penalty", "0"}, 2, "allowed is above 0");
}

TEST(ServeCommand, ServesUntilItIsAskedToStop) {
  if (const std::string reason = no_program(); !reason.empty()) {
    GTEST_SKIP() << reason;
  }
  const Workplace work;
  ASSERT_EQ(work.run(work.train("run")).code, 0);
  Child server(work.path(), {"serve", "run/model", "--port", "0"});
  const std::filesystem::path out = work.path().string() + ".out";
  for (int i = 0; i < 1000 && content(out).rfind("serving", 0) != 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_THAT(content(out), HasSubstr("serving model at http://127.0.0.1:"));
  server.send(SIGTERM);
  const Outcome outcome = server.wait();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("/v1/chat/completions answers 400"));
}

}  // namespace
}  // namespace ingot::testing
