// Recipes that train adapters, preferences, reward models and students, run as their users run
// them.
#include "tests/cli/resume.h"
#include "tests/cli/sft_workplace.h"

namespace ingot::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Prompts whose better answer is the colour, the worse one a number.
std::string some_pairs(int rows = 48) {
  const Words things = {"sky", "grass", "snow", "coal", "blood", "sun"};
  const Words colours = {"blue", "green", "white", "black", "red", "yellow"};
  std::string out;
  for (int i = 0; i < rows; ++i) {
    const size_t thing = static_cast<size_t>(i) % things.size();
    out += R"({"prompt": "colour of )" + things[thing] + " " + std::to_string(i) +
           R"(: ", "chosen": ")" + colours[thing] + R"(", "rejected": ")" + std::to_string(7 * i) +
           R"("})" + "\n";
  }
  return out;
}

std::string some_labels(int rows = 48) {
  std::string out;
  for (int i = 0; i < rows; ++i) {
    out += R"({"prompt": "is )" + std::to_string(i) + R"( even? ", "completion": ")" +
           (i % 2 == 0 ? "yes" : "no") + R"(", "label": )" + (i % 3 != 0 ? "true" : "false") +
           "}\n";
  }
  return out;
}

inline const char* const pair_recipe = R"(kind = "dpo"
dtype = "f32"
[model]
from = "base/model"
[data]
files = ["pairs.jsonl"]
validation_fraction = 0.25
[train]
steps = 24
batch = 4
sequence = 64
[optim]
lr = 3e-3
[evaluate]
every = 12
[checkpoint]
every = 0
[sample]
tokens = 0
[peft]
kind = "lora"
)";

class PreferenceRecipes : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = no_program(); !reason.empty()) {
      GTEST_SKIP() << reason;
    }
    work_.emplace();
    put(work() / "pairs.jsonl", some_pairs());
    put(work() / "labels.jsonl", some_labels());
    put(work() / "pairs.toml", pair_recipe);
  }
  const SftWorkplace& work() const { return *work_; }
  Outcome train(const std::string& run, const Words& settings) const {
    return work().train(run, settings, "pairs.toml");
  }
  std::string refused(const Words& settings, int code) const {
    const Outcome outcome = train("refused", settings);
    EXPECT_EQ(outcome.code, code) << outcome.err;
    return outcome.err;
  }
  static double last(const Words& logged) {
    return std::stod(logged.back().substr(logged.back().find(' ') + 1));
  }
  std::string adapter(const std::string& run) const {
    return content(work() / run / "adapter/adapter_model.safetensors");
  }

 private:
  std::optional<SftWorkplace> work_;
};

TEST_F(PreferenceRecipes, EveryKindTrainsAnAdapterAndLogsWhatEveryoneWatches) {
  const std::map<std::string, Words> kinds = {
      {"dpo", {}},
      {"orpo", {"orpo.lambda=1"}},
      {"simpo", {}},
      {"cpo", {}},
      {"kto", {"data.files=[\"labels.jsonl\", \"pairs.jsonl\"]"}},
      {"reward", {}}};
  for (const auto& [kind, more] : kinds) {
    const Outcome done = train(kind, joined({"kind=\"" + kind + "\""}, more));
    ASSERT_EQ(done.code, 0) << kind << " " << done.err;
    EXPECT_THAT(done.err, HasSubstr("lora on 14 of ")) << kind;
    for (const char* metric : {"chosen_reward", "rejected_reward", "margin", "accuracy"}) {
      EXPECT_EQ(logged(work() / kind, metric).size(), 24U) << kind << " " << metric;
      EXPECT_FALSE(logged(work() / kind, std::string("validation_") + metric).empty()) << kind;
    }
    if (kind == "dpo" || kind == "kto") {
      EXPECT_EQ(logged(work() / kind, "kl").size(), 24U) << kind;
    }
    EXPECT_FALSE(adapter(kind).empty()) << kind;
  }
  EXPECT_GE(last(logged(work() / "dpo", "validation_accuracy")), 0.7);
  EXPECT_NEAR(std::stod(logged(work() / "dpo", "loss").front().substr(2)), std::log(2.0), 1e-6);
  EXPECT_TRUE(std::filesystem::exists(work() / "reward/adapter/score.safetensors"));
}

