#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>

#include "ingot/base/json.h"
#include "ingot/models/pretrained.h"
#include "ingot/nn/initialise.h"
#include "tests/cli/program.h"

// A real client: llama.cpp, as the npm package node-llama-cpp brings it prebuilt, continues the
// exported file with the tokens that Ingot finds. $INGOT_NODE_LLAMA may name a folder in which the
// package is installed already; otherwise npm installs it into a temporary one.
namespace ingot::testing {
namespace {

std::string answer_of(const std::string& command) {
  std::string out;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) {
    return out;
  }
  for (int letter = std::fgetc(pipe); letter != EOF; letter = std::fgetc(pipe)) {
    out += static_cast<char>(letter);
  }
  ::pclose(pipe);
  return out;
}

class LlamaCpp : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const char* given = std::getenv("INGOT_NODE_LLAMA");
    if (given != nullptr) {
      folder_ = given;
    } else {
      owned_ = new TemporaryFolder();
      folder_ = owned_->path();
      std::system(("cd '" + folder_.string() +
                   "' && npm install --ignore-scripts node-llama-cpp @node-llama-cpp/linux-x64 "
                   ">npm.log 2>&1")
                      .c_str());
    }
    if (std::filesystem::exists(folder_ / "node_modules/node-llama-cpp")) {
      put(folder_ / "greedy.mjs",
          content(std::filesystem::path(__FILE__).parent_path() / "greedy.mjs"));
    }
  }
  static void TearDownTestSuite() {
    delete owned_;
    owned_ = nullptr;
  }
  void SetUp() override {
    if (const std::string reason = no_program(); !reason.empty()) {
      GTEST_SKIP() << reason;
    }
    if (!std::filesystem::exists(folder_ / "greedy.mjs")) {
      GTEST_SKIP()
          << "needs npm and the package node-llama-cpp: set INGOT_NODE_LLAMA to a folder in "
             "which it is installed";
    }
  }

  // What both find likeliest after these ids.
  void expect_same(const std::filesystem::path& model, const std::string& ids) const {
    std::string spaced = ids;
    std::replace(spaced.begin(), spaced.end(), ',', ' ');
    const std::string theirs = answer_of("cd '" + folder_.string() + "' && node greedy.mjs '" +
                                         model.string() + "' 16 " + spaced + " 2>greedy.log");
    const Outcome ours = work.run({"generate", model.string(), "--ids", "--prompt", ids, "--tokens",
                                   "16", "--temperature", "0", "--json"});
    ASSERT_EQ(ours.code, 0) << ours.err;
    ASSERT_FALSE(theirs.empty()) << content(folder_ / "greedy.log");
    EXPECT_EQ(nlohmann::json::parse(theirs), nlohmann::json::parse(ours.out)["ids"]) << model;
  }

  Workplace work;
  static inline std::filesystem::path folder_;
  static inline TemporaryFolder* owned_ = nullptr;
};

TEST_F(LlamaCpp, ContinuesEveryFamilyAsIngotDoes) {
  std::string refused;
  for (const auto& entry : std::filesystem::directory_iterator(oracle_folder() / "models")) {
    const std::string name = entry.path().filename().string();
    if (!std::filesystem::exists(entry.path() / "config.json") || name.starts_with("bert")) {
      continue;
    }
    SCOPED_TRACE(name);
    // llama.cpp's package wants a tokenizer: that of bytes. Its vocabulary of phi3 wants more.
    const auto folder = work / name;
    std::filesystem::copy(entry.path(), folder);
    nlohmann::json config = parse_json_file(folder / "config.json");
    config["ingot"]["tokens"] = "bytes";
    put(folder / "config.json", config.dump());
    if (name.starts_with("phi3")) {
      continue;
    }
    const Outcome made = work.run({"convert", folder.string(), name + ".gguf", "--dtype", "f32"});
    if (made.code == 2) {  // llama.cpp has no such model, or Ingot cannot say it
      refused += "\n  " + made.err;
      continue;
    }
    ASSERT_EQ(made.code, 0) << made.err;
    expect_same(work / (name + ".gguf"), "1,5,9,7");
  }
  std::cout << "not written as GGUF:" << refused << '\n';
}

TEST_F(LlamaCpp, ContinuesEveryTypeAsIngotDoes) {
  if (!data_folder()) {
    GTEST_SKIP() << no_data_folder;
  }
  const auto stories = *data_folder() / "model-stories260k/hf";
  for (const char* type : {"F32", "F16", "BF16", "Q8_0"}) {
    SCOPED_TRACE(type);
    const Outcome made =
        work.run({"quantize", stories.string(), std::string(type) + ".gguf", "--type", type});
    ASSERT_EQ(made.code, 0) << made.err;
    expect_same(work / (std::string(type) + ".gguf"), "1,403,407,261");
  }
}

}  // namespace
}  // namespace ingot::testing
