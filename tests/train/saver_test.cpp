#include "ingot/train/saver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "ingot/base/files.h"
#include "ingot/tensor/copy.h"
#include "tests/support/message.h"
#include "tests/support/op_case.h"
#include "tests/support/paths.h"
#include "tests/train/tiny.h"

namespace ingot::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A run that saves every step below a folder.
struct SavingRun {
  std::unique_ptr<Decoder> model;
  Optimizer optimizer;
  Training training;
  TrainState state;

  explicit SavingRun(DType dtype = DType::f32)
      : model(tiny_model(0.1, dtype)),
        optimizer(make_optimizer({}, model->parameters())),
        training(tiny_training(*model, optimizer, 6)) {}

  Saver::Options options(const std::filesystem::path& folder, int64_t every, int64_t keep) {
    return {folder, "seed = 3\n", "hash-of-data", every, keep};
  }
  void train_to(int64_t step, const std::vector<Observer*>& observers) {
    training.steps = step;
    training.observers = observers;
    train(state, training);
  }
};

void train_saving(const std::filesystem::path& folder, int64_t steps, int64_t every = 1,
                  int64_t keep = 2) {
  SavingRun run;
  Saver saver(run.options(folder, every, keep), run.optimizer);
  run.train_to(steps, {&saver});
}

void damage(const std::filesystem::path& checkpoint) {
  const std::filesystem::path file = checkpoint / "parameters.safetensors";
  std::string bytes = read_file(file);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  write_file(file, bytes);
}

TEST(Saver, SavesEverySoManyStepsAndKeepsTheNewest) {
  const TemporaryFolder folder;
  train_saving(folder.path(), 6, 2, 2);
  EXPECT_THAT(checkpoint_steps(folder.path()), ElementsAre(4, 6));
}

TEST(Saver, WithoutAnIntervalSavesOnlyWhenTold) {
  const TemporaryFolder folder;
  SavingRun run;
  Saver saver(run.options(folder.path(), 0, 2), run.optimizer);
  run.train_to(3, {&saver});
  EXPECT_TRUE(checkpoint_steps(folder.path()).empty());
  saver.save(run.state);
  EXPECT_THAT(checkpoint_steps(folder.path()), ElementsAre(3));
}

TEST(Saver, DoesNotSaveAStepTwice) {
  const TemporaryFolder folder;
  SavingRun run;
  Saver saver(run.options(folder.path(), 3, 2), run.optimizer);
  run.train_to(3, {&saver});
  const auto path = checkpoint_path(folder.path(), 3) / "manifest.json";
  const auto written = std::filesystem::last_write_time(path);
  saver.save(run.state);
  EXPECT_EQ(std::filesystem::last_write_time(path), written);
}

TEST(Saver, ARunContinuesBitForBit) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const TemporaryFolder folder;
    SavingRun whole(dtype);
    Reports expected;
    Saver saver(whole.options(folder.path(), 3, 1), whole.optimizer);
    whole.train_to(3, {&expected, &saver});
    whole.train_to(6, {&expected});

    SavingRun second(dtype);
    const SavedRun saved = find_run(folder.path());
    EXPECT_EQ(saved.recipe, "seed = 3\n");
    EXPECT_EQ(saved.data_hash, "hash-of-data");
    EXPECT_EQ(saved.path, checkpoint_path(folder.path(), 3));
    restore_run(saved, second.optimizer);
    second.state = saved.state;
    EXPECT_EQ(second.state.position, 24);
    Reports found;
    second.train_to(6, {&found});
    const std::vector<double> losses = expected.losses();
    EXPECT_EQ(found.losses(), std::vector<double>(losses.begin() + 3, losses.end()));
    for (const auto& [name, tensor] : whole.model->parameters()) {
      EXPECT_TRUE(same_bits(tensor, second.model->parameters().at(name))) << name;
    }
    for (const auto& [name, tensor] : whole.optimizer.state()) {
      EXPECT_TRUE(same_bits(tensor, second.optimizer.state().at(name))) << name;
    }
    EXPECT_EQ(second.state.tokens, whole.state.tokens);
  }
}

