#include "ingot/io/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <functional>
#include <set>

#include "ingot/base/files.h"
#include "ingot/base/philox.h"
#include "ingot/io/manifest.h"
#include "ingot/tensor/factories.h"
#include "tests/support/message.h"
#include "tests/support/paths.h"

namespace ingot {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::message_of;
using testing::TemporaryFolder;

// Normals drawn one by one: a forked child may not use the threads that factories.h would start.
template <class T>
Tensor drawn(const Shape& shape, const RandomKey& key) {
  Tensor out = empty(shape, dtype_of<T>);
  const Philox random(key);
  const std::span<T> values = out.mutable_values<T>();
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = T(random.normal(i));
  }
  return out;
}

// A checkpoint whose every byte follows from its step.
Checkpoint made(int64_t step, int64_t size = 200) {
  const auto seed = static_cast<uint64_t>(step);
  TensorDict parameters;
  parameters.add("w", drawn<float>({size, 3}, {seed, 0, 0}));
  parameters.add("b", drawn<BF16>({7}, {seed, 0, 1}));
  TensorDict optimizer;
  optimizer.add("adamw.m/w", drawn<float>({size, 3}, {seed, 0, 2}));
  Checkpoint checkpoint;
  checkpoint.step = step;
  checkpoint.parts = {{"parameters", parameters}, {"optimizer", optimizer}};
  checkpoint.state = R"({"seed":18446744073709551615,"step":)" + std::to_string(step) + "}";
  checkpoint.recipe = "steps = " + std::to_string(step) + "\n# ünïcode \"quotes\"\n";
  return checkpoint;
}

void expect_same(const Checkpoint& a, const Checkpoint& b) {
  EXPECT_EQ(a.step, b.step);
  EXPECT_EQ(a.state, b.state);
  EXPECT_EQ(a.recipe, b.recipe);
  ASSERT_EQ(a.parts.size(), b.parts.size());
  for (const auto& [part, tensors] : a.parts) {
    const TensorDict& others = b.part(part);
    ASSERT_EQ(tensors.size(), others.size());
    for (const auto& [name, tensor] : tensors) {
      const Tensor& other = others.at(name);
      ASSERT_EQ(tensor.shape(), other.shape());
      ASSERT_EQ(tensor.dtype(), other.dtype());
      EXPECT_EQ(
          std::memcmp(tensor.view().data, other.view().data, static_cast<size_t>(tensor.bytes())),
          0)
          << part << " " << name;
    }
  }
}