TEST_F(PreferenceRecipes, OfAllWeightsCompareWithWhatTheReferenceGaveBefore) {
  const Words whole = {"peft.kind=\"\"", "optim.lr=1e-3"};
  const Outcome done = train("run", whole);
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.err, HasSubstr("reference: log-probabilities of "));
  EXPECT_NEAR(std::stod(logged(work() / "run", "loss").front().substr(2)), std::log(2.0), 1e-5);
  EXPECT_TRUE(std::filesystem::exists(work() / "run/reference.safetensors"));
  EXPECT_FALSE(model_bytes(work() / "run").empty());
  const Outcome again = work().run({"replay", "run", "--step", "3"});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("the same, bit for bit"));
  // The first step is that of a run whose reference is computed beside it: the adapter starts as
  // the model itself.
  ASSERT_EQ(train("lora", {"train.steps=1"}).code, 0);
  EXPECT_EQ(logged(work() / "lora", "chosen_logp").front(),
            logged(work() / "run", "chosen_logp").front());
}

TEST_F(PreferenceRecipes, AKilledRunEndsAsIfUndisturbed) {
  for (const char* kind : {"dpo", "kto"}) {
    for (const char* peft : {"lora", ""}) {
      const std::string name = std::string(kind) + peft;
      Words settings = {"kind=\"" + std::string(kind) + "\"",
                        "peft.kind=\"" + std::string(peft) + "\"", "train.steps=10",
                        "checkpoint.every=1", "train.accumulate=2"};
      if (*peft != 0) {
        settings.push_back("peft.dropout=0.1");
      }
      ASSERT_EQ(train("whole" + name, settings).code, 0) << name;
      Child child(work().path(), work().arguments(name, settings, "pairs.toml"));
      while (child.running() && progress_of(work() / name) < 4) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      child.send(SIGKILL);
      child.wait();
      const Outcome rest =
          work().run(joined(work().arguments(name, settings, "pairs.toml"), {"--resume"}));
      ASSERT_EQ(rest.code, 0) << name << rest.err;
      for (const char* field : {"loss", "grad_norm", "margin", "validation_loss"}) {
        EXPECT_EQ(logged(work() / name, field), logged(work() / ("whole" + name), field)) << name;
      }
      const std::string made = *peft != 0 ? adapter(name) : model_bytes(work() / name);
      EXPECT_FALSE(made.empty());
      EXPECT_EQ(made,
                *peft != 0 ? adapter("whole" + name) : model_bytes(work() / ("whole" + name)));
    }
  }
}

TEST_F(PreferenceRecipes, AdaptersOfFineTuningGoOntoTheBaseAndIntoIt) {
  put(work() / "lora.toml", std::string(sft_recipe) + "[peft]\nkind = \"lora\"\n");
  // A base that knows the template's tokens; it is what is adapted.
  const Words settings = {"data.template=chat.jinja", "train.steps=24"};
  put(work() / "chat.jinja",
      "{% for m in messages %}{{ m['content'] }}{% if m['role'] == 'assistant' %}{{ eos_token }}"
      "{% endif %}{{ '\\n' }}{% endfor %}");
  for (const std::string base : {"as_is", "int8", "nf4"}) {
    const Outcome done =
        work().train(base, joined(settings, {"peft.base=\"" + base + "\""}), "lora.toml");
    ASSERT_EQ(done.code, 0) << base << " " << done.err;
    const Words losses = logged(work() / base, "validation_loss");
    EXPECT_LT(last(losses), last({losses.front()})) << base;
  }
  const Words words = {"--ids", "--prompt", "3,4,5", "--tokens", "8", "--temperature", "0"};
  const Outcome with =
      work().run(joined({"generate", "base/model", "--lora", "as_is/adapter"}, words));
  ASSERT_EQ(with.code, 0) << with.err;
  ASSERT_EQ(work().run({"merge", "base/model", "merged", "--lora", "as_is/adapter"}).code, 0);
  EXPECT_EQ(work().run(joined({"generate", "merged"}, words)).out, with.out);
  // Straight over the blocks of a file.
  ASSERT_EQ(work().run({"quantize", "base/model", "base.gguf", "--type", "Q8_0"}).code, 0);
  const Outcome file = work().train(
      "file", joined(settings, {"model.from=\"base.gguf\"", "peft.base=\"file\""}), "lora.toml");
  ASSERT_EQ(file.code, 0) << file.err;
  EXPECT_NEAR(last(logged(work() / "file", "loss")), last(logged(work() / "as_is", "loss")), 0.05);
}