TEST(Saver, ADamagedNewestCheckpointIsPassedOverWithAWarning) {
  const TemporaryFolder folder;
  train_saving(folder.path(), 3);
  damage(checkpoint_path(folder.path(), 3));
  ::testing::internal::CaptureStderr();
  const SavedRun saved = find_run(folder.path());
  const std::string warnings = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(saved.state.step, 2);
  EXPECT_THAT(warnings, HasSubstr("warning: passing over a damaged checkpoint: "));
  EXPECT_THAT(warnings, HasSubstr("step-00000003"));
  EXPECT_EQ(std::count(warnings.begin(), warnings.end(), '\n'), 1);
}

TEST(Saver, ADamagedCheckpointNeverPushesOutAGoodOne) {
  const TemporaryFolder folder;
  train_saving(folder.path(), 3);
  damage(checkpoint_path(folder.path(), 3));
  SavingRun run;
  const SavedRun saved = find_run(folder.path());
  restore_run(saved, run.optimizer);
  run.state = saved.state;
  Saver saver(run.options(folder.path(), 1, 1), run.optimizer);
  saver.save(run.state);
  EXPECT_THAT(checkpoint_steps(folder.path()), ElementsAre(2));
  EXPECT_EQ(find_run(folder.path()).state.step, 2);
}

TEST(Saver, SaysWhereThereIsNothingToContinueFrom) {
  const TemporaryFolder folder;
  EXPECT_EQ(message_of(ErrorKind::io, [&] { find_run(folder / "none"); }),
            (folder / "none").string() +
                ": no checkpoint to continue from; start the run without --resume");
  train_saving(folder.path(), 2);
  damage(checkpoint_path(folder.path(), 1));
  damage(checkpoint_path(folder.path(), 2));
  EXPECT_THAT(message_of(ErrorKind::io, [&] { find_run(folder.path()); }),
              HasSubstr("no checkpoint to continue from that is undamaged"));
}

TEST(Saver, InTheBackgroundItSavesTheSameBytes) {
  const TemporaryFolder front, back;
  for (const bool background : {false, true}) {
    SavingRun run(DType::bf16);
    Saver::Options options = run.options((background ? back : front).path(), 1, 3);
    options.background = background;
    Saver saver(options, run.optimizer);
    run.training.before_update = [&saver] { saver.flush(); };
    run.train_to(4, {&saver});
    saver.flush();
  }
  for (const int64_t step : {2, 3, 4}) {
    for (const char* file : {"parameters.safetensors", "optimizer.safetensors", "manifest.json"}) {
      EXPECT_EQ(read_file(checkpoint_path(front.path(), step) / file),
                read_file(checkpoint_path(back.path(), step) / file))
          << step << file;
    }
  }
}

TEST(Saver, WhatFailsInTheBackgroundIsThrownBeforeTheNextUpdate) {
  const TemporaryFolder folder;
  SavingRun run;
  write_file(folder / "taken", "a file where the folder should be");
  Saver::Options options = run.options(folder / "taken", 2, 2);
  options.background = true;
  Saver saver(options, run.optimizer);
  run.training.before_update = [&saver] { saver.flush(); };
  EXPECT_THAT(message_of(ErrorKind::io, [&] { run.train_to(6, {&saver}); }), HasSubstr("taken"));
  EXPECT_EQ(run.state.step, 2);
}

TEST(Saver, KeepsSomeStepsForeverAndTheBest) {
  const TemporaryFolder folder;
  SavingRun run;
  Saver::Options options = run.options(folder.path(), 1, 1);
  options.keep_every = 4;
  options.best = true;
  Saver saver(options, run.optimizer);
  const std::vector<double> losses = {5, 3, 4, 4, 6, 2, 3, 3, 3, 3};
  struct Measure : Observer {
    Saver& saver;
    const std::vector<double>& losses;
    Measure(Saver& s, const std::vector<double>& l) : saver(s), losses(l) {}
    void after_step(const TrainState& state, const StepReport&) override {
      const double loss = losses[static_cast<size_t>(state.step - 1)];
      if (loss < saver.best_loss()) {
        saver.keep_best(state, loss);
      }
    }
  } measure(saver, losses);
  run.train_to(5, {&saver, &measure});
  EXPECT_THAT(checkpoint_steps(folder.path()), ElementsAre(2, 4, 5));
  run.train_to(10, {&saver, &measure});
  EXPECT_THAT(checkpoint_steps(folder.path()), ElementsAre(4, 6, 8, 10));
  EXPECT_EQ(read_file(folder / "best.json"), "{\"step\":6,\"validation_loss\":2.0}\n");

  Saver again(options, run.optimizer);
  EXPECT_EQ(again.best_loss(), 2);
  TrainState earlier = run.state;
  earlier.step = 5;
  again.save(earlier);  // the run goes through the best step once more
  EXPECT_EQ(again.best_loss(), std::numeric_limits<double>::infinity());
  EXPECT_THAT(checkpoint_steps(folder.path()), ElementsAre(4, 5));
}

