#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>

#include <functional>

#include "tests/cli/program.h"

namespace ingot::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// What users get wrong: each must end with one line that says what to do, and the right exit code.
class BadInput : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = no_program(); !reason.empty()) {
      GTEST_SKIP() << reason;
    }
  }
  Workplace work;

  void expect_refused(const Words& arguments, int code, const Words& parts,
                      std::optional<rlim_t> largest_file = std::nullopt) {
    SCOPED_TRACE(::testing::PrintToString(arguments));
    const Outcome outcome = work.run(arguments, largest_file);
    EXPECT_EQ(outcome.code, code) << "signal " << outcome.signal;
    Words said = lines_of(outcome.err);
    std::erase_if(said, [](const std::string& line) { return line.starts_with("train "); });
    ASSERT_EQ(said.size(), 1u) << outcome.err;  // beside the progress that a slow machine shows
    EXPECT_THAT(said[0], StartsWith("ingot: "));
    EXPECT_THAT(outcome.err, Not(HasSubstr("unexpected: ")));
    for (const std::string& part : parts) {
      EXPECT_THAT(outcome.err, HasSubstr(part));
    }
  }
  // A recipe with one key changed, and what must be said of it. Nothing may be begun.
  void expect_setting_refused(const std::string& setting, int code, const Words& parts) {
    expect_refused(work.train("new", {"--set", setting}), code, parts);
    EXPECT_FALSE(fs::exists(work / "new"));
  }
  void train(const std::string& run, const Words& more = {}) {
    const Outcome outcome = work.run(work.train(run, more));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
};

TEST_F(BadInput, CommandsAndFlags) {
  expect_refused({}, 2, {"subcommand is required"});
  expect_refused({"trian", "tiny.toml"}, 2, {"trian: no such command; the nearest is train"});
  expect_refused({"train", "tiny.toml", "--rezume"}, 2, {"--rezume"});
  expect_refused({"train"}, 2, {"no recipe given", "recipes/kjv.toml"});
  expect_refused({"train", "tiny.toml", "more.toml"}, 2, {"more.toml"});
  expect_refused({"train", "tiny.toml", "--set"}, 2, {"--set"});
  expect_refused({"train", "tiny.toml", "--set", "steps"}, 2, {"write --set steps=VALUE"});
  expect_refused({"plan"}, 2, {"recipe is required"});
}

TEST_F(BadInput, RecipesThatCannotBeRead) {
  expect_refused({"train", "absent.toml"}, 3, {"absent.toml: ", "No such file"});
  expect_refused({"train", "."}, 3, {"Is a directory"});
  put(work / "broken.toml", "steps = = 3\n");
  expect_refused({"train", "broken.toml"}, 2, {"broken.toml:1:", "not valid TOML"});
  put(work / "broken.toml", std::string("\x00\xff\xfe[[[", 6));
  expect_refused({"train", "broken.toml"}, 2, {"broken.toml:1:", "not valid TOML"});
  put(work / "typo.toml", "[model]\nwidht = 16\n");
  expect_refused({"train", "typo.toml"}, 2,
                 {"typo.toml", "model.widht: no such key", "the nearest is model.width"});
  put(work / "type.toml", "[model]\nwidth = \"wide\"\n");
  expect_refused({"train", "type.toml"}, 2, {"model.width: wrong type", "integer", "\"wide\""});
  put(work / "range.toml", "[model]\ndropout = 1.5\n");
  expect_refused({"train", "range.toml"}, 2, {"model.dropout: out of range", "1.5"});
}

