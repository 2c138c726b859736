#include "tests/support/paths.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace ingot::testing {
namespace {

// Sets an environment variable for the length of a scope.
class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) {
    const char* before = std::getenv(name);
    was_set_ = before != nullptr;
    before_ = was_set_ ? before : "";
    setenv(name, value.c_str(), 1);
  }
  ~Environment() { was_set_ ? setenv(name_, before_.c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  bool was_set_;
  std::string before_;
};

TEST(Paths, EnvironmentOverridesTheDefaults) {
  const TemporaryFolder folder;
  const Environment oracles("INGOT_ORACLES", folder.path());
  const Environment data("INGOT_DATA", folder.path());
  EXPECT_EQ(oracle_folder(), folder.path());
  EXPECT_EQ(data_folder(), folder.path());
}

TEST(Paths, AnAbsentDataFolderIsEmptyNotAnError) {
  const TemporaryFolder folder;
  const Environment data("INGOT_DATA", folder / "absent");
  EXPECT_EQ(data_folder(), std::nullopt);
}

TEST(TemporaryFolder, IsRemovedWithItsContents) {
  std::filesystem::path path;
  {
    const TemporaryFolder folder;
    path = folder.path();
    std::ofstream(folder / "file") << "text";
    ASSERT_TRUE(std::filesystem::exists(folder / "file"));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

RC_GTEST_PROP(TemporaryFolder, NeverRepeatsAPath, ()) {
  const TemporaryFolder first;
  const TemporaryFolder second;
  RC_ASSERT(first.path() != second.path());
}

}  // namespace
}  // namespace ingot::testing
