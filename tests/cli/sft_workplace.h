#pragma once

#include "tests/cli/program.h"

namespace ingot::testing {

// The tiny base model of fine-tuning tests: some thousand parameters, bytes and a few merges.
inline const char* const base_recipe = R"(dtype = "f32"
[model]
width = 32
layers = 2
heads = 2
hidden = 64
context = 64
vocab = 320
[data]
files = ["text.txt"]
tokenizer = "tokenizer"
validation_fraction = 0.1
[train]
steps = 8
batch = 4
sequence = 32
[evaluate]
every = 0
[checkpoint]
every = 0
[sample]
tokens = 0
)";

inline const char* const sft_recipe = R"(kind = "sft"
dtype = "f32"
[model]
from = "base/model"
[data]
files = ["chats.jsonl"]
template = "chatml"
validation_fraction = 0.2
[train]
steps = 8
batch = 2
sequence = 64
[optim]
lr = 3e-3
[evaluate]
every = 4
[checkpoint]
every = 0
[sample]
tokens = 0
)";

inline std::string some_chats(int rows = 60) {
  const Words things = {"sky", "grass", "snow", "coal", "blood", "sun"};
  const Words colours = {"blue", "green", "white", "black", "red", "yellow"};
  const Words questions = {"which colour has the ", "tell me the colour of the ",
                           "how does one paint the "};
  std::string out;
  for (int i = 0; i < rows; ++i) {
    const size_t thing = static_cast<size_t>(i) % things.size();
    out += R"({"messages": [{"role": "user", "content": ")" +
           questions[static_cast<size_t>(i) / 6 % 3] + things[thing] + " " + std::to_string(i) +
           R"("}, {"role": "assistant", "content": ")" + colours[thing] + R"("}]})" + "\n";
  }
  return out;
}

// A folder with a base model, chats.jsonl and sft.toml.
class SftWorkplace {
 public:
  SftWorkplace() {
    std::filesystem::create_directory(path());
    put(*this / "text.txt", some_text(20000));
    put(*this / "base.toml", base_recipe);
    put(*this / "sft.toml", sft_recipe);
    put(*this / "chats.jsonl", some_chats());
    const Outcome tokenizer = run({"tokenizer", "train", "text.txt", "--vocab", "300", "--special",
                                   "<|endoftext|>", "--out", "tokenizer"});
    if (tokenizer.code != 0) {
      throw std::runtime_error(tokenizer.err);
    }
    const Outcome base = train("base", {}, "base.toml");
    if (base.code != 0) {
      throw std::runtime_error(base.err);
    }
  }

  std::filesystem::path path() const { return folder_ / "work"; }
  std::filesystem::path operator/(const std::string& name) const { return path() / name; }
  Outcome run(const Words& arguments) const { return ingot(path(), arguments); }
  Words arguments(const std::string& run, const Words& settings,
                  const std::string& recipe = "sft.toml") const {
    Words out = {"train", recipe, "--no-speed", "--run", run};
    for (const std::string& setting : settings) {
      out.insert(out.end(), {"--set", setting});
    }
    return out;
  }
  Outcome train(const std::string& name, const Words& settings,
                const std::string& recipe = "sft.toml") const {
    return run(arguments(name, settings, recipe));
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace ingot::testing
