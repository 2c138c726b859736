#pragma once

#include <filesystem>

#include "ingot/base/error.h"
#include "ingot/base/files.h"

namespace ingot {

// A file or folder being written beside its final name; removed at the end unless it got that name:
// what a failed command leaves is nothing.
class Unfinished {
 public:
  explicit Unfinished(const std::filesystem::path& final_path)
      : final_(final_path), path_(final_path.string() + ".unfinished") {
    remove_tree(path_);
  }
  ~Unfinished() {
    try {
      remove_tree(path_);
    } catch (const Error&) {  // NOLINT(bugprone-empty-catch): the failure before it is reported
    }
  }
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void finish() { rename_path(path_, final_); }

 private:
  std::filesystem::path final_, path_;
};

}  // namespace ingot