// Without a flush to the disk, which write_file pays thousands of times in the loops below.
void overwrite(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string read_error(ErrorKind kind, const fs::path& path) {
  return message_of(kind, [&] { read_checkpoint(path); });
}

// Runs `f` in a process of its own, whose limits may be changed; true when it returns true there.
bool holds_in_child(const std::function<bool()>& f) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(f() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(Checkpoint, ReadsBackWhatWasSaved) {
  const TemporaryFolder folder;
  save_checkpoint(folder / "run", made(2000));
  EXPECT_THAT(list_folder(folder / "run"), ElementsAre("step-00002000"));
  EXPECT_THAT(list_folder(folder / "run/step-00002000"),
              ElementsAre("manifest.json", "optimizer.safetensors", "parameters.safetensors"));
  expect_same(read_checkpoint(folder / "run/step-00002000"), made(2000));
}

TEST(Checkpoint, ReplacesOneOfTheSameStep) {
  const TemporaryFolder folder;
  save_checkpoint(folder.path(), made(5));
  Checkpoint changed = made(5);
  changed.recipe = "other";
  save_checkpoint(folder.path(), changed);
  EXPECT_THAT(list_folder(folder.path()), ElementsAre("step-00000005"));
  expect_same(read_checkpoint(folder / "step-00000005"), changed);
}

TEST(Checkpoint, TellsItsSizeBeforehand) {
  const TemporaryFolder folder;
  save_checkpoint(folder.path(), made(1));
  int64_t written = 0;
  for (const auto& entry : fs::directory_iterator(folder / "step-00000001")) {
    written += static_cast<int64_t>(entry.file_size());
  }
  EXPECT_GE(checkpoint_bytes(made(1)), written);
  EXPECT_LE(checkpoint_bytes(made(1)), written + 6000);
}

TEST(Checkpoint, NamesItsPartsWhereOneIsMissing) {
  EXPECT_EQ(message_of(ErrorKind::format, [] { made(3).part("ema"); }),
            "checkpoint of step 3: no part ema: it has parameters, optimizer");
}

TEST(Checkpoint, FindsEveryTruncation) {
  const TemporaryFolder folder;
  save_checkpoint(folder.path(), made(1, 20));
  const fs::path path = folder / "step-00000001";
  for (const std::string& name : list_folder(path)) {
    const std::string whole = read_file(path / name);
    for (size_t length = 0; length < whole.size(); length += 7) {
      overwrite(path / name, whole.substr(0, length));
      const std::string message = read_error(ErrorKind::format, path);
      ASSERT_THAT(message, HasSubstr((path / name).string()));
      if (name != "manifest.json") {
        ASSERT_EQ(message, (path / name).string() + ": truncated: expected " +
                               std::to_string(whole.size()) + " bytes, found " +
                               std::to_string(length) + "; use an older checkpoint");
      }
    }
    overwrite(path / name, whole);
  }
  overwrite(path / "optimizer.safetensors", read_file(path / "optimizer.safetensors") + "x");
  EXPECT_THAT(read_error(ErrorKind::format, path), HasSubstr(": longer than it was written: "));
}

TEST(Checkpoint, FindsBitFlipsEverywhere) {
  const TemporaryFolder folder;
  save_checkpoint(folder.path(), made(1, 10));
  const fs::path path = folder / "step-00000001";
  for (const std::string& name : list_folder(path)) {
    const std::string whole = read_file(path / name);
    for (size_t bit = 0; bit < whole.size() * 8; bit += 11) {
      std::string flipped = whole;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
      overwrite(path / name, flipped);
      ASSERT_THAT(read_error(ErrorKind::format, path), HasSubstr((path / name).string()))
          << "bit " << bit;
    }
    overwrite(path / name, whole);
  }
  expect_same(read_checkpoint(path), made(1, 10));
}

TEST(Checkpoint, NamesTheDamagedTensorAndBothHashes) {
  const TemporaryFolder folder;
  save_checkpoint(folder.path(), made(1));
  const fs::path file = folder / "step-00000001/parameters.safetensors";
  std::string bytes = read_file(file);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);  // "b" has the smaller elements: it is last
  overwrite(file, bytes);
  const std::string message = read_error(ErrorKind::format, folder / "step-00000001");
  EXPECT_THAT(message, HasSubstr(file.string() + ": b: hash differs: expected "));
  EXPECT_THAT(message, HasSubstr(", found "));
  EXPECT_THAT(message, HasSubstr("; the file is damaged, use an older checkpoint"));
}

TEST(Checkpoint, SaysWhatIsMissing) {
  const TemporaryFolder folder;
  save_checkpoint(folder.path(), made(1));
  const fs::path path = folder / "step-00000001";
  fs::remove(path / "optimizer.safetensors");
  EXPECT_EQ(read_error(ErrorKind::io, path),
            (path / "optimizer.safetensors").string() +
                ": cannot open the file: No such file or directory; check the spelling");
  fs::remove(path / "manifest.json");
  EXPECT_EQ(read_error(ErrorKind::io, path),
            path.string() + ": not a complete checkpoint: no manifest.json in it; use another one");
}

TEST(Checkpoint, RefusesFilesOfAnotherCheckpoint) {
  const TemporaryFolder folder;
  save_checkpoint(folder.path(), made(1));
  save_checkpoint(folder.path(), made(2));
  write_file(folder / "step-00000001/parameters.safetensors",
             read_file(folder / "step-00000002/parameters.safetensors"));
  EXPECT_THAT(read_error(ErrorKind::format, folder / "step-00000001"), HasSubstr("hash differs"));
}

TEST(Checkpoint, LatestIsTheNewestThatVerifies) {
  const TemporaryFolder folder;
  EXPECT_EQ(latest_checkpoint(folder / "absent").path, std::nullopt);
  for (const int64_t step : {1, 2, 10}) {
    save_checkpoint(folder.path(), made(step));
  }
  make_directories(folder / "step-00000099.tmp");
  make_directories(folder / "step-7");
  make_directories(folder / "other");
  EXPECT_THAT(checkpoint_steps(folder.path()), ElementsAre(1, 2, 10));
  EXPECT_EQ(latest_checkpoint(folder.path()).path, folder / "step-00000010");
  EXPECT_TRUE(latest_checkpoint(folder.path()).skipped.empty());

  const fs::path file = folder / "step-00000010/parameters.safetensors";
  write_file(file, "");
  fs::remove(folder / "step-00000002/manifest.json");
  const Latest latest = latest_checkpoint(folder.path());
  EXPECT_EQ(latest.path, folder / "step-00000001");
  EXPECT_THAT(latest.skipped, ElementsAre(HasSubstr(file.string() + ": truncated"),
                                          HasSubstr("step-00000002: not a complete checkpoint")));
}

TEST(Checkpoint, KeepsTheLastAndRemovesLeftovers) {
  const TemporaryFolder folder;
  for (const int64_t step : {1, 2, 3, 4}) {
    save_checkpoint(folder.path(), made(step));
  }
  keep_last(folder.path(), 2);
  EXPECT_THAT(list_folder(folder.path()), ElementsAre("step-00000003", "step-00000004"));
  keep_last(folder.path(), 5);
  EXPECT_EQ(list_folder(folder.path()).size(), 2U);
  EXPECT_EQ(message_of(ErrorKind::argument, [&] { keep_last(folder.path(), 0); }),
            "keep_last: must keep at least one checkpoint: got 0");
  make_directories(folder / "step-00000005.tmp/deep");
  make_directories(folder / "notes.tmp");
  EXPECT_THAT(remove_leftovers(folder.path()), ElementsAre("step-00000005.tmp"));
  EXPECT_THAT(list_folder(folder.path()),
              ElementsAre("notes.tmp", "step-00000003", "step-00000004"));
  EXPECT_TRUE(remove_leftovers(folder / "absent").empty());
}

TEST(Checkpoint, RefusesAFolderItCannotCreate) {
  const TemporaryFolder folder;
  write_file(folder / "file", "");
  EXPECT_EQ(message_of(ErrorKind::io, [&] { save_checkpoint(folder / "file/run", made(1)); }),
            (folder / "file/run").string() + ": cannot create the folder: Not a directory");
  EXPECT_EQ(message_of(ErrorKind::argument, [&] { save_checkpoint(folder.path(), made(-1)); }),
            "checkpoint: negative step: -1");
}

TEST(Checkpoint, RefusesADiskWithoutRoomBeforeWriting) {
  const TemporaryFolder folder;
  EXPECT_THAT(message_of(ErrorKind::io, [&] { check_free_space(folder.path(), INT64_MAX); }),
              HasSubstr(": not enough space for checkpoints: they take 8.00 EiB, free are "));
  if (::mount("none", folder.path().c_str(), "tmpfs", 0, "size=256k") != 0) {
    GTEST_SKIP() << "needs the right to mount a small file system";
  }
  save_checkpoint(folder.path(), made(1));
  EXPECT_THAT(message_of(ErrorKind::io, [&] { save_checkpoint(folder.path(), made(2, 100000)); }),
              HasSubstr(folder.path().string() + ": not enough space for checkpoints: they take "));
  EXPECT_THAT(list_folder(folder.path()), ElementsAre("step-00000001"));
  expect_same(read_checkpoint(folder / "step-00000001"), made(1));
  ::umount(folder.path().c_str());
}

TEST(Checkpoint, LeavesTheOldOneWhenWritingFailsMidway) {
  const TemporaryFolder folder;
  save_checkpoint(folder.path(), made(1));
  EXPECT_TRUE(holds_in_child([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{20000, 20000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const std::string message =
        message_of(ErrorKind::io, [&] { save_checkpoint(folder.path(), made(2, 5000)); });
    EXPECT_THAT(message, HasSubstr("parameters.safetensors: cannot write the file after 20000 "
                                   "bytes: File too large"));
    EXPECT_THAT(message, HasSubstr("(while saving the checkpoint of step 2)"));
    return !::testing::Test::HasFailure();
  }));
  EXPECT_THAT(list_folder(folder.path()), ElementsAre("step-00000001"));
  expect_same(read_checkpoint(folder / "step-00000001"), made(1));
}

TEST(Checkpoint, SurvivesKillingAtAnyMoment) {
  const TemporaryFolder folder;
  save_checkpoint(folder.path(), made(1));
  const auto start = std::chrono::steady_clock::now();
  save_checkpoint(folder.path(), made(1));
  const std::chrono::duration<double, std::micro> one_save =
      std::chrono::steady_clock::now() - start;
  int64_t newest = 1;
  // Twenty rounds, and more where the disk is too slow for a new checkpoint to have come through.
  for (uint64_t round = 0; round < 20 || (newest < 4 && round < 200); ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // not to go on when the test itself is killed
      remove_leftovers(folder.path());
      // Even rounds begin with replacing a checkpoint that is there, odd ones with a new one.
      for (int64_t step = newest + static_cast<int64_t>(round % 2);; ++step) {
        save_checkpoint(folder.path(), made(step));
        keep_last(folder.path(), 2);
      }
    }
    const double u = Philox({1, 2, 3}).uniform_f64(round);
    const double saves = 8 * u * u;  // many early in the first save, some after several
    ::usleep(static_cast<useconds_t>(saves * one_save.count()));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const Latest latest = latest_checkpoint(folder.path());
    ASSERT_TRUE(latest.path);
    ASSERT_THAT(latest.skipped, ElementsAre()) << "round " << round;
    const Checkpoint read = read_checkpoint(*latest.path);
    ASSERT_GE(read.step, newest);
    expect_same(read, made(read.step));
    newest = read.step;
  }
  EXPECT_GE(newest, 4);
}

TEST(Manifest, RefusesOtherVersionsAndMissingFields) {
  Manifest manifest;
  const auto error = [](const std::string& text) {
    return message_of(ErrorKind::format, [&] { parse_manifest(text, "m.json"); });
  };
  manifest.state = "{}";
  std::string text = manifest_text(manifest);
  EXPECT_EQ(parse_manifest(text, "m.json").files.size(), 0U);
  EXPECT_EQ(error("{}"), "m.json: format: missing key: expected an integer");
  std::string next = text;
  next.replace(next.find("\"format\": 1"), 11, "\"format\": 2");
  EXPECT_EQ(error(next),
            "m.json: unknown format version: this Ingot reads 1, the checkpoint has 2; use the "
            "Ingot that wrote it");
  text.replace(text.find("\"step\": 0"), 9, "\"step\": 1");
  EXPECT_THAT(error(text), HasSubstr("m.json: hash differs: expected "));
  EXPECT_THAT(error(text), HasSubstr("; the manifest is damaged, use an older checkpoint"));
  manifest.state = "{";
  EXPECT_EQ(message_of(ErrorKind::argument, [&] { manifest_text(manifest); }),
            "manifest: the state is not valid JSON");
}

// A part of 1 MiB that rests, beside one that changes.
Checkpoint partly_frozen(int64_t step, double frozen = 1) {
  Checkpoint out;
  out.step = step;
  TensorDict parameters;
  parameters.add("frozen", full({256, 1024}, frozen, DType::f32));
  parameters.add("adapter", full({1000}, static_cast<double>(step), DType::f32));
  out.parts = {{"parameters", parameters}};
  return out;
}

int64_t bytes_on_disk(const fs::path& folder) {
  std::set<ino_t> seen;
  int64_t total = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    struct stat about {};
    ::stat(entry.path().c_str(), &about);
    total += entry.is_regular_file() && seen.insert(about.st_ino).second ? about.st_size : 0;
  }
  return total;
}

