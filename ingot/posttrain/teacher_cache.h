#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "ingot/posttrain/distillation.h"

namespace ingot {

// The likeliest tokens of a teacher at every token of the rows it has read, in a folder on disk: a
// row is found again by a hash of its tokens, whatever batch it comes in, so a teacher is asked
// once for all epochs and all runs. Files of the folder are mapped, not read, and each appears
// whole or not at all: a killed run loses at most the rows since the last one.
class TeacherCache {
 public:
  // What decides what the teacher says, besides the rows.
  struct Key {
    std::string weights;  // their hash
    std::string dtype;    // in which they are computed
    int64_t top_k = 0;
    double temperature = 1;

    std::map<std::string, std::string> metadata() const;
  };

  // Opens what is there; makes the folder if need be. Throws Error(config) naming what differs
  // where a file is of another key, Error(format) where one is no such file. One run at a time.
  TeacherCache(std::filesystem::path folder, const Key& key);
  ~TeacherCache();  // writes what is left; where that fails a warning says so
  TeacherCache(const TeacherCache&) = delete;
  TeacherCache& operator=(const TeacherCache&) = delete;

  // Of a batch as the teacher reads it: f32 log-probabilities [M, k]. Where a row is not there,
  // `ask` is called for the whole batch, and what it says is kept.
  TopLogprobs operator()(const Batch& seen, const std::function<TopLogprobs()>& ask);

  int64_t rows() const { return static_cast<int64_t>(places_.size()); }
  void save();  // what is not on disk yet

 private:
  struct Place {
    size_t file;  // of files_; that many: not written yet
    int64_t begin, end;
  };
  void open(const std::filesystem::path& path);
  void add(uint64_t hash, const TopLogprobs& row);

  std::filesystem::path folder_;
  std::map<std::string, std::string> key_;
  std::unordered_map<uint64_t, Place> places_;
  std::vector<TopLogprobs> files_;  // mapped: tokens i32, logps f32
  std::vector<uint64_t> new_hashes_;
  std::vector<TopLogprobs> new_rows_;
  int64_t new_tokens_ = 0;
  int64_t saved_tokens_ = 0;
};

// A teacher that is asked only for what the cache does not hold. `ask` gives the live teacher's
// top_logprobs_of a batch. The cache must outlive it.
Teacher cached_teacher(TeacherCache& cache, std::function<TopLogprobs(const Batch&)> ask);

}  // namespace ingot
