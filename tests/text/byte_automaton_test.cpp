#include "ingot/text/byte_automaton.h"

#include <gtest/gtest.h>

#include <regex>

#include "ingot/base/philox.h"
#include "ingot/text/jinja_json.h"
#include "ingot/text/json_schema.h"
#include "ingot/text/utf8.h"
#include "tests/support/message.h"

namespace ingot::testing {
namespace {

bool matches(const std::string& pattern, const std::string& text) {
  return ByteAutomaton(pattern, "test").matches(text);
}

TEST(ByteAutomaton, MatchesWholeTexts) {
  EXPECT_TRUE(matches("ab*c", "abbbc"));
  EXPECT_TRUE(matches("ab*c", "ac"));
  EXPECT_FALSE(matches("ab*c", "abcd"));
  EXPECT_FALSE(matches("ab*c", "ab"));
  EXPECT_TRUE(matches("(yes|no)", "no"));
  EXPECT_TRUE(matches("^(?:a|bc){2,3}$", "abca"));
  EXPECT_FALSE(matches("(a|bc){2,3}", "a"));
  EXPECT_FALSE(matches("(a|bc){2,3}", "aaaa"));
  EXPECT_TRUE(matches("x{3}", "xxx"));
  EXPECT_TRUE(matches("x{2,}", "xxxxx"));
  EXPECT_TRUE(matches("x{0}y?", ""));
  EXPECT_TRUE(matches("a+?b??", "aa"));
  EXPECT_TRUE(matches("", ""));
  EXPECT_TRUE(matches("a||b", ""));
  EXPECT_TRUE(matches(R"(\d+\.\d{2})", "12.34"));
  EXPECT_TRUE(matches(R"([\w-]+\s\x41\u00e9)", "a-b Aé"));
  EXPECT_FALSE(matches(".", "\n"));
}

TEST(ByteAutomaton, ReadsCharactersOfSeveralBytes) {
  EXPECT_TRUE(matches("[à-ü]+", "éèü"));
  EXPECT_FALSE(matches("[à-ü]", "ÿ"));
  EXPECT_TRUE(matches("[^a]", "漢"));
  EXPECT_TRUE(matches(".{2}", "😀é"));
  EXPECT_FALSE(matches(".", "é\xC3"));
  ByteAutomaton any(".*", "test");
  EXPECT_EQ(any.walk(any.start(), "\xED\xA0"), ByteAutomaton::dead);  // a surrogate
  EXPECT_EQ(any.walk(any.start(), "\xC0"), ByteAutomaton::dead);      // no shortest form
  EXPECT_NE(any.walk(any.start(), "\xF0\x9F"), ByteAutomaton::dead);
}

// Every character of a range and none beside it, at the places where encodings change.
TEST(ByteAutomaton, CutsRangesOfCharactersExactly) {
  const std::vector<std::pair<std::string, std::string>> ranges = {{"\\x20", "\\u0100"},
                                                                   {"\\u07f0", "\\u0810"},
                                                                   {"\\ud000", "\\ue010"},
                                                                   {"\\uffe0", "\U00010020"}};
  const auto code_of = [](const std::string& text) {
    return text[0] == '\\' ? static_cast<char32_t>(std::stoul(text.substr(2), nullptr, 16))
                           : utf8_char(text.data()).code;
  };
  for (const auto& [low, high] : ranges) {
    ByteAutomaton one("[" + low + "-" + high + "]", "test");
    for (char32_t code = 1; code < 0x10100; ++code) {
      if (code >= 0xD800 && code <= 0xDFFF) {
        continue;
      }
      ASSERT_EQ(one.matches(utf8_of(code)), code >= code_of(low) && code <= code_of(high))
          << low << " " << high << " " << static_cast<uint32_t>(code);
    }
  }
}

// Against the standard library's engine, on random expressions and texts of two letters.
TEST(ByteAutomaton, AgreesWithAnotherEngineOnRandomExpressions) {
  const std::vector<std::string> pieces = {
      "a", "b", "(a|b)", "(ab)*", "[ab]?", "(a|ba)+", "(b{1,2}a)?", ".", "(?:aa|b*){2}", "|"};
  for (uint64_t round = 0; round < 200; ++round) {
    const Philox random({round, 0, 0});
    std::string pattern;
    for (uint64_t i = 0; i < 2 + random.word(99) % 4; ++i) {
      pattern += pieces[random.word(i) % pieces.size()];
    }
    ByteAutomaton own(pattern, "test");
    const std::regex other(pattern);
    for (uint64_t i = 0; i < 60; ++i) {
      std::string text;
      for (uint64_t n = 0; n < i % 9; ++n) {
        text += random.word(1000 + 16 * i + n) % 2 == 0 ? 'a' : 'b';
      }
      ASSERT_EQ(own.matches(text), std::regex_match(text, other)) << pattern << " on " << text;
    }
  }
}

TEST(ByteAutomaton, KnowsWhereNothingCanFollow) {
  ByteAutomaton automaton("ab?", "test");
  const auto a = automaton.walk(automaton.start(), "a");
  EXPECT_TRUE(automaton.accepts(a));
  EXPECT_FALSE(automaton.is_final(a));
  EXPECT_TRUE(automaton.is_final(automaton.walk(a, "b")));
}

TEST(ByteAutomaton, RefusesWhatItDoesNotUnderstandAndSaysWhere) {
  const auto refused = [](const std::string& pattern, const std::string& what) {
    const std::string message =
        message_of(ErrorKind::format, [&] { ByteAutomaton(pattern, "--regex"); });
    EXPECT_NE(message.find(what), std::string::npos) << message;
    EXPECT_EQ(message.rfind("--regex: the expression at ", 0), 0U) << message;
  };
  refused("(a", "a ) must stand here");
  refused("a)", "a ) that nothing opened");
  refused("[a", "a ] must stand here");
  refused("[]", "a ] must stand here");
  refused("*a", "a repeat of nothing");
  refused("a**", "a repeat of a repeat");
  refused("a{2,1}", "fewer repeats at most than at least");
  refused("a{x}", "a number of repeats from 0 to 10000 must stand here");
  refused("a{99999}", "a number of repeats from 0 to 10000 must stand here");
  refused("a{2", "a } must stand here");
  refused("a\\", "a \\ at the end");
  refused("\\ba", "\\b is not understood");
  refused("(a)\\1", "\\1 is not understood");
  refused("\\p{L}", "\\p is not understood");
  refused("(?=a)", "a group that looks around");
  refused("a^b", "an anchor within the expression");
  refused("[b-a]", "runs backwards");
  refused("[^\\x00-\U0010FFFF]", "a class without characters");
  refused("\\x4g", "2 hexadecimal digits must stand here");
  refused("\xFF", "no valid UTF-8");
  refused("((((((a{999}){999}){99}", "it takes more than 262144 steps");
  refused(std::string(300, '('), "groups lie more than 200 deep");
}

// A request may bring any expression: what its states hold is bounded, and so is the message.
TEST(ByteAutomaton, HoldsBoundedMemoryWhateverTheExpression) {
  ByteAutomaton automaton("(a{0,200}){0,200}", "--regex");
  const std::string message =
      message_of(ErrorKind::format, [&] { automaton.matches(std::string(2000, 'a')); });
  EXPECT_EQ(message,
            "--regex: the expression's states take more than 16777216 steps; nest fewer repeats");
  const std::string long_one =
      message_of(ErrorKind::format, [] { ByteAutomaton(std::string(5000, 'a') + "(", "--regex"); });
  EXPECT_LT(long_one.size(), 400U);
}

TEST(ByteAutomaton, QuotesWhatHasAMeaning) {
  const std::string text = R"(a.b*c[d](e){f}\g|h^i$j?k+)";
  EXPECT_TRUE(matches(automaton_quoted(text), text));
}

bool allows(const std::string& schema, const std::string& text) {
  return ByteAutomaton(pattern_of_schema(jinja::parse_json_value(schema, "schema")), "schema")
      .matches(text);
}

TEST(JsonSchema, KeepsToTypes) {
  EXPECT_TRUE(allows(R"({"type": "integer"})", "-12"));
  EXPECT_FALSE(allows(R"({"type": "integer"})", "012"));
  EXPECT_FALSE(allows(R"({"type": "integer"})", "1.5"));
  EXPECT_TRUE(allows(R"({"type": "number"})", "-0.25e-7"));
  EXPECT_FALSE(allows(R"({"type": "number"})", "1."));
  EXPECT_TRUE(allows(R"({"type": "boolean"})", "true"));
  EXPECT_TRUE(allows(R"({"type": ["null", "boolean"]})", "null"));
  EXPECT_TRUE(allows(R"({"type": "string"})", R"("a\"\u00e9\né")"));
  EXPECT_FALSE(allows(R"({"type": "string"})", "\"a\nb\""));
  EXPECT_FALSE(allows(R"({"type": "string", "maxLength": 2})", R"("abc")"));
  EXPECT_TRUE(allows(R"({"type": "string", "minLength": 2})", R"("é\n")"));
  EXPECT_TRUE(allows(R"({"enum": ["a", 2, null]})", "2"));
  EXPECT_FALSE(allows(R"({"enum": ["a", 2]})", "3"));
  EXPECT_TRUE(allows(R"({"const": "x.y"})", R"("x.y")"));
  EXPECT_TRUE(allows(R"({"anyOf": [{"type": "null"}, {"type": "integer"}]})", "7"));
}

TEST(JsonSchema, KeepsToObjectsWithOptionalProperties) {
  const std::string schema = R"({"type": "object", "required": ["b"], "additionalProperties": false,
    "properties": {"a": {"type": "integer"}, "b": {"type": "boolean"}, "c": {"type": "null"}}})";
  EXPECT_TRUE(allows(schema, R"({"a": 1, "b": true, "c": null})"));
  EXPECT_TRUE(allows(schema, R"({"b":true})"));
  EXPECT_TRUE(allows(schema, R"({"b": false,"c":null})"));
  EXPECT_FALSE(allows(schema, R"({"a": 1})"));
  EXPECT_FALSE(allows(schema, R"({"b": true, "a": 1})"));
  EXPECT_FALSE(allows(schema, R"({"b": true, "d": 1})"));
  const std::string optional =
      R"({"type": "object", "properties": {"a": {"type": "null"}, "b": {"type": "null"}}})";
  for (const char* text : {"{}", R"({"a": null})", R"({"b": null})", R"({"a": null, "b": null})"}) {
    EXPECT_TRUE(allows(optional, text)) << text;
  }
  EXPECT_FALSE(allows(optional, R"({, "b": null})"));
}

TEST(JsonSchema, KeepsToArraysAndReferences) {
  const std::string schema = R"({"type": "array", "minItems": 1, "maxItems": 3,
    "items": {"$ref": "#/$defs/id"}, "$defs": {"id": {"type": "integer"}}})";
  EXPECT_TRUE(allows(schema, "[1]"));
  EXPECT_TRUE(allows(schema, "[1, 2,3]"));
  EXPECT_FALSE(allows(schema, "[]"));
  EXPECT_FALSE(allows(schema, "[1, 2, 3, 4]"));
  EXPECT_TRUE(allows(R"({"type": "array", "items": {"type": "null"}})", "[]"));
  EXPECT_TRUE(allows(R"({"type": "array", "maxItems": 0, "items": {"type": "null"}})", "[]"));
}

