#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/cli/program.h"

// What a chat is for: a model that was trained on conversations heeds the system message, stops
// after its answer, and knows what was said two turns before.
namespace ingot::testing {
namespace {

constexpr const char* base = R"(dtype = "f32"
[model]
width = 64
layers = 2
heads = 4
hidden = 128
context = 128
vocab = 512
[data]
files = ["text.txt"]
tokenizer = "tokenizer"
validation_fraction = 0.05
[train]
steps = 60
batch = 8
sequence = 64
[optim]
lr = 3e-3
[evaluate]
every = 0
[checkpoint]
every = 0
[sample]
tokens = 0
)";

constexpr const char* sft = R"(kind = "sft"
dtype = "f32"
[model]
from = "base/model"
[data]
files = ["train.jsonl"]
validation_files = ["held.jsonl"]
template = "chatml"
[train]
epochs = 60
batch = 8
sequence = 128
[optim]
lr = 3e-3
[schedule]
kind = "cosine"
warmup = 20
[evaluate]
every = 0
[checkpoint]
every = 0
[sample]
tokens = 0
)";

struct Talk {
  std::string name, question, answer;
  bool loud = false;

  std::string said(std::string text) const {
    if (loud) {
      std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::toupper(c); });
    }
    return text;
  }
  std::string system() const { return loud ? "shout" : "speak"; }
  Words user() const { return {"i am " + name, question, "who am i"}; }
  Words assistant() const { return {said("hello"), said(answer), said(name)}; }

  std::string row() const {
    nlohmann::json messages = {{{"role", "system"}, {"content", system()}}};
    for (size_t i = 0; i < 3; ++i) {
      messages.push_back({{"role", "user"}, {"content", user()[i]}});
      messages.push_back({{"role", "assistant"}, {"content", assistant()[i]}});
    }
    return nlohmann::json{{"messages", messages}}.dump() + "\n";
  }
  std::string plain() const {
    std::string out = system() + "\n";
    for (size_t i = 0; i < 3; ++i) {
      out += user()[i] + "\n" + assistant()[i] + "\n";
    }
    return out;
  }
};

struct Talks {
  std::vector<Talk> trained, held_out;
};

// Every name with every question in both voices, in no order; of each name one talk is held out.
Talks all_talks() {
  const Words names = {"anna", "ben", "carl", "dora", "emil", "fred", "gina", "hugo",
                       "ida",  "jon", "kate", "liam", "mona", "nils", "olga", "paul"};
  const std::vector<std::pair<std::string, std::string>> questions = {
      {"how are you", "fine"},
      {"is it late", "no"},
      {"do you like tea", "yes"},
      {"what is two and two", "four"}};
  Talks out;
  for (size_t name = 0; name < names.size(); ++name) {
    for (size_t i = 0; i < 2 * questions.size(); ++i) {
      const auto& [question, answer] = questions[i / 2];
      const bool held = i == name % (2 * questions.size());
      (held ? out.held_out : out.trained).push_back({names[name], question, answer, i % 2 == 1});
    }
  }
  std::ranges::shuffle(out.trained, std::mt19937(1));
  return out;
}

TEST(ChatModel, HeedsTheSystemMessageStopsAndKnowsWhatWasSaidTwoTurnsBefore) {
  if (const std::string reason = no_program(); !reason.empty()) {
    GTEST_SKIP() << reason;
  }
  const Workplace work;
  const Talks talks = all_talks();
  std::string text, trained, held_out;
  for (const Talk& talk : talks.trained) {
    trained += talk.row();
  }
  for (const Talk& talk : talks.held_out) {
    held_out += talk.row();
  }
  std::mt19937 random(2);
  for (int i = 0; i < 1500; ++i) {
    text += talks.trained[random() % talks.trained.size()].plain();
  }
  put(work / "text.txt", text);
  put(work / "train.jsonl", trained);
  put(work / "held.jsonl", held_out);
  put(work / "base.toml", base);
  put(work / "sft.toml", sft);
  const auto done = [&](const Words& words) {
    const Outcome outcome = work.run(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.code == 0;
  };
  ASSERT_TRUE(done({"tokenizer", "train", "text.txt", "--vocab", "400", "--special",
                    "<|endoftext|>", "--out", "tokenizer"}));
  ASSERT_TRUE(done({"train", "base.toml", "--quiet", "--no-speed", "--run", "base"}));
  ASSERT_TRUE(done({"train", "sft.toml", "--quiet", "--no-speed", "--run", "sft"}));
  for (const Talk& talk : talks.held_out) {
    std::string input;
    for (const std::string& message : talk.user()) {
      input += message + "\n";
    }
    put(work / "input", input + "/quit\n");
    const std::string command = "cd '" + work.path().string() + "' && '" + program().string() +
                                "' chat sft/model --system " + talk.system() +
                                " --temperature 0 < input > output 2> errors";
    ASSERT_EQ(std::system(command.c_str()), 0) << content(work / "errors");
    EXPECT_EQ(lines_of(content(work / "output")), talk.assistant()) << talk.row();
  }
}

}  // namespace
}  // namespace ingot::testing
