#include "tests/support/node.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace ingot::testing {
namespace {

namespace fs = std::filesystem;

// Runs a command of the shell: its exit status and all that it printed.
std::pair<int, std::string> shell(const std::string& command) {
  std::string out;
  FILE* pipe = ::popen(("{ " + command + "; } 2>&1").c_str(), "r");
  if (pipe == nullptr) {
    return {-1, "no shell"};
  }
  std::array<char, 4096> buffer{};
  for (size_t size = 0; (size = ::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    out.append(buffer.data(), size);
  }
  return {::pclose(pipe), out};
}

// "@huggingface/jinja@0.5" → "@huggingface/jinja"
std::string without_version(const std::string& package) {
  return package.substr(0, package.find('@', 1));
}

bool has_all(const fs::path& modules, const std::vector<std::string>& packages) {
  return std::ranges::all_of(packages, [&](const std::string& package) {
    return fs::exists(modules / without_version(package) / "package.json");
  });
}

void write(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace

Node::Node(const std::vector<std::string>& packages) {
  if (shell("node --version").first != 0) {
    missing_ = "needs node";
    return;
  }
  const char* given = std::getenv("INGOT_NODE");
  if (given != nullptr && has_all(fs::path(given) / "node_modules", packages)) {
    fs::create_directory_symlink(fs::absolute(given) / "node_modules", folder() / "node_modules");
    return;
  }
  std::string all;
  for (const std::string& package : packages) {
    all += " '" + package + "'";
  }
  write(folder() / "package.json", "{}");
  const auto [status, said] =
      shell("cd '" + folder().string() +
            "' && timeout 600 npm install --ignore-scripts --no-audit --no-fund --silent" + all);
  if (status != 0 || !has_all(folder() / "node_modules", packages)) {
    missing_ = "needs npm and its registry, to install" + all +
               " (or INGOT_NODE, a folder that has them): " + said;
  }
}

nlohmann::json Node::run(const std::string& script, const nlohmann::ordered_json& input,
                         int seconds) const {
  write(folder() / "input.json", input.dump());
  write(folder() / "script.mjs",
        "import { readFileSync, writeFileSync } from 'node:fs';\n"
        "const input = JSON.parse(readFileSync('input.json', 'utf8'));\n"
        "const answer = value => writeFileSync('output.json', JSON.stringify(value));\n" +
            script);
  fs::remove(folder() / "output.json");
  const auto [status, said] = shell("cd '" + folder().string() + "' && timeout " +
                                    std::to_string(seconds) + " node script.mjs");
  std::ifstream file(folder() / "output.json", std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  if (status != 0 || bytes.str().empty()) {
    throw std::runtime_error("node: status " + std::to_string(status) + ": " + said);
  }
  return nlohmann::json::parse(bytes.str());
}

}  // namespace ingot::testing