TEST_F(PreferenceRecipes, AddedTokensComeWithABaseOfTheAdapter) {
  put(work() / "lora.toml", std::string(sft_recipe) + "[peft]\nkind = \"lora\"\n");
  for (const std::string base : {"as_is", "nf4"}) {
    SCOPED_TRACE(base);
    const Outcome done =
        work().train(base, {"train.steps=40", "peft.base=\"" + base + "\""}, "lora.toml");
    ASSERT_EQ(done.code, 0) << done.err;
    EXPECT_THAT(done.err, HasSubstr(" tokens added, from id 290 on"));
    const std::string grown = base + "/base", adapter = base + "/adapter";
    EXPECT_THAT(done.out, HasSubstr("`ingot generate " + grown + " --lora " + adapter + "`"));
    const Words words = {"--chat",        "--prompt", "which colour has the sky", "--tokens", "8",
                         "--temperature", "0"};
    const Outcome with = work().run(joined({"generate", grown, "--lora", adapter}, words));
    ASSERT_EQ(with.code, 0) << with.err;
    const Outcome merged = work().run({"merge", grown, base + "_merged", "--lora", adapter});
    ASSERT_EQ(merged.code, 0) << merged.err;
    EXPECT_THAT(merged.err, Not(HasSubstr("warning")));
    EXPECT_EQ(work().run(joined({"generate", base + "_merged"}, words)).out, with.out);
    const Outcome other = work().run({"merge", "base/model", "other", "--lora", adapter});
    EXPECT_NE(other.code, 0);
    EXPECT_THAT(other.err, HasSubstr(grown));
  }
}

TEST_F(PreferenceRecipes, MergeWarnsOfTokensThatTheBaseDoesNotHave) {
  ASSERT_EQ(train("plain", {"train.steps=1"}).code, 0);
  const Outcome plain = work().run({"merge", "base/model", "also", "--lora", "plain/adapter"});
  ASSERT_EQ(plain.code, 0) << plain.err;
  EXPECT_THAT(plain.err, Not(HasSubstr("warning")));
  // As of an adapter from elsewhere, which does not say what its base was.
  put(work() / "lora.toml", std::string(sft_recipe) + "[peft]\nkind = \"lora\"\n");
  ASSERT_EQ(work().train("chat", {"train.steps=1"}, "lora.toml").code, 0);
  std::filesystem::copy_file(work() / "chat/adapter/tokenizer.json",
                             work() / "plain/adapter/tokenizer.json",
                             std::filesystem::copy_options::overwrite_existing);
  const Outcome merged = work().run({"merge", "base/model", "merged", "--lora", "plain/adapter"});
  ASSERT_EQ(merged.code, 0) << merged.err;
  EXPECT_THAT(merged.err, HasSubstr("warning: its tokenizer has 292 tokens, the base has 290"));
}

