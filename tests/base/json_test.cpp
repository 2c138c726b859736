#include "ingot/base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ingot/base/files.h"
#include "ingot/base/json_library.h"
#include "tests/support/message.h"
#include "tests/support/paths.h"

namespace ingot {
namespace {

using ::testing::HasSubstr;
using testing::message_of;
using ::testing::StartsWith;

const nlohmann::json config = nlohmann::json::parse(R"({
  "layers": 4, "rope": 1e4, "tied": true, "kind": "llama", "shape": [2, 3], "none": null,
  "names": ["a", "b"], "huge": 18446744073709551615})");

template <class T>
std::string field_error(std::string_view key) {
  return message_of(ErrorKind::format, [&] { json_field<T>(config, key, "config.json"); });
}

TEST(Json, NamesFileLineAndColumnOfAnError) {
  const testing::TemporaryFolder folder;
  const std::string path = (folder / "a.json").string();
  write_file(path, "{\n  \"a\": 1,\n  \"b\" 2\n}\n");
  EXPECT_THAT(message_of(ErrorKind::format, [&] { parse_json_file(path); }),
              StartsWith(path + ":3:7: not valid JSON: "));
  EXPECT_THAT(message_of(ErrorKind::format, [] { parse_json("", "x"); }),
              StartsWith("x:1:1: not valid JSON: "));
  EXPECT_THAT(message_of(ErrorKind::format, [] { parse_json("\"\xff\"", "x"); }),
              HasSubstr("ill-formed UTF-8"));
  EXPECT_THAT(message_of(ErrorKind::format, [] { parse_json("1e999", "x"); }),
              StartsWith("x: not valid JSON: "));
  EXPECT_THAT(message_of(ErrorKind::io, [&] { parse_json_file(folder / "absent"); }),
              HasSubstr("absent: cannot open the file"));
}

TEST(Json, SurvivesDeepNesting) { EXPECT_THROW(parse_json(std::string(1000000, '['), "x"), Error); }

TEST(Json, GivesFieldsTheirType) {
  EXPECT_EQ(json_field<int64_t>(config, "layers", "c"), 4);
  EXPECT_EQ(json_field<double>(config, "layers", "c"), 4.0);
  EXPECT_EQ(json_field<double>(config, "rope", "c"), 1e4);
  EXPECT_TRUE(json_field<bool>(config, "tied", "c"));
  EXPECT_EQ(json_field<std::string>(config, "kind", "c"), "llama");
  EXPECT_EQ(json_field<std::vector<int64_t>>(config, "shape", "c"), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(json_field<std::vector<std::string>>(config, "names", "c").size(), 2U);
}

TEST(Json, FallsBackWhereAFieldIsAbsentOrNull) {
  EXPECT_EQ(json_field_or<int64_t>(config, "heads", 7, "c"), 7);
  EXPECT_EQ(json_field_or<double>(config, "none", 0.5, "c"), 0.5);
  EXPECT_EQ(json_field_or<int64_t>(config, "layers", 7, "c"), 4);
}

TEST(Json, NamesTheKeyOfAMissingOrWrongField) {
  EXPECT_EQ(field_error<int64_t>("heads"), "config.json: heads: missing key: expected an integer");
  EXPECT_EQ(field_error<int64_t>("none"), "config.json: none: missing key: expected an integer");
  EXPECT_EQ(field_error<int64_t>("kind"),
            "config.json: kind: wrong type: expected an integer, got \"llama\"");
  EXPECT_EQ(field_error<int64_t>("rope"),
            "config.json: rope: wrong type: expected an integer, got 10000.0");
  EXPECT_EQ(field_error<int64_t>("huge"),
            "config.json: huge: wrong type: expected an integer, got 18446744073709551615");
  EXPECT_EQ(field_error<std::vector<int64_t>>("names"),
            "config.json: names: wrong type: expected a list, each item an integer, got "
            "[\"a\",\"b\"]");
  EXPECT_EQ(message_of(ErrorKind::format,
                       [] { json_field<bool>(nlohmann::json(3), "tied", "config.json"); }),
            "config.json: tied: looked up in what is not an object: 3");
}

}  // namespace
}  // namespace ingot
