#include <gtest/gtest.h>

#include <ctime>
#include <filesystem>

#include "ingot/base/error.h"
#include "ingot/base/files.h"
#include "ingot/text/jinja_json.h"
#include "ingot/text/jinja_template.h"
#include "tests/support/paths.h"

namespace ingot::jinja {
namespace {

using testing::data_folder;
using testing::no_data_folder;
using testing::oracle_folder;

// 2025-03-14 15:09:26, when the recorded texts say they were printed.
std::tm recorded_time() {
  std::tm time{};
  time.tm_year = 125;
  time.tm_mon = 2;
  time.tm_mday = 14;
  time.tm_hour = 15;
  time.tm_min = 9;
  time.tm_sec = 26;
  time.tm_wday = 5;
  time.tm_yday = 72;
  return time;
}

Value read(const std::filesystem::path& path) {
  return parse_json_value(read_file(path), path.string());
}

std::string text_at(const Value& object, std::string_view key) {
  const Value* found = object.mapping()->find(key);
  return found != nullptr && found->text() != nullptr ? *found->text() : "";
}

// What a template prints, or "error: " and the message.
std::string outcome(std::string_view source, const Mapping& variables, RenderOptions options = {}) {
  options.clock = recorded_time;
  try {
    return Template(source, "t").render(variables, options);
  } catch (const Error& error) {
    return std::string("error: ") + error.what();
  }
}

// A case holds either `output` or `error`, "<type>: <text>", whose text must be part of ours.
void expect_case(const Value& one, const std::string& source, const Mapping& variables) {
  const std::string got = outcome(source, variables);
  const Value* output = one.mapping()->find("output");
  if (output != nullptr) {
    EXPECT_EQ(got, *output->text()) << source;
    return;
  }
  const std::string error = text_at(one, "error");
  EXPECT_TRUE(got.starts_with("error: ")) << source << "\nprinted " << got << "\nwanted " << error;
  if (error.starts_with("TemplateError: ")) {
    EXPECT_NE(got.find(error.substr(error.find(": ") + 2)), std::string::npos) << got;
  }
}

void expect_features(const std::filesystem::path& path) {
  const Value all = read(path);
  const Mapping& context = *all.mapping()->find("context")->mapping();
  for (const Value& one : *all.mapping()->find("cases")->list()) {
    expect_case(one, text_at(one, "template"), context);
  }
}

TEST(Jinja, RendersEveryFeatureAsJinjaDoes) {
  if (!data_folder()) {
    GTEST_SKIP() << no_data_folder;
  }
  expect_features(*data_folder() / "jinja-features" / "cases.json");
}

// Files of the same form as jinja-features, one a subject: tests/oracle/jinja/README.md.
TEST(Jinja, RendersEveryRecordedTemplateAsJinjaDoes) {
  int64_t files = 0;
  for (const std::string& name : list_folder(oracle_folder() / "jinja")) {
    if (name.ends_with(".json")) {
      SCOPED_TRACE(name);
      expect_features(oracle_folder() / "jinja" / name);
      ++files;
    }
  }
  EXPECT_GT(files, 0);
}

TEST(Jinja, RendersEveryPublishedTemplateAsJinjaDoes) {
  if (!data_folder()) {
    GTEST_SKIP() << no_data_folder;
  }
  int64_t cases = 0;
  for (const std::string& name : list_folder(*data_folder() / "chat-templates")) {
    if (!name.ends_with(".json")) {
      continue;
    }
    const Value all = read(*data_folder() / "chat-templates" / name);
    for (const Value& one : *all.mapping()->find("cases")->list()) {
      SCOPED_TRACE(name + " " + text_at(one, "name"));
      Mapping variables = *one.mapping()->find("inputs")->mapping();
      variables.set("bos_token", text_at(all, "bos_token"));
      variables.set("eos_token", text_at(all, "eos_token"));
      expect_case(one, text_at(all, "chat_template"), variables);
      ++cases;
    }
  }
  EXPECT_GT(cases, 100);
}

}  // namespace
}  // namespace ingot::jinja