TEST_F(BadInput, SettingsOutOfRangeOrOfAnotherType) {
  expect_setting_refused("model.widht=3", 2, {"model.widht", "the nearest is model.width"});
  expect_setting_refused("model.width=wide", 2, {"model.width", "wrong type"});
  expect_setting_refused("model.width=0", 2, {"model.width", "out of range", "at least 1"});
  expect_setting_refused("optim.lr=nan", 2, {"optim.lr"});
  expect_setting_refused("optim.lr=-1", 2, {"optim.lr", "out of range"});
  expect_setting_refused("train.steps=99999999999999999999", 2, {"train.steps"});
  expect_setting_refused("optim.kind=adamm", 2, {"optim.kind", "adamw"});
  expect_setting_refused("schedule.kind=cosin", 2, {"schedule.kind", "cosine"});
  expect_setting_refused("dtype=fp32", 2, {"dtype", "f32"});
  expect_setting_refused("optim.momentum=0.9", 2, {"optim.momentum", "no such key"});
}

TEST_F(BadInput, SettingsThatContradictEachOther) {
  expect_setting_refused("train.sequence=17", 2, {"train.sequence", "17", "model.context is 16"});
  expect_setting_refused("model.heads=3", 2, {"heads", "width is 16"});
  expect_setting_refused("train.accumulate=3", 2, {"train.accumulate", "batch is 4"});
  expect_setting_refused("schedule.warmup=7", 2, {"warm-up is longer than the run", "7", "6"});
  expect_setting_refused("model.vocab=100", 2, {"model.vocab", "256"});
  expect_setting_refused("sample.prompt=longer than sixteen bytes", 2, {"sample.prompt", "16"});
  expect_setting_refused("optim.groups=[\"nothing.** lr=2\"]", 2, {"nothing.**"});
  expect_setting_refused("optim.groups=[\"embedding.** speed=2\"]", 2, {"speed=2"});
  expect_setting_refused("data.validation_fraction=0", 2, {"nothing is held out"});
}

TEST_F(BadInput, TextsThatCannotBeTrainedOn) {
  put(work / "empty.txt", "");
  put(work / "short.txt", "short");
  expect_setting_refused("data.files=[\"absent.txt\"]", 3, {"absent.txt", "No such file"});
  expect_setting_refused("data.files=[\".\"]", 3, {"Is a directory"});
  expect_setting_refused("data.files=[\"empty.txt\"]", 3, {"empty.txt: the file is empty"});
  expect_setting_refused("data.files=[\"short.txt\"]", 3,
                         {"short.txt", "shorter than one sequence", "needed are 17"});
  expect_setting_refused("data.files=[]", 2, {"no text files"});
  expect_setting_refused("data.validation_files=[\"absent.txt\"]", 3, {"absent.txt"});
  put(work / "byte.txt", "a");
  expect_setting_refused("data.validation_files=[\"byte.txt\"]", 2, {"data.validation_files"});
}

TEST_F(BadInput, RunFolders) {
  train("run");
  const std::string log = content(work / "run/log.jsonl");
  expect_refused(work.train("run"), 2, {"run: holds a run already; pass --resume"});
  EXPECT_EQ(content(work / "run/log.jsonl"), log);
  expect_refused(work.train("fresh", {"--resume"}), 3, {"fresh/checkpoints: no checkpoint"});
  EXPECT_FALSE(fs::exists(work / "fresh"));
  expect_refused(work.train("text.txt/run"), 3, {"text.txt/run", "Not a directory"});
  expect_refused(work.train("text.txt"), 3, {"text.txt"});
}

TEST_F(BadInput, ResumingWithAnotherRecipe) {
  train("run");
  expect_refused(work.train("run", {"--resume", "--set", "optim.lr=1", "--set", "seed=9"}), 2,
                 {"the recipe changed", "seed was 1, is 9", "optim.lr was 0.001, is 1",
                  "may change: ", "checkpoint.every", "sample.tokens"});
  expect_refused(work.train("run", {"--resume", "--set", "optim.kind=sgd"}), 2,
                 {"optim.kind was \"adamw\", is \"sgd\""});
  put(work / "other.txt", some_text(5000));
  expect_refused(work.train("run", {"--resume", "--set", "data.files=[\"other.txt\"]"}), 2,
                 {"the training text changed"});
  // A text that only moved is the same text.
  fs::rename(work / "text.txt", work / "moved.txt");
  train("run", {"--resume", "--set", "data.files=[\"moved.txt\"]"});
}