TEST(Checkpoint, TensorsThatDoNotChangeAreWrittenOnce) {
  const TemporaryFolder folder;
  save_checkpoint(folder.path(), partly_frozen(1));
  save_checkpoint(folder.path(), partly_frozen(2));
  EXPECT_THAT(list_folder(folder / "step-00000002"),
              ElementsAre("manifest.json", "parameters.safetensors",
                          "parameters.since-00000002.safetensors"));
  const int64_t before = bytes_on_disk(folder.path());
  for (int64_t step = 3; step <= 6; ++step) {
    save_checkpoint(folder.path(), partly_frozen(step));
  }
  EXPECT_LT(bytes_on_disk(folder.path()) - before, 4 * 8000);
  for (int64_t step = 1; step <= 6; ++step) {
    expect_same(read_checkpoint(checkpoint_path(folder.path(), step)), partly_frozen(step));
  }
  // Older ones may go: what the newest shares stays.
  keep_last(folder.path(), 1);
  expect_same(read_checkpoint(folder / "step-00000006"), partly_frozen(6));
  // Once it changes it is written again.
  save_checkpoint(folder.path(), partly_frozen(7, 2));
  expect_same(read_checkpoint(folder / "step-00000007"), partly_frozen(7, 2));
}

TEST(Checkpoint, ADamagedFileIsNotShared) {
  const TemporaryFolder folder;
  save_checkpoint(folder.path(), partly_frozen(1));
  save_checkpoint(folder.path(), partly_frozen(2));
  const fs::path shared = folder / "step-00000002/parameters.since-00000002.safetensors";
  std::string bytes = read_file(shared);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  overwrite(shared, bytes);
  save_checkpoint(folder.path(), partly_frozen(3));
  expect_same(read_checkpoint(folder / "step-00000003"), partly_frozen(3));
  EXPECT_THAT(read_error(ErrorKind::format, folder / "step-00000002"), HasSubstr("frozen: hash"));
}

TEST(Checkpoint, EveryMixOfChangesReadsBack) {
  const TemporaryFolder folder;
  for (int64_t step = 1; step <= 24; ++step) {
    Checkpoint made;
    made.step = step;
    TensorDict parameters;
    for (int64_t i = 0; i < 5; ++i) {  // each changes at steps of its own
      const int64_t version = (step * (7 + 4 * i) / 9) % 3;
      parameters.add(concat("p", i), full({32, 1024}, static_cast<double>(version), DType::f32));
    }
    made.parts = {{"parameters", parameters}};
    save_checkpoint(folder.path(), made);
    expect_same(read_checkpoint(checkpoint_path(folder.path(), step)), made);
    keep_last(folder.path(), 2);
  }
}

TEST(Checkpoint, KeepsTheStepsThatAreToStay) {
  const TemporaryFolder folder;
  for (int64_t step = 1; step <= 9; ++step) {
    save_checkpoint(folder.path(), made(step));
  }
  keep_last(folder.path(), 2, [](int64_t step) { return step % 3 == 0; });
  EXPECT_THAT(checkpoint_steps(folder.path()), ElementsAre(3, 6, 8, 9));
}

}  // namespace
}  // namespace ingot