TEST_F(PreferenceRecipes, AStudentLearnsFromATeacherAndFromItselfWithAContext) {
  put(work() / "distill.toml",
      "kind = \"distill\"\n" +
          std::string(sft_recipe).substr(std::string(sft_recipe).find("dtype")));
  put(work() / "chat.jinja",
      "{% for m in messages %}{{ m['content'] }}{% if m['role'] == 'assistant' %}{{ eos_token }}"
      "{% endif %}{{ '\\n' }}{% endfor %}");
  const Words shared = {"data.template=chat.jinja", "data.packing=none", "train.steps=12"};
  const Outcome own = work().train(
      "own", joined(shared, {"distill.teacher=\"base/model\"", "optim.lr=0"}), "distill.toml");
  ASSERT_EQ(own.code, 0) << own.err;
  EXPECT_LT(std::abs(last(logged(work() / "own", "divergence"))), 1e-6);
  const Words context = {"peft.kind=\"lora\"", "distill.context=\"In the beginning was light. \""};
  const Outcome with = work().train("context", joined(shared, context), "distill.toml");
  ASSERT_EQ(with.code, 0) << with.err;
  const Words divergence = logged(work() / "context", "divergence");
  EXPECT_GT(last({divergence.front()}), 1e-5);  // 3.8e-5 measured; the same text gives < 1e-6
  EXPECT_LT(last(divergence), last({divergence.front()}));
  const Outcome on_policy =
      work().train("policy",
                   joined(shared, joined(context, {"distill.on_policy=1", "distill.answer_tokens=8",
                                                   "train.steps=3", "distill.beta=0.5"})),
                   "distill.toml");
  ASSERT_EQ(on_policy.code, 0) << on_policy.err;
}

TEST_F(PreferenceRecipes, AStudentIsFineTunedOnWhatATeacherWrote) {
  put(work() / "sft.toml", sft_recipe);
  ASSERT_EQ(work().train("teacher", {"train.steps=400", "train.batch=8"}).code, 0);
  const Outcome wrote =
      work().run({"generate", "teacher/model", "--in", "chats.jsonl", "--out", "answers.jsonl",
                  "--tokens", "12", "--temperature", "0", "--json"});
  ASSERT_EQ(wrote.code, 0) << wrote.err;
  EXPECT_EQ(nlohmann::json::parse(wrote.out)["rows"], 60);
  int64_t whole = 0;
  std::map<std::string, std::string> answers;
  for (const std::string& line : lines_of(content(work() / "answers.jsonl"))) {
    const auto row = nlohmann::json::parse(line);
    const bool usable = row["finish"] == "stop" && row["output"] != "";
    whole += usable ? 1 : 0;
    if (usable) {
      answers[row["input"]["messages"][0]["content"]] = row["output"];
    }
  }
  ASSERT_GT(whole, 10);
  const Outcome converted = work().run({"data", "convert", "answers.jsonl", "--to", "messages",
                                        "--policy", "drop", "--out", "written.jsonl"});
  ASSERT_EQ(converted.code, 0) << converted.err;
  const Words rows = lines_of(content(work() / "written.jsonl"));
  EXPECT_EQ(static_cast<int64_t>(rows.size()), whole);
  for (const std::string& line : rows) {
    const auto messages = nlohmann::json::parse(line)["messages"];
    ASSERT_EQ(messages.size(), 2u) << line;
    EXPECT_EQ(messages[1]["content"], answers.at(messages[0]["content"]));
  }
  const Outcome student = work().train(
      "student", {"data.files=[\"answers.jsonl\"]", "data.policy=drop", "train.steps=24"});
  ASSERT_EQ(student.code, 0) << student.err;
  const Words losses = logged(work() / "student", "validation_loss");
  EXPECT_LT(last(losses), last({losses.front()}));
}

