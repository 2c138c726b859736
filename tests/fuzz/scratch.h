#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

#include "ingot/base/error.h"

namespace ingot::testing {

// A folder of this process for parsers that read files, not texts; gone when the process ends.
class Scratch {
 public:
  Scratch() {
    std::string pattern = (std::filesystem::temp_directory_path() / "ingot-fuzz-XXXXXX").string();
    check(mkdtemp(pattern.data()) != nullptr, ErrorKind::internal, pattern, ": cannot be made");
    path_ = pattern;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  // The file NAME with this content; folders in its name are made.
  std::filesystem::path put(std::string_view name, std::string_view content) const {
    const std::filesystem::path file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary)
        .write(content.data(), static_cast<std::streamsize>(content.size()));
    return file;
  }

 private:
  std::filesystem::path path_;
};

inline const Scratch& scratch() {
  static const Scratch folder;
  return folder;
}

}  // namespace ingot::testing