TEST_F(BadInput, ACheckpointOfAnotherModel) {
  train("run");
  train("other", {"--set", "model.width=32"});
  fs::remove_all(work / "run/checkpoints");
  fs::rename(work / "other/checkpoints", work / "run/checkpoints");
  expect_refused(work.train("run", {"--resume"}), 2, {"model.width was 32, is 16"});
}

// Damages a file of a checkpoint so that its size changes, or so that it does not.
void truncate_half(const fs::path& file) { fs::resize_file(file, fs::file_size(file) / 2); }
void flip_a_bit(const fs::path& file) {
  std::string bytes = content(file);
  bytes[bytes.size() * 3 / 4] = static_cast<char>(bytes[bytes.size() * 3 / 4] ^ 4);
  put(file, bytes);
}

TEST_F(BadInput, DamagedCheckpoints) {
  train("whole");
  const std::string model = model_bytes(work / "whole");
  using Damage = void (*)(const fs::path&);
  for (const Damage damage : {Damage(truncate_half), Damage(flip_a_bit)}) {
    for (const char* file : {"parameters.safetensors", "optimizer.safetensors", "manifest.json"}) {
      SCOPED_TRACE(file);
      fs::remove_all(work / "run");
      fs::copy(work / "whole", work / "run", fs::copy_options::recursive);
      fs::remove_all(work / "run/model");
      // Only the newest: the one before takes its place, and the run ends as it would have.
      damage(work / "run/checkpoints/step-00000006" / file);
      const Outcome resumed = work.run(work.train("run", {"--resume"}));
      EXPECT_EQ(resumed.code, 0) << resumed.err;
      EXPECT_THAT(resumed.err, StartsWith("warning: passing over a damaged checkpoint: "));
      EXPECT_THAT(resumed.err, HasSubstr("step-00000006"));
      EXPECT_EQ(lines_of(resumed.err).size(), 1u) << resumed.err;
      EXPECT_EQ(model_bytes(work / "run"), model);
      EXPECT_EQ(logged(work / "run", "loss"), logged(work / "whole", "loss"));

      // All of them.
      for (const auto& entry : fs::directory_iterator(work / "run/checkpoints")) {
        damage(entry.path() / file);
      }
      const Outcome refused = work.run(work.train("run", {"--resume"}));
      EXPECT_EQ(refused.code, 3) << refused.err;
      const Words lines = lines_of(refused.err);
      ASSERT_EQ(lines.size(), 3u) << refused.err;  // a warning for each, and why nothing is left
      EXPECT_THAT(lines[2], StartsWith("ingot: run/checkpoints: no checkpoint to continue from "
                                       "that is undamaged"));
    }
  }
}

TEST_F(BadInput, AFullDiskAtTheStart) {
  expect_refused(work.train("run"), 3, {"while saving the checkpoint of step 0", "File too large"},
                 40000);
  EXPECT_TRUE(fs::is_empty(work / "run/checkpoints"));
  train("run");  // with room, the same command goes on
}

TEST_F(BadInput, AFullDiskInTheMiddleLosesNothing) {
  const Words settings = {"--set", "train.steps=700",     "--set", "evaluate.every=0",
                          "--set", "checkpoint.every=100"};
  train("whole", settings);
  const rlim_t largest = 110000;  // above a checkpoint's files, below the whole log
  ASSERT_GT(fs::file_size(work / "whole/log.jsonl"), largest);
  expect_refused(work.train("run", settings), 3,
                 {"run/", ".jsonl: a line could not be written; is the disk full?"}, largest);
  train("run", joined(settings, {"--resume"}));
  EXPECT_EQ(model_bytes(work / "run"), model_bytes(work / "whole"));
  EXPECT_EQ(logged(work / "run", "loss"), logged(work / "whole", "loss"));
}

TEST_F(BadInput, ADiskThatIsTooSmallForTheCheckpoints) {
  fs::create_directory(work / "small");
  if (::mount("none", (work / "small").c_str(), "tmpfs", 0, "size=300k") != 0) {
    GTEST_SKIP() << "needs the right to mount a small file system";
  }
  expect_refused(work.train("small/run"), 3, {"not enough space", "free"});
  ::umount((work / "small").c_str());
}

