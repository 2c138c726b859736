#pragma once

#include <filesystem>

namespace ingot {

// Where a run keeps what it writes.
class RunFolder {
 public:
  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)) {}
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path recipe() const { return path_ / "recipe.toml"; }
  std::filesystem::path log() const { return path_ / "log.jsonl"; }
  std::filesystem::path journal() const { return path_ / "journal.jsonl"; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  std::filesystem::path model() const { return path_ / "model"; }

  // Makes the folder, keeps other processes out of it while this object lives, and removes what
  // killed processes left half-written. Throws Error(io) where it cannot be made or written to,
  // or where `resuming` finds no checkpoint; Error(config) where another process trains in it, or
  // where it holds a run already and `resuming` is not set.
  void open(bool resuming);

 private:
  void lock();

  std::filesystem::path path_;
  int lock_ = -1;  // descriptor of the folder; the system drops the lock when the process ends
};

}  // namespace ingot