TEST_F(PreferenceRecipes, AskATeacherOnceForAllRuns) {
  put(work() / "distill.toml",
      "kind = \"distill\"\n" +
          std::string(sft_recipe).substr(std::string(sft_recipe).find("dtype")));
  put(work() / "chat.jinja",
      "{% for m in messages %}{{ m['content'] }}{{ eos_token }}{% endfor %}");
  const Words shared = {"data.template=chat.jinja",
                        "data.packing=none",
                        "train.steps=12",
                        "distill.teacher=\"base/model\"",
                        "distill.top_k=8",
                        "peft.kind=\"lora\"",
                        "seed=7"};
  const Words cached = joined(shared, {"distill.cache=\"answers\""});
  ASSERT_EQ(work().train("live", shared, "distill.toml").code, 0);
  const Outcome first = work().train("first", cached, "distill.toml");
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.err, HasSubstr("teacher: 0 rows are in answers"));
  EXPECT_THAT(first.err, HasSubstr("teacher: base/model is read"));
  const Outcome second = work().train("second", cached, "distill.toml");
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_THAT(second.err, Not(HasSubstr("is read")));
  for (const char* run : {"first", "second"}) {
    const Words live = logged(work() / "live", "loss");
    const Words found = logged(work() / run, "loss");
    ASSERT_EQ(found.size(), live.size()) << run;
    for (size_t i = 0; i < live.size(); ++i) {
      EXPECT_NEAR(last({found[i]}), last({live[i]}), 1e-5) << run << " " << live[i];
    }
  }
  const auto refuses = [&](const Words& settings, const std::string& message) {
    const Outcome outcome = work().train("refused", joined(cached, settings), "distill.toml");
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(message));
  };
  refuses({"distill.top_k=4"}, "holds answers of another teacher.top_k: 8, this run's is 4");
  refuses({"distill.top_k=0"}, "distill.cache: keeps the teacher's likeliest tokens");
  refuses({"distill.on_policy=0.5"}, "distill.cache: answers that the student writes are new");
}

TEST_F(PreferenceRecipes, SayWhatTheyCannotUse) {
  EXPECT_THAT(refused({"peft.targets=[\"w_q\"]"}, 2),
              HasSubstr("peft.targets: 'w_q' matches none of the "));
  EXPECT_THAT(refused({"data.files=[\"labels.jsonl\"]"}, 2),
              HasSubstr("labels.jsonl:1: kind = \"dpo\" reads pairs of a chosen and a rejected "
                        "answer; this row is label"));
  put(work() / "same.jsonl",
      some_pairs(3) + R"({"prompt": "a", "chosen": "b", "rejected": "b"})" + "\n");
  EXPECT_THAT(refused({"data.files=[\"same.jsonl\"]"}, 3), HasSubstr("same.jsonl:4: "));
  EXPECT_THAT(refused({"train.sequence=8", "data.long=raise"}, 3),
              AllOf(HasSubstr("pairs.jsonl:1 has "), HasSubstr("train.sequence is 8")));
  EXPECT_THAT(refused({"model.from=\"\""}, 2), HasSubstr("data.tokenizer"));
  EXPECT_THAT(refused({"peft.base=\"file\""}, 2),
              HasSubstr("peft.base: \"file\" decodes the blocks of a GGUF file"));
  EXPECT_THAT(refused({"products=fp8", "peft.base=nf4"}, 2),
              HasSubstr("not weights kept as peft.base = \"nf4\""));
  EXPECT_THAT(refused({"deterministic=\"invariant\""}, 2),
              HasSubstr("kind = \"dpo\" compares rows; choose \"layout\""));
  EXPECT_THAT(refused({"kind=\"distill\""}, 2), HasSubstr("distill.teacher: empty"));
  EXPECT_THAT(refused({"kind=\"kto\"", "train.accumulate=4"}, 2),
              HasSubstr("kto estimates its reference point in every micro-batch"));
}

TEST_F(PreferenceRecipes, OverExpertsSayThatTheirRoutersHaveNoLosses) {
  const Outcome done = train(
      "sparse", {"peft.kind=\"\"", "train.steps=2", "model.moe.experts=4", "evaluate.every=0"});
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.err, HasSubstr("dpo: the routers' losses and corrections are of kinds"));
  EXPECT_TRUE(logged(work() / "sparse", "expert_load_max_over_mean").empty());
}

TEST_F(PreferenceRecipes, ArePlannedWithoutAStep) {
  for (const char* kind : {"dpo", "kto", "reward"}) {
    const Outcome plan =
        work().run({"plan", "pairs.toml", "--json", "--set", "kind=\"" + std::string(kind) + "\"",
                    "--set", "peft.base=\"nf4\""});
    ASSERT_EQ(plan.code, 0) << kind << plan.err;
    EXPECT_GT(nlohmann::json::parse(plan.out)["memory"]["train"]["peak"].get<int64_t>(), 0);
  }
}

}  // namespace
}  // namespace ingot::testing
