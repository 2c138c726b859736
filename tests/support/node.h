#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "ingot/base/json_library.h"
#include "tests/support/paths.h"

namespace ingot::testing {

// Packages of npm, and scripts that use them: other programs that Ingot is compared with. They are
// taken from the folder that $INGOT_NODE names where its node_modules has all of them, and else
// installed into a temporary one, without running what packages want to run.
class Node {
 public:
  // As npm spells them: "openai", "tiktoken@1".
  explicit Node(const std::vector<std::string>& packages);

  // Why no script can be run; empty where it can. A test then skips:
  //   if (!node.missing().empty()) GTEST_SKIP() << node.missing();
  const std::string& missing() const { return missing_; }

  // Where files for scripts may be put; scripts run in it.
  std::filesystem::path folder() const { return folder_.path(); }

  // Runs an ES module in which `input` is `input` and `answer(value)` gives what is returned.
  // Throws std::runtime_error with what it printed where it fails or takes longer.
  nlohmann::json run(const std::string& script, const nlohmann::ordered_json& input,
                     int seconds = 600) const;

 private:
  TemporaryFolder folder_;
  std::string missing_;
};

}  // namespace ingot::testing
