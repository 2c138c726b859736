#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

namespace ingot::testing {

// Reference values made by other programs: $INGOT_ORACLES, or tests/oracle of this source tree.
std::filesystem::path oracle_folder();

// Corpora and published models that do not live in the repository: $INGOT_DATA, or ../shared/data
// beside this source tree. Empty where neither is a folder; a test that needs one then skips:
//   if (!data_folder()) GTEST_SKIP() << no_data_folder;
std::optional<std::filesystem::path> data_folder();
inline constexpr std::string_view no_data_folder =
    "needs the data folder: set INGOT_DATA to a folder with the corpora";

// What the tests of parsers start from: tests/fuzz/seeds.
std::filesystem::path fuzz_seeds();

// The built `ingot` program. Throws std::runtime_error when this build has none.
std::filesystem::path program();

// A fresh empty folder that is removed, with all it holds, at the end of the scope.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace ingot::testing
