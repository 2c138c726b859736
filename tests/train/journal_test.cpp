#include "ingot/train/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ingot/base/files.h"
#include "tests/support/message.h"
#include "tests/support/paths.h"
#include "tests/train/tiny.h"

namespace ingot::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

StepReport report(int64_t step) {
  StepReport out;
  out.step = step;
  out.loss = 1.0 / 3 * static_cast<double>(step);
  out.grad_norm = 0.1;
  out.batches = {{8 * step, 4, "aa"}, {8 * step + 4, 4, "bb"}};
  return out;
}

TEST(Journal, GivesBackEveryStepToTheLastBit) {
  const TemporaryFolder folder;
  Journal journal(folder / "journal.jsonl", 0, 7);
  for (int64_t step = 1; step <= 5; ++step) {
    journal.after_step({}, report(step));
  }
  const auto entries = read_journal(folder / "journal.jsonl", 2, 4);
  ASSERT_EQ(entries.size(), 3u);
  for (const JournalEntry& entry : entries) {
    EXPECT_EQ(entry.loss, report(entry.step).loss);
    EXPECT_EQ(entry.grad_norm, 0.1);
    EXPECT_EQ(entry.batches, report(entry.step).batches);
  }
  EXPECT_THAT(read_file(folder / "journal.jsonl"),
              StartsWith(R"({"step":1,"seed":7,"rng_step":0,)"));
}

TEST(Journal, ForgetsWhatCameAfterTheCheckpointAndWhatAKillCutShort) {
  const TemporaryFolder folder;
  {
    Journal journal(folder / "journal.jsonl", 0, 7);
    for (int64_t step = 1; step <= 5; ++step) {
      journal.after_step({}, report(step));
    }
  }
  const std::string text = read_file(folder / "journal.jsonl");
  write_file(folder / "journal.jsonl", text.substr(0, text.size() - 20));
  Journal journal(folder / "journal.jsonl", 3, 7);
  EXPECT_EQ(read_journal(folder / "journal.jsonl", 1, 9).size(), 3u);
  journal.after_step({}, report(4));
  EXPECT_EQ(read_journal(folder / "journal.jsonl", 1, 9).size(), 4u);
  journal.rewind(2);
  EXPECT_EQ(read_journal(folder / "journal.jsonl", 1, 9).size(), 2u);
}

TEST(Journal, NamesALineThatIsDamaged) {
  const TemporaryFolder folder;
  const auto said = [&](const std::string& text) {
    write_file(folder / "journal.jsonl", text);
    return message_of(ErrorKind::format, [&] { read_journal(folder / "journal.jsonl", 1, 9); });
  };
  EXPECT_THAT(said("{\"step\":1\n"), HasSubstr("journal.jsonl:1:"));
  EXPECT_THAT(said("{\"step\":1,\"loss\":1,\"grad_norm\":2}\n"),
              HasSubstr("journal.jsonl:1: batches: missing key: expected a list"));
  EXPECT_THAT(said("{\"step\":1,\"loss\":\"nan\",\"grad_norm\":2}\n"), HasSubstr("loss"));
}

TEST(Journal, TheHashOfABatchDependsOnEveryIdAndLabel) {
  const std::string hash = batch_hash(tiny_batch(0, 4));
  EXPECT_EQ(batch_hash(tiny_batch(0, 4)), hash);
  EXPECT_NE(batch_hash(tiny_batch(1, 4)), hash);
  for (const bool of_labels : {false, true}) {
    Batch batch = tiny_batch(0, 4);
    (of_labels ? batch.labels : batch.ids).mutable_values<int64_t>()[17] += 1;
    EXPECT_NE(batch_hash(batch), hash);
  }
}

}  // namespace
}  // namespace ingot::testing