TEST(Saver, SavesWhenAsked) {
  const TemporaryFolder folder;
  SavingRun run;
  Saver::Options options = run.options(folder.path(), 0, 5);
  options.requested = [calls = 0]() mutable { return ++calls == 3; };
  Saver saver(options, run.optimizer);
  ::testing::internal::CaptureStderr();
  run.train_to(6, {&saver});
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "saved step 3, as requested\n");
  EXPECT_THAT(checkpoint_steps(folder.path()), ElementsAre(3));
}

TEST(Saver, CountsEveryCheckpointThatStaysAndTheOneBeingWritten) {
  const TemporaryFolder folder;
  SavingRun run;
  Saver::Options options = run.options(folder.path(), 1, 2);
  const int64_t three = Saver(options, run.optimizer).bytes_of_all(100);
  options.keep_every = 10;
  EXPECT_EQ(Saver(options, run.optimizer).bytes_of_all(100), three / 3 * 13);
  options.best = true;
  EXPECT_EQ(Saver(options, run.optimizer).bytes_of_all(100), three / 3 * 14);
  EXPECT_NO_THROW(Saver(options, run.optimizer).check_space(100));
  EXPECT_THAT(message_of(ErrorKind::io,
                         [&] { Saver(options, run.optimizer).check_space(int64_t{1} << 40); }),
              HasSubstr("not enough space for checkpoints: they take "));
}

TEST(Saver, RefusesANoteOfTheBestThatIsDamaged) {
  const TemporaryFolder folder;
  write_file(folder / "best.json", "{\"step\": 1}");
  SavingRun run;
  EXPECT_THAT(message_of(ErrorKind::format,
                         [&] { Saver(run.options(folder.path(), 1, 2), run.optimizer); }),
              HasSubstr("validation_loss"));
}

// The message with which a checkpoint of the tiny model refuses a model of this shape.
std::string refusal(const DecoderConfig& config, const OptimizerConfig& rule = {},
                    DType dtype = DType::f32) {
  const TemporaryFolder folder;
  train_saving(folder.path(), 1);
  Decoder other(config, dtype);
  nn::initialise(other, {"normal", 0.2}, 9);
  other.require_gradients();
  Optimizer optimizer = make_optimizer(rule, other.parameters());
  const SavedRun saved = find_run(folder.path());
  const Tensor before = copy_of(other.embedding.weight);
  std::string message = message_of(ErrorKind::format, [&] { restore_run(saved, optimizer); });
  EXPECT_TRUE(same_bits(before, other.embedding.weight));
  EXPECT_THAT(message, HasSubstr("step-00000001"));
  return message;
}

TEST(Saver, RefusesTheCheckpointOfAnotherModel) {
  DecoderConfig wider = tiny_config();
  wider.width = 32;
  EXPECT_THAT(refusal(wider), HasSubstr("has shape [40, 16], the model's is [40, 32]; it is a "
                                        "checkpoint of another model"));
  DecoderConfig deeper = tiny_config();
  deeper.layers = 3;
  EXPECT_THAT(refusal(deeper), HasSubstr("holds no parameter layers.2."));
  DecoderConfig shallower = tiny_config();
  shallower.layers = 1;
  EXPECT_THAT(refusal(shallower), HasSubstr("the model has no parameter layers.1."));
  EXPECT_THAT(refusal(tiny_config(), {}, DType::bf16), HasSubstr("the model's is bf16"));
}

TEST(Saver, RefusesTheCheckpointOfAnotherOptimizer) {
  OptimizerConfig sgd;
  choose(sgd, "sgd");
  EXPECT_THAT(refusal(tiny_config(), sgd), HasSubstr("adamw"));
}

}  // namespace
}  // namespace ingot::testing
