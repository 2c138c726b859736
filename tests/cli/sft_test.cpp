#include "tests/cli/resume.h"
#include "tests/cli/sft_workplace.h"

namespace ingot::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class SftCommands : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = no_program(); !reason.empty()) {
      GTEST_SKIP() << reason;
    }
    work_.emplace();
  }
  const SftWorkplace& work() const { return *work_; }
  std::string refused(const Words& settings, int code) const {
    const Outcome outcome = work().train("refused", settings);
    EXPECT_EQ(outcome.code, code) << outcome.err;
    return outcome.err;
  }

  std::optional<SftWorkplace> work_;
};

TEST_F(SftCommands, TrainOnTheAnswersAndWriteAModelThatChats) {
  const Outcome done = work().train("run", {"train.steps=30"});
  ASSERT_EQ(done.code, 0) << done.err;
  // What is trained is said and shown.
  EXPECT_THAT(done.err, HasSubstr("chats.jsonl: jsonl: messages, 60 rows"));
  EXPECT_THAT(done.err, HasSubstr("of the tokens learnt"));
  EXPECT_THAT(done.err, HasSubstr("2 tokens added, from id "));
  EXPECT_THAT(done.err, AllOf(HasSubstr("<|im_start|>assistant\n«"), HasSubstr("<|im_end|>»")));
  // The loss on held-out answers falls.
  const Words losses = logged(work() / "run", "validation_loss");
  ASSERT_GE(losses.size(), 2u);
  const auto value = [](const std::string& logged) {
    return std::stod(logged.substr(logged.find(' ') + 1));
  };
  EXPECT_LT(value(losses.back()), 0.8 * value(losses.front()));
  // Template, tokenizer and stop token travel with the model.
  EXPECT_THAT(content(work() / "run/model/chat_template.jinja"), HasSubstr("<|im_start|>"));
  const auto config = nlohmann::json::parse(content(work() / "run/model/tokenizer_config.json"));
  EXPECT_EQ(config["eos_token"], "<|im_end|>");
  const auto model = nlohmann::json::parse(content(work() / "run/model/config.json"));
  EXPECT_EQ(model["ingot"]["stage"], "sft");
  const auto tokenizer = nlohmann::json::parse(content(work() / "run/model/tokenizer.json"));
  for (const auto& token : tokenizer["added_tokens"]) {
    EXPECT_EQ(token["id"] == model["eos_token_id"], token["content"] == "<|im_end|>");
  }
  const Outcome doctor = work().run({"doctor", "run/model"});
  EXPECT_EQ(doctor.code, 0) << doctor.out << doctor.err;
  EXPECT_EQ(work().run({"generate", "run/model", "--prompt", "sky", "--tokens", "3"}).code, 0);
  const Outcome gguf = work().run({"convert", "run/model", "chat.gguf"});
  EXPECT_EQ(gguf.code, 0) << gguf.err;
}

TEST_F(SftCommands, AKilledRunEndsAsIfUndisturbed) {
  const Words settings = {"train.steps=16", "checkpoint.every=1", "train.neftune=5",
                          "train.accumulate=2"};
  ASSERT_EQ(work().train("whole", settings).code, 0);
  Child child(work().path(), work().arguments("run", settings));
  while (child.running() && progress_of(work() / "run") < 5) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  child.send(SIGKILL);
  child.wait();
  const Outcome rest = work().run(joined(work().arguments("run", settings), {"--resume"}));
  ASSERT_EQ(rest.code, 0) << rest.err;
  EXPECT_THAT(rest.err, HasSubstr(" matches"));
  expect_same_run(work() / "run", work() / "whole", 16);
}

TEST_F(SftCommands, FrozenParametersStayAndSourcesMayBeGguf) {
  const Outcome frozen =
      work().train("run", {"train.freeze=[\"embedding.**\", \"layers.0.**\"]",
                           "data.template=chat.jinja", "data.add_tokens=[\"<|end|>\"]"});
  EXPECT_EQ(frozen.code, 3);
  EXPECT_THAT(frozen.err, HasSubstr("chat.jinja"));
  put(work() / "chat.jinja",
      "{% for m in messages %}{{ m.role }}: {{ m.content }}<|endoftext|>{% endfor %}{% if "
      "add_generation_prompt %}assistant: {% endif %}");
  const Outcome done = work().train(
      "run", {"train.freeze=[\"embedding.**\", \"layers.0.**\"]", "data.template=chat.jinja"});
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.err, HasSubstr("of them trained"));
  const auto diff = work().run({"ckpt", "diff", "base/model", "run/model", "--json"});
  EXPECT_THAT(diff.out, HasSubstr("layers.1"));
  ASSERT_EQ(work().run({"convert", "base/model", "base.gguf"}).code, 0);
  const Outcome from_file =
      work().train("second", {"model.from=base.gguf", "data.template=chat.jinja"});
  EXPECT_EQ(from_file.code, 0) << from_file.err;
}