TEST_F(BadInput, OutputThatCannotBeWritten) {
  if (!fs::exists("/dev/full")) {
    GTEST_SKIP() << "needs /dev/full";
  }
  for (const Words& arguments : std::vector<Words>{work.train("run", {"--json"}),
                                                   {"plan", "tiny.toml", "--json"},
                                                   {"plan", "tiny.toml"},
                                                   {"train", "--keys"},
                                                   {"doctor", "--no-speed"},
                                                   {"generate", "run/model", "--tokens", "3"}}) {
    SCOPED_TRACE(::testing::PrintToString(arguments));
    const Outcome outcome = Child(work.path(), arguments, std::nullopt, "/dev/full").wait();
    EXPECT_EQ(outcome.code, 3);
    // After the progress of what took longer than two seconds.
    EXPECT_THAT(lines_of(outcome.err).back(), StartsWith("ingot: standard output: "));
  }
  EXPECT_FALSE(model_bytes(work / "run").empty());  // the run itself is whole
}

TEST_F(BadInput, ALearningRateThatIsTooHigh) {
  const Words settings = {"--set", "optim.lr=1e20", "--set", "schedule.kind=constant"};
  expect_refused(work.train("run", settings), 4,
                 {"step 2: the loss is ", "nothing was updated", "lower the learning rate"});
  EXPECT_EQ(logged(work / "run", "loss").size(), 1u);
  expect_refused(work.train("run", joined(settings, {"--resume"})), 4, {"step 2: the loss is "});
  EXPECT_EQ(logged(work / "run", "loss").size(), 1u);
}

TEST_F(BadInput, ModelsAndPromptsOfGenerate) {
  expect_refused({"generate", "absent"}, 3, {"absent", "No such file"});
  expect_refused({"generate", "tiny.toml"}, 3, {"tiny.toml"});
  train("run");
  const auto generate = [](const Words& more) { return joined({"generate", "run/model"}, more); };
  expect_refused(generate({"--ids", "--prompt", "1,x"}), 2, {"'x' is not a token id"});
  expect_refused(generate({"--ids", "--prompt", "1,,2"}), 2, {"'' is not a token id"});
  expect_refused(generate({"--ids", "--prompt", "-1"}), 2, {"'-1' is not a token id"});
  expect_refused(generate({"--ids", "--prompt", "1,256"}), 2,
                 {"token 256 is outside the model's vocabulary of 256"});
  expect_refused(generate({"--temperature", "-1"}), 2, {"--temperature", "at least 0"});
  expect_refused(generate({"--top-p", "1.5"}), 2, {"--top-p", "0 to 1"});
  expect_refused(generate({"--tokens", "many"}), 2, {"--tokens", "whole number"});
  expect_refused(generate({"--tokens", "2.5"}), 2, {"--tokens", "whole number"});
  expect_refused(generate({"--seed", "99999999999999999999"}), 2, {"--seed", "below 2^63"});
  expect_refused(generate({"--dtype", "f8"}), 2, {"--dtype"});
  expect_refused(generate({"--prompt", "longer than the context of sixteen"}), 2,
                 {"longer than the model's context", "16"});

  truncate_half(work / "run/model/model.safetensors");
  expect_refused(generate({}), 3, {"model.safetensors"});
  put(work / "run/model/model.safetensors", "rubbish");
  expect_refused(generate({}), 3, {"model.safetensors"});
  fs::remove(work / "run/model/model.safetensors");
  expect_refused(generate({}), 3, {"run/model"});
  put(work / "run/model/config.json", "{\"model_type\": ");
  expect_refused(generate({}), 3, {"config.json"});
  put(work / "run/model/config.json", "{\"model_type\": \"parrot\"}");
  expect_refused(generate({}), 2, {"parrot"});
}

}  // namespace
}  // namespace ingot::testing
