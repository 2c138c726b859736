#include "ingot/train/spike.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ingot/base/files.h"
#include "ingot/train/journal.h"
#include "ingot/train/run_log.h"
#include "ingot/train/saver.h"
#include "tests/support/message.h"
#include "tests/support/paths.h"
#include "tests/train/faults.h"

namespace ingot::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

NumbersConfig watching_for(double spike, int64_t steps, int64_t window = 16) {
  NumbersConfig out;
  out.spike = spike;
  out.spike_steps = steps;
  out.spike_window = window;
  return out;
}

TEST(Spike, TheThresholdIsTheMedianAndItsDeviation) {
  LossHistory history;
  history.losses = {1, 2, 3, 4, 100};  // median 3, deviations 2 1 0 1 97: their median 1
  EXPECT_EQ(high_loss(history, watching_for(5, 1)), 8);
  history.losses = {2, 2, 2, 2};
  EXPECT_DOUBLE_EQ(high_loss(history, watching_for(5, 1)), 2 + 5 * 0.002);
  history.losses = {1, 2, 4, 5};
  EXPECT_EQ(high_loss(history, watching_for(2, 1)), 3 + 2 * 1.5);
}

TEST(Spike, NothingIsJudgedAtTheStart) {
  LossHistory history;
  const NumbersConfig config = watching_for(3, 1);
  for (const double loss : {1.0, 1.0, 50.0}) {
    EXPECT_FALSE(observe_loss(history, loss, 0, config));
  }
  EXPECT_EQ(high_loss({}, config), std::numeric_limits<double>::infinity());
}

TEST(Spike, TakesSeveralHighLossesInARowAndRemembersWhereTheyBegan) {
  LossHistory history;
  const NumbersConfig config = watching_for(6, 3);
  int64_t sample = 0;
  const auto observe = [&](double loss) {
    const bool spike = observe_loss(history, loss, sample, config);
    sample += 8;
    return spike;
  };
  for (int i = 0; i < 16; ++i) {
    EXPECT_FALSE(observe(2 + 0.01 * (i % 3)));
  }
  EXPECT_FALSE(observe(9));
  EXPECT_FALSE(observe(2));  // one alone is noise
  EXPECT_EQ(history.high, 0);
  EXPECT_FALSE(observe(9));  // begins at sample 18 · 8
  EXPECT_FALSE(observe(10));
  EXPECT_TRUE(observe(11));
  EXPECT_EQ(history.spike_start, 17 * 8);  // the step before the first high loss
  EXPECT_THAT(history.losses, ::testing::Each(::testing::Lt(3)));
}

TEST(Spike, AFallingLossNeverAlarms) {
  LossHistory history;
  for (int i = 0; i < 200; ++i) {
    EXPECT_FALSE(observe_loss(history, 5 * std::exp(-i / 40.0), i, watching_for(3, 1)));
  }
}

TEST(TrainState, ItsTextGivesBackEveryBit) {
  TrainState state{7, 56, 1000, {}, {}, 2, {{8, 16}, {40, 48}}};
  state.loss_scale.scale = 4096;
  state.loss_scale.counter = 3;
  state.history = {{0.1, 1.0 / 3, 2.5e-308}, 2, 48, 40};
  const ParsedState back = parse_state(state_text(state, "hash"), "text");
  EXPECT_EQ(back.data_hash, "hash");
  EXPECT_EQ(back.state.step, 7);
  EXPECT_EQ(back.state.position, 56);
  EXPECT_EQ(back.state.tokens, 1000);
  EXPECT_EQ(back.state.loss_scale.scale, 4096);
  EXPECT_EQ(back.state.loss_scale.counter, 3);
  EXPECT_EQ(back.state.history.losses, state.history.losses);
  EXPECT_EQ(back.state.history.high, 2);
  EXPECT_EQ(back.state.history.step_start, 48);
  EXPECT_EQ(back.state.history.spike_start, 40);
  EXPECT_EQ(back.state.rewinds, 2);
  EXPECT_EQ(back.state.skipped, state.skipped);
}

TEST(TrainState, ReadsThatOfOlderCheckpointsAndRefusesNonsense) {
  const std::string old = R"({"step":3,"position":24,"tokens":9,"data_hash":"x"})";
  EXPECT_EQ(parse_state(old, "old").state.loss_scale.scale, 65536);
  EXPECT_THAT(message_of(ErrorKind::format, [] { parse_state("{", "text"); }),
              HasSubstr("text:1:"));
  EXPECT_THAT(message_of(ErrorKind::format, [] { parse_state(R"({"step":1})", "text"); }),
              HasSubstr("position"));
  EXPECT_THAT(
      message_of(
          ErrorKind::format,
          [&] { parse_state(old.substr(0, old.size() - 1) + R"(,"skipped":[1]})", "text"); }),
      HasSubstr("text: skipped: takes pairs of samples: got 1 numbers"));
}