TEST_F(SftCommands, ReadEveryLayoutAndMixThem) {
  put(work() / "alpaca.json",
      R"([{"instruction": "colour of coal", "input": "", "output": "black"}, {"instruction": "colour of snow", "input": "", "output": "white"},
      {"instruction": "colour of mud", "input": "", "output": "brown"}, {"instruction": "colour of sand", "input": "", "output": "yellow"}])");
  put(work() / "plain.csv",
      "prompt,completion\nsky is,blue\ngrass is,green\nsea is,blue\nnight is,black\n");
  const Outcome done =
      work().train("run", {R"(data.files=["chats.jsonl","alpaca.json","plain.csv"])",
                           "data.weights=[0.5,0.25,0.25]", "data.validation_fraction=0.3",
                           "data.caps=[20,0,0]"});
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.err, AllOf(HasSubstr("json: alpaca"), HasSubstr("csv: completion"),
                              HasSubstr("jsonl: messages")));
  const Outcome epochs = work().train("epochs", {"train.epochs=2", "data.packing=none"});
  ASSERT_EQ(epochs.code, 0) << epochs.err;
  EXPECT_THAT(content(work() / "epochs/recipe.toml"), Not(HasSubstr("steps = 8\n")));
}

TEST_F(SftCommands, ContinuePretrainingOnRowsOfText) {
  std::string rows;
  for (int i = 0; i < 40; ++i) {
    rows += "{\"text\": \"in the beginning was the word " + std::to_string(i) + "\"}\n";
  }
  put(work() / "texts.jsonl", rows);
  const Outcome done = work().train("run", {"kind=pretrain", "data.files=[\"texts.jsonl\"]",
                                            "data.template=", "train.sequence=32"});
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.err, HasSubstr("jsonl: text"));
  EXPECT_THAT(done.err, HasSubstr("<|endoftext|>»"));
}

TEST_F(SftCommands, NameWhatIsWrong) {
  put(work() / "bad.jsonl",
      some_chats(3) + "{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}]}\n");
  EXPECT_THAT(refused({"data.files=[\"bad.jsonl\"]"}, 3),
              AllOf(HasSubstr("bad.jsonl:4: "), HasSubstr("nothing of it is learnt")));
  const Outcome dropped = work().train("dropped", {"data.files=[\"bad.jsonl\"]", "data.policy=drop",
                                                   "data.validation_fraction=0.5"});
  EXPECT_THAT(dropped.err, HasSubstr("1 dropped: 1 nothing learnt (bad.jsonl:4: "));
  EXPECT_THAT(refused({"data.template="}, 2),
              HasSubstr("chats.jsonl:1: a conversation needs a chat template"));
  EXPECT_THAT(refused({"data.long=raise", "train.sequence=8"}, 3),
              HasSubstr("more than train.sequence + 1 = 9"));
  EXPECT_THAT(refused({"data.weights=[1,2]"}, 2), HasSubstr("data.weights: 2 weights for 1 files"));
  EXPECT_THAT(refused({"train.freeze=[\"layer.*\"]"}, 2),
              HasSubstr("freeze: no parameter matches 'layer.*'"));
  EXPECT_THAT(refused({"evaluate.sets=[\"more=chats.jsonl\"]"}, 2),
              HasSubstr("evaluate.sets: are plain texts, and this run reads rows"));
  EXPECT_THAT(refused({"data.fim_rate=0.5"}, 2), HasSubstr("has no tokens for filling in"));
  EXPECT_THAT(refused({"data.validation_fraction=0"}, 2), HasSubstr("nothing is held out"));
  put(work() / "pairs.jsonl", "{\"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": \"c\"}\n");
  EXPECT_THAT(refused({"data.files=[\"pairs.jsonl\"]"}, 2),
              HasSubstr("pairs.jsonl:1: holds a pair, which is no conversation"));
  EXPECT_THAT(refused({"kind=sft2"}, 2), HasSubstr("kind"));
}