TEST(JsonSchema, RefusesWhatItCannotPromise) {
  const auto refused = [](const std::string& schema, const std::string& what) {
    const std::string message = message_of(
        ErrorKind::format, [&] { pattern_of_schema(jinja::parse_json_value(schema, "schema")); });
    EXPECT_NE(message.find(what), std::string::npos) << message;
  };
  refused("[]", "schema: not an object");
  refused("{}", "schema: says no type, enum, const, anyOf or $ref");
  refused(R"({"type": "text"})", "schema: type: 'text' is not one of string");
  refused(R"({"type": "object"})", "schema: an object without properties");
  refused(R"({"type": "array"})", "schema: an array without items");
  refused(R"({"type": "integer", "minimum": 3})", "schema: minimum is not understood here");
  refused(R"({"type": "object", "properties": {"a": {"type": "string", "pattern": "x"}}})",
          "schema.properties.a: pattern is not understood here");
  refused(R"({"type": "object", "properties": {}, "required": ["a"]})",
          "required names a property that properties does not");
  refused(R"({"type": "string", "maxLength": -1})", "maxLength: no whole number from 0 to 1000");
  refused(R"({"enum": []})", "schema.enum: an empty list");
  refused(R"({"enum": [[1]]})", "schema.enum[0]: a list as a value");
  refused(R"({"$ref": "other.json"})", "$ref: 'other.json' is not within this schema");
  refused(R"({"$ref": "#/$defs/a"})", "$ref: there is no '#/$defs/a'");
  refused(R"({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}})", "or one recurs");
}

}  // namespace
}  // namespace ingot::testing
