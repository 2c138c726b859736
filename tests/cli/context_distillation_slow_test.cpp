#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <iostream>

#include "ingot/base/json_library.h"
#include "tests/cli/program.h"

// Context distillation (Askell et al. 2021, arXiv:2112.00861, section 2.2.2): a model that does as
// a text before the question says learns to do it without that text.
namespace ingot::testing {
namespace {

constexpr const char* context = "In capitals.\\n";

constexpr const char* base = R"(dtype = "f32"
[model]
width = 96
layers = 3
heads = 4
hidden = 256
context = 96
vocab = 512
[data]
files = ["text.txt"]
tokenizer = "tokenizer"
validation_fraction = 0.05
[train]
steps = 150
batch = 8
sequence = 64
[optim]
lr = 2e-3
[evaluate]
every = 0
[checkpoint]
every = 0
[sample]
tokens = 0
)";

constexpr const char* rows = R"(dtype = "f32"
[data]
packing = "none"
[train]
batch = 16
sequence = 64
[optim]
lr = 2e-3
[schedule]
kind = "cosine"
warmup = 20
[checkpoint]
every = 0
[sample]
tokens = 0
)";

std::string capitals(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::string row(const std::string& prompt, const std::string& completion) {
  return nlohmann::json{{"prompt", prompt}, {"completion", completion}}.dump() + "\n";
}

// The conversations of scripts/tiny_chats.sh as texts: bare, or with the context and in capitals.
std::string completions(const std::string& chats, bool bare, bool with_context) {
  std::string out;
  for (const std::string& line : lines_of(chats)) {
    const auto messages = nlohmann::json::parse(line)["messages"];
    const std::string question = messages[0]["content"].get<std::string>() + "\n";
    const std::string answer = messages[1]["content"];
    out += bare ? row(question, answer) : "";
    out += with_context ? row("In capitals.\n" + question, capitals(answer)) : "";
  }
  return out;
}

class ContextDistillation : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = no_program(); !reason.empty()) {
      GTEST_SKIP() << reason;
    }
    std::filesystem::create_directory(folder());
    const auto script = program().parent_path().parent_path().parent_path();
    const std::string command =
        (script / "scripts/tiny_chats.sh").string() + " > " + (folder() / "chats.jsonl").string();
    ASSERT_EQ(std::system(command.c_str()), 0);
    run({"data", "split", "chats.jsonl", "--fraction", "0.15", "--out", "train_chats.jsonl",
         "--held-out", "held_chats.jsonl"});
    const std::string learnt = content(folder() / "train_chats.jsonl");
    const std::string held = content(folder() / "held_chats.jsonl");
    put(folder() / "both.jsonl", completions(learnt, true, true));
    put(folder() / "train.jsonl", completions(learnt, true, false));
    put(folder() / "held.jsonl", completions(held, true, false));
    put(folder() / "held_with.jsonl", completions(held, false, true));
    put(folder() / "text.txt", some_text(20000) + completions(learnt, true, true));
    put(folder() / "base.toml", base);
    put(folder() / "rows.toml", rows);
  }
  std::filesystem::path folder() const { return place_ / "work"; }
  void run(const Words& arguments) const {
    const Outcome outcome = ingot(folder(), arguments);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  void train(const std::string& name, const Words& settings) const {
    Words arguments = {"train", "rows.toml", "--no-speed", "--run", name};
    for (const std::string& setting : settings) {
      arguments.insert(arguments.end(), {"--set", setting});
    }
    run(arguments);
  }
  // The share of a file's questions whose answers are in capitals.
  double share_in_capitals(const std::string& questions, const Words& model) const {
    std::string name = model.back() + ".of." + questions;
    std::replace(name.begin(), name.end(), '/', '.');
    run(joined(joined({"generate"}, model),
               {"--in", questions, "--out", name, "--tokens", "16", "--temperature", "0"}));
    double found = 0;
    const Words lines = lines_of(content(folder() / name));
    for (const std::string& line : lines) {
      const std::string answer = nlohmann::json::parse(line)["output"];
      found += !answer.empty() && answer == capitals(answer) ? 1 : 0;
    }
    return found / static_cast<double>(lines.size());
  }

 private:
  TemporaryFolder place_;
};

TEST_F(ContextDistillation, PutsWhatAContextAsksForIntoTheWeights) {
  run({"tokenizer", "train", "text.txt", "--vocab", "500", "--special", "<|endoftext|>", "--out",
       "tokenizer"});
  run({"train", "base.toml", "--no-speed", "--run", "base"});
  train("teacher", {"kind=sft", "model.from=base/model", "data.files=[\"both.jsonl\"]",
                    "data.validation_fraction=0.02", "train.epochs=20", "evaluate.every=100"});
  const double asked = share_in_capitals("held_with.jsonl", {"teacher/model"});
  const double before = share_in_capitals("held.jsonl", {"teacher/model"});
  const Words settings = {"kind=distill",
                          "model.from=teacher/model",
                          "data.files=[\"train.jsonl\"]",
                          "data.validation_files=[\"held.jsonl\"]",
                          "evaluate.every=50",
                          "peft.kind=lora",
                          std::string("distill.context=\"") + context + "\""};
  train("untrained", joined(settings, {"train.steps=1", "optim.lr=0", "schedule.warmup=0"}));
  train("student", joined(settings, {"train.epochs=25"}));
  const double after =
      share_in_capitals("held.jsonl", {"teacher/model", "--lora", "student/adapter"});
  const auto divergence = [&](const char* name) {  // nats a token: the loss is that alone
    const std::string line = logged(folder() / name, "validation_loss").back();
    return std::stod(line.substr(line.find(' ') + 1));
  };
  std::cout << "KL(with || without the context) of held-out answers " << divergence("untrained")
            << " to " << divergence("student") << " nats a token; in capitals with the context "
            << asked << ", without it " << before << " to " << after << '\n';
  EXPECT_GE(asked, 0.7);  // 0.81 measured
  EXPECT_LE(before, 0.1);
  EXPECT_LE(divergence("student"), 0.2 * divergence("untrained"));
  EXPECT_GE(after, 0.9 * asked);
}

}  // namespace
}  // namespace ingot::testing