TEST(TrainState, SkippedSamplesArePassedOver) {
  TrainState state;
  state.skipped = {{8, 16}, {16, 24}, {40, 48}};
  EXPECT_EQ(next_sample(state, 0), 0);
  EXPECT_EQ(next_sample(state, 8), 24);
  EXPECT_EQ(next_sample(state, 24), 24);
  EXPECT_EQ(next_sample(state, 44), 48);
}

// Sequences that count: a model learns them. Those from `bad` on are noise.
Batch counting(int64_t first, const SampleRange& bad) {
  constexpr int64_t rows = 8, T = 16;
  const Philox random({9, 0, 0});
  std::vector<int64_t> ids, labels;
  for (int64_t row = first; row < first + rows; ++row) {
    const bool noise = row >= bad.begin && row < bad.end;
    for (int64_t t = 0; t < T; ++t) {
      const auto drawn = static_cast<int64_t>(random.word(static_cast<uint64_t>(row * T + t)) % 40);
      ids.push_back((row * 7 + t) % 40);
      labels.push_back(noise ? drawn : (row * 7 + t + 1) % 40);
    }
  }
  return {tensor_of(ids, {rows, T}), tensor_of(labels, {rows, T}), {}};
}

struct Spiky {
  TemporaryFolder folder;
  Patient patient;
  Saver saver;
  RunLog log;
  Journal journal;
  Reports reports;

  Spiky(SampleRange bad, const std::string& on_spike)
      : patient(80),
        saver({folder / "checkpoints", "", "", 10, 3}, patient.optimizer),
        log(folder / "log.jsonl", 0, 0),
        journal(folder / "journal.jsonl", 0, 1) {
    Training& training = patient.training;
    training.numbers = watching_for(8, 2, 32);
    training.numbers.on_spike = on_spike;
    training.batch = [bad](int64_t position) { return counting(position, bad); };
    training.observers = {&log, &journal, &saver, &reports};
    training.rewind.restore = [this](int64_t step) {
      return restore_before(folder / "checkpoints", step, patient.optimizer);
    };
    training.rewind.resumed = [this](const TrainState& state, const std::string& event) {
      saver.save_anew(state);
      log.rewind(state.step, event);
      journal.rewind(state.step);
    };
    ::testing::internal::CaptureStderr();
    train(patient.state, training);
    warnings = ::testing::internal::GetCapturedStderr();
  }

  std::string warnings;
};

TEST(Spike, GoingBackPassesOverTheBatchesThatMadeIt) {
  const SampleRange bad{45 * 8, 47 * 8};  // steps 46 and 47
  Spiky clean({0, 0}, "rewind");
  Spiky spiky(bad, "rewind");
  EXPECT_EQ(clean.warnings, "");
  EXPECT_EQ(spiky.patient.state.step, 80);
  EXPECT_EQ(spiky.patient.state.rewinds, 1);
  EXPECT_THAT(spiky.patient.state.skipped, ElementsAre(SampleRange{44 * 8, 47 * 8}));
  EXPECT_THAT(spiky.warnings, HasSubstr("gone back to step 40, passing over samples 352 to 375"));
  EXPECT_EQ(spiky.patient.state.position, 83 * 8);

  // The log and the journal hold the steps that led to the weights, each once, and say what
  // happened.
  std::vector<int64_t> samples;
  for (const JournalEntry& entry : read_journal(spiky.folder / "journal.jsonl", 1, 80)) {
    EXPECT_EQ(entry.step, static_cast<int64_t>(samples.size()) + 1);
    samples.push_back(entry.batches.at(0).sample);
  }
  ASSERT_EQ(samples.size(), 80u);
  EXPECT_EQ(samples[43], 43 * 8);
  EXPECT_EQ(samples[44], 47 * 8);
  EXPECT_EQ(spiky.log.steps().size(), 80u);
  EXPECT_THAT(read_file(spiky.folder / "log.jsonl"), HasSubstr("\"event\":\"spike: the loss was "));
  for (const LoggedStep& step : spiky.log.steps()) {
    EXPECT_LT(step.loss, 5) << step.step;
  }

  // It ends where the clean run does.
  const double of_clean = clean.log.steps().back().loss;
  const double of_spiky = spiky.log.steps().back().loss;
  EXPECT_NEAR(of_spiky, of_clean, 0.01 * of_clean + 0.005);
}

TEST(Spike, WithoutGoingBackTheRunWarnsOnceAndGoesOn) {
  Spiky spiky({45 * 8, 50 * 8}, "warn");
  EXPECT_EQ(spiky.patient.state.step, 80);
  EXPECT_EQ(spiky.patient.state.rewinds, 0);
  EXPECT_EQ(std::count(spiky.warnings.begin(), spiky.warnings.end(), '\n'), 1) << spiky.warnings;
  EXPECT_THAT(spiky.warnings, HasSubstr("warning: spike: the loss was "));
  EXPECT_THAT(read_file(spiky.folder / "log.jsonl"), HasSubstr("\"events\":[\"spike\"]"));
}

}  // namespace
}  // namespace ingot::testing