TEST_F(SftCommands, DataIsCountedDividedAndConverted) {
  const Outcome stats = work().run({"data", "stats", "chats.jsonl", "--model", "base/model",
                                    "--template", "chatml", "--json", "--sequence", "8"});
  ASSERT_EQ(stats.code, 0) << stats.err;
  const auto json = nlohmann::json::parse(stats.out);
  EXPECT_EQ(json["rows"], 60);
  EXPECT_EQ(json["longer_than_sequence"], 60);
  EXPECT_GT(json["learnt"], 60);
  const Outcome plain =
      work().run({"data", "stats", "chats.jsonl", "--model", "base/model", "--template", "chatml"});
  EXPECT_THAT(plain.out, AllOf(HasSubstr("tokens a row:"), HasSubstr("█")));
  const Outcome tokens = work().run({"data", "tokenize", "chats.jsonl", "--model", "base/model",
                                     "--template", "chatml", "--out", "chats.tokens"});
  ASSERT_EQ(tokens.code, 0) << tokens.err;
  EXPECT_EQ(work().run({"data", "stats", "chats.tokens"}).code, 0);
  ASSERT_EQ(work()
                .run({"data", "convert", "chats.jsonl", "--to", "sharegpt", "--out", "share.jsonl"})
                .code,
            0);
  ASSERT_EQ(work()
                .run({"data", "convert", "share.jsonl", "--to", "messages", "--out", "back.jsonl"})
                .code,
            0);
  EXPECT_EQ(content(work() / "back.jsonl"), content(work() / "chats.jsonl"));
  const Outcome split = work().run({"data", "split", "chats.jsonl", "--fraction", "0.25", "--out",
                                    "a.jsonl", "--held-out", "b.jsonl"});
  ASSERT_EQ(split.code, 0) << split.err;
  EXPECT_EQ(
      lines_of(content(work() / "a.jsonl")).size() + lines_of(content(work() / "b.jsonl")).size(),
      60u);
  EXPECT_GT(lines_of(content(work() / "b.jsonl")).size(), 4u);
  const Outcome shown = work().run({"data", "show", "share.jsonl", "--model", "base/model"});
  EXPECT_THAT(shown.err, HasSubstr("no chat template"));
  EXPECT_THAT(work().run({"data", "convert", "chats.jsonl", "--to", "nothing", "--out", "x"}).err,
              HasSubstr("--to: there is no layout 'nothing'"));
}

TEST_F(SftCommands, EvaluationRecordsWhatAScoreDependsOn) {
  put(work() / "colours.toml", R"(name = "colours"
kind = "choice"
files = ["rows.jsonl"]
prompt = "{{ q }}"
choices = ["blue", "green"]
gold = "{{ gold }}"
shots = 1
)");
  std::string rows;
  for (int i = 0; i < 12; ++i) {
    rows += "{\"q\": \"sky " + std::to_string(i) + "\", \"gold\": " + std::to_string(i % 2) + "}\n";
  }
  put(work() / "rows.jsonl", rows);
  const Words arguments = {"eval",     "base/model", "--task", "colours.toml", "--text",
                           "text.txt", "--json",     "--out",  "results"};
  const Outcome done = work().run(arguments);
  ASSERT_EQ(done.code, 0) << done.err;
  const auto all = nlohmann::json::parse(done.out);
  const auto& record = all[0];
  EXPECT_EQ(record["task"], "colours");
  EXPECT_EQ(record["task_version"], 1);
  EXPECT_EQ(record["engine"], "ingot 0.1.0");
  EXPECT_EQ(record["dtype"], "f32");
  EXPECT_EQ(record["template_hash"], "");
  EXPECT_EQ(record["few_shot_hash"].get<std::string>().size(), 32u);
  EXPECT_EQ(record["tokenizer_hash"].get<std::string>().size(), 32u);
  EXPECT_EQ(record["items"], 12);
  EXPECT_TRUE(record["scores"].contains("acc_norm"));
  EXPECT_GT(record["scores"]["acc"]["stderr"], 0);
  EXPECT_GT(all[1]["scores"]["bits_per_byte"]["value"], 0);
  // Results that are there are not computed again, and a cut line is.
  std::string kept = content(work() / "results/colours.jsonl");
  kept.resize(kept.size() - 20);
  put(work() / "results/colours.jsonl", kept);
  EXPECT_EQ(work().run(arguments).out, done.out);
  const Outcome other = work().run(joined(arguments, {"--shots", "0"}));
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("holds results of another model, task or setting"));
  EXPECT_THAT(work().run({"eval", "base/model", "--task", "none"}).err,
              HasSubstr("--task none: there is no recipes/tasks/none.toml"));
  EXPECT_THAT(work().run({"eval", "base/model"}).err, HasSubstr("nothing to evaluate"));
  EXPECT_THAT(work().run({"eval", "base/model", "--task", "colours.toml", "--chat"}).err,
              HasSubstr("has no chat template"));
  const Outcome needle = work().run({"eval", "needle", "base/model"});
  EXPECT_EQ(needle.code, 2);
  EXPECT_THAT(needle.err, HasSubstr("has no room for needle and question"));
}

}  // namespace
}  // namespace ingot::testing
