#include "tests/support/paths.h"

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <system_error>

namespace ingot::testing {
namespace {

std::filesystem::path from_environment(const char* variable, const char* otherwise) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

}  // namespace

std::filesystem::path oracle_folder() {
  return from_environment("INGOT_ORACLES", INGOT_DEFAULT_ORACLES);
}

std::optional<std::filesystem::path> data_folder() {
  const std::filesystem::path folder = from_environment("INGOT_DATA", INGOT_DEFAULT_DATA);
  if (!std::filesystem::is_directory(folder)) {
    return std::nullopt;
  }
  return folder;
}

std::filesystem::path fuzz_seeds() { return INGOT_FUZZ_SEEDS; }

std::filesystem::path program() {
#ifdef INGOT_PROGRAM
  return INGOT_PROGRAM;
#else
  throw std::runtime_error("the program `ingot` is not part of this build");
#endif
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "ingot-test-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) {
    throw std::system_error(errno, std::generic_category(), "mkdtemp " + pattern);
  }
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;  // a test may have taken away permissions; its own assertions tell of it
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace ingot::testing
