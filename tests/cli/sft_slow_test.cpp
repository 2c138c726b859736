#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>

#include "tests/cli/program.h"

// What fine-tuning is for: a base model that continues text becomes one that answers questions it
// was not shown in these words, and that stops.
namespace ingot::testing {
namespace {

constexpr const char* base = R"(dtype = "f32"
[model]
width = 96
layers = 3
heads = 4
hidden = 256
context = 128
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
batch = 4
sequence = 128
[optim]
lr = 2e-3
[schedule]
kind = "cosine"
warmup = 20
[evaluate]
every = 20
[checkpoint]
every = 0
[sample]
tokens = 0
)";

constexpr const char* task = R"(name = "held"
kind = "generate"
files = ["held.jsonl"]
prompt = "{{ messages[0].content }}"
target = "{{ messages[1].content }}"
until = ["\n"]
max_tokens = 32
)";

std::string base_text(const std::string& chats) {
  std::string out = some_text(30000);
  for (const std::string& line : lines_of(chats)) {  // words of the questions, not their answers
    const auto row = nlohmann::json::parse(line);
    out += row["messages"][0]["content"].get<std::string>() + "\n";
  }
  return out;
}

nlohmann::json scores(const std::filesystem::path& folder, const Words& more) {
  const Outcome outcome = ingot(folder, joined({"eval", "--task", "held.toml", "--json"}, more));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return nlohmann::json::parse(outcome.out)[0]["scores"];
}

TEST(FineTuning, TeachesToAnswerQuestionsInOtherWordsAndToStop) {
  if (const std::string reason = no_program(); !reason.empty()) {
    GTEST_SKIP() << reason;
  }
  const TemporaryFolder place;
  const std::filesystem::path folder = place / "work";
  std::filesystem::create_directory(folder);
  const auto script = program().parent_path().parent_path().parent_path() / "scripts/tiny_chats.sh";
  ASSERT_EQ(std::system((script.string() + " > " + (folder / "chats.jsonl").string()).c_str()), 0);
  put(folder / "text.txt", base_text(content(folder / "chats.jsonl")));
  put(folder / "base.toml", base);
  put(folder / "sft.toml", sft);
  put(folder / "held.toml", task);
  const auto run = [&](const Words& arguments) {
    const Outcome outcome = ingot(folder, arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
  };
  run({"data", "split", "chats.jsonl", "--fraction", "0.15", "--out", "train.jsonl", "--held-out",
       "held.jsonl"});
  run({"tokenizer", "train", "text.txt", "--vocab", "500", "--special", "<|endoftext|>", "--out",
       "tokenizer"});
  run({"train", "base.toml", "--no-speed", "--run", "base"});
  run({"train", "sft.toml", "--no-speed", "--run", "sft"});

  const Words losses = logged(folder / "sft", "validation_loss");
  const auto value = [](const std::string& logged) {
    return std::stod(logged.substr(logged.find(' ') + 1));
  };
  const auto before = scores(folder, {"base/model"});
  const auto after = scores(folder, {"sft/model", "--chat"});
  std::cout << "held-out loss " << value(losses.front()) << " to " << value(losses.back())
            << "; exact match " << before["exact_match"]["value"] << " to "
            << after["exact_match"]["value"] << "; ended " << after["ended"]["value"] << '\n';
  EXPECT_LT(value(losses.back()), 0.3 * value(losses.front()));
  EXPECT_LE(before["exact_match"]["value"].get<double>(), 0.1);
  EXPECT_GE(after["exact_match"]["value"].get<double>(), 0.9);
  EXPECT_GE(after["ended"]["value"].get<double>(), 0.95);
}

}  // namespace
}  // namespace ingot::testing
