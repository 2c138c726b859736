#include "ingot/eval/answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "ingot/base/json_library.h"
#include "ingot/eval/ifeval.h"
#include "ingot/text/jinja_json.h"
#include "tests/support/message.h"
#include "tests/support/paths.h"

namespace ingot::testing {
namespace {

using ::testing::HasSubstr;

TEST(Answers, AreFoundByTheRulesOfTheUsualGraders) {
  EXPECT_EQ(gsm8k_strict("Work: 3+4=7.\n#### 1,234.\n#### 9"), "1,234.");
  EXPECT_EQ(gsm8k_strict("#### -497"), "-497");
  EXPECT_EQ(gsm8k_strict("####244 and ####  3"), "[invalid]");
  EXPECT_EQ(gsm8k_flexible("I think 12 and 13, so $5,330.50 and -7 now"), "-7");
  EXPECT_EQ(gsm8k_flexible("The final answer is $74,092."), "$74,092.");
  EXPECT_EQ(gsm8k_flexible("none"), "[invalid]");
  EXPECT_EQ(gsm8k_normalized("so #### $74,092."), "74092");
  EXPECT_EQ(boxed("\\boxed{1} then \\boxed{\\frac{1}{2}}"), "\\frac{1}{2}");
  EXPECT_EQ(boxed("\\boxed{1"), std::nullopt);
  EXPECT_EQ(option_letter("The answer is (C).", 'E'), "C");
  EXPECT_EQ(option_letter("A dog said B", 'E'), "B");
  EXPECT_EQ(option_letter("nothing", 'E'), "[invalid]");
  EXPECT_EQ(trivia_normalized("The  Eiffel-Tower, in a Town!"), "eiffel tower in town");
  EXPECT_EQ(normalized("number", "51.0"), normalized("number", "$51."));
  EXPECT_THAT(message_of(ErrorKind::config, [] { extracted("last", ""); }),
              HasSubstr("extract: there is no rule 'last'"));
  EXPECT_THAT(message_of(ErrorKind::config, [] { normalized("x", ""); }),
              HasSubstr("normalize: there is no rule 'x'"));
}

TEST(Answers, AgreeWithEveryCaseOfTheDataFolder) {
  if (!data_folder()) {
    GTEST_SKIP() << no_data_folder;
  }
  std::ifstream file(*data_folder() / "task-wordproblems/extraction_cases.json");
  const auto cases = nlohmann::json::parse(file)["cases"];
  ASSERT_GT(cases.size(), 40u);
  for (const auto& one : cases) {
    const auto text = one["completion"].get<std::string>();
    const std::string gold = gsm8k_normalized(one["gold"].get<std::string>());
    EXPECT_EQ(gsm8k_strict(text), one["strict_extract"]) << text;
    EXPECT_EQ(gsm8k_normalized(gsm8k_strict(text)) == gold, one["strict_match"]) << text;
    EXPECT_EQ(gsm8k_flexible(text), one["flexible_extract"]) << text;
    EXPECT_EQ(gsm8k_normalized(gsm8k_flexible(text)) == gold, one["flexible_match"]) << text;
    EXPECT_EQ(boxed(text).has_value() ? nlohmann::json(*boxed(text)) : nlohmann::json(),
              one["boxed"])
        << text;
  }
}

// 500 graded solutions of two models: what "A: 18" says, against the verdict in the file.
TEST(Answers, OfGradedSolutionsHaveTheirVerdicts) {
  if (!data_folder()) {
    GTEST_SKIP() << no_data_folder;
  }
  std::ifstream file(*data_folder() / "task-gsm8k/model_solutions_graded.jsonl");
  int64_t solutions = 0, agreed = 0;
  for (std::string line; std::getline(file, line);) {
    const auto row = nlohmann::json::parse(line);
    const auto answer = [](const std::string& text) {
      const size_t at = text.rfind("A: ");
      return at == std::string::npos ? std::string()
                                     : normalized("number", gsm8k_flexible(text.substr(at)));
    };
    const std::string gold = answer(row["ground_truth"].get<std::string>());
    for (const auto& [key, value] : row.items()) {
      if (value.is_object() && value.contains("solution")) {
        ++solutions;
        agreed += (answer(value["solution"].get<std::string>()) == gold) ==
                          value["is_correct"].get<bool>()
                      ? 1
                      : 0;
      }
    }
  }
  ASSERT_GT(solutions, 900);
  EXPECT_GE(static_cast<double>(agreed) / static_cast<double>(solutions), 0.99);
}

struct Case {
  const char* id;
  const char* arguments;
  std::vector<const char*> follow, differ;
};

TEST(Ifeval, VerifiesEveryKindOfInstruction) {
  const std::vector<Case> cases = {
      {"keywords:existence",
       R"({"keywords": ["Mom", "mother"]})",
       {"My MOTHER is a mom."},
       {"My mother."}},
      {"keywords:frequency",
       R"({"relation": "at least", "keyword": "story", "frequency": 2})",
       {"Story, story"},
       {"story"}},
      {"keywords:forbidden_words", R"({"forbidden_words": ["rock"]})", {"rocket"}, {"a Rock"}},
      {"keywords:letter_frequency",
       R"({"let_relation": "less than", "letter": "a", "let_frequency": 2})",
       {"Abc"},
       {"Aa"}},
      {"language:response_language",
       R"({"language": "de"})",
       {"Das ist nicht die Antwort und sie ist mit mir."},
       {"This is the answer and it is for you."}},
      {"length_constraints:number_sentences",
       R"({"relation": "less than", "num_sentences": 3})",
       {"One, Mr. Smith. Two!"},
       {"One. Two? Three."}},
      {"length_constraints:number_paragraphs",
       R"({"num_paragraphs": 2})",
       {"a\n***\nb"},
       {"a", "a\n***\n\n***\nb"}},
      {"length_constraints:number_words",
       R"({"relation": "at least", "num_words": 3})",
       {"one two, three"},
       {"one two"}},
      {"length_constraints:nth_paragraph_first_word",
       R"({"first_word": "weekend", "num_paragraphs": 2, "nth_paragraph": 2})",
       {"a\n\nWeekend, b"},
       {"weekend\n\nb", "a\n\nweekend\n\nc"}},
      {"detectable_content:number_placeholders",
       R"({"num_placeholders": 2})",
       {"[a] and [b]"},
       {"[a]"}},
      {"detectable_content:postscript",
       R"({"postscript_marker": "P.S."})",
       {"Hi\nP.S. more"},
       {"Hi"}},
      {"detectable_format:number_bullet_lists",
       R"({"num_bullets": 2})",
       {"* a\n* b"},
       {"* a", "* a\n- b\n- c"}},
      {"detectable_format:constrained_response", "{}", {"Well. My answer is maybe."}, {"yes"}},
      {"detectable_format:number_highlighted_sections",
       R"({"num_highlights": 2})",
       {"*a* and *b*"},
       {"*a*", "* * and *b*"}},
      {"detectable_format:multiple_sections",
       R"({"section_spliter": "SECTION", "num_sections": 2})",
       {"SECTION 1\na\nSECTION 2\nb"},
       {"SECTION 1"}},
      {"detectable_format:json_format", "{}", {"```json\n{\"a\": 1}\n```", "[1]"}, {"{a}"}},
      {"detectable_format:title", "{}", {"<<A title>>\ntext"}, {"<< >>", "title"}},
      {"combination:two_responses", "{}", {"a\n******\nb"}, {"a\n******\na", "a"}},
      {"combination:repeat_prompt",
       R"({"prompt_to_repeat": "Do this."})",
       {"do THIS. Done."},
       {"Done."}},
      {"startend:end_checker",
       R"({"end_phrase": "Any questions?"})",
       {"Hi. any questions?"},
       {"Any questions? No."}},
      {"startend:quotation", "{}", {"\"said\""}, {"\"said"}},
      {"change_case:capital_word_frequency",
       R"({"capital_relation": "at least", "capital_frequency": 2})",
       {"A BIG dog"},
       {"a BIG dog"}},
      {"change_case:english_capital", "{}", {"THE BIG DOG AND THE CAT"}, {"The BIG"}},
      {"change_case:english_lowercase", "{}", {"the big dog and the cat"}, {"The big"}},
      {"punctuation:no_comma", "{}", {"a b"}, {"a, b"}}};
  EXPECT_EQ(cases.size(), ifeval_kinds().size());
  for (const Case& one : cases) {
    const jinja::Value arguments = jinja::parse_json_value(one.arguments, "case");
    for (const char* text : one.follow) {
      EXPECT_TRUE(follows_strictly(one.id, *arguments.mapping(), text)) << one.id << ": " << text;
    }
    for (const char* text : one.differ) {
      EXPECT_FALSE(follows_strictly(one.id, *arguments.mapping(), text)) << one.id << ": " << text;
    }
  }
  const jinja::Mapping none;
  EXPECT_FALSE(follows_strictly("punctuation:no_comma", none, "Sure, here:\nno comma"));
  EXPECT_TRUE(follows_loosely("punctuation:no_comma", none, "Sure, here:\nno comma"));
  EXPECT_THAT(message_of(ErrorKind::format, [&] { follows("x:y", none, ""); }),
              HasSubstr("there is no instruction 'x:y'"));
  EXPECT_THAT(message_of(ErrorKind::format, [&] { follows("keywords:existence", none, ""); }),
              HasSubstr("no keywords is given"));
}

TEST(Ifeval, AgreesWithTheVerdictsOfAnotherChecker) {
  if (!data_folder()) {
    GTEST_SKIP() << no_data_folder;
  }
  std::map<int64_t, nlohmann::json> prompts;
  std::ifstream inputs(*data_folder() / "task-ifeval/input_data.jsonl");
  for (std::string line; std::getline(inputs, line);) {
    const auto row = nlohmann::json::parse(line);
    prompts[row["key"].get<int64_t>()] = row;
  }
  std::ifstream verdicts(*data_folder() / "task-ifeval/verdicts_a.jsonl");
  std::map<std::string, std::pair<int64_t, int64_t>> disagreed;  // by kind: differing, all
  int64_t all = 0, wrong = 0;
  for (std::string line; std::getline(verdicts, line);) {
    const auto row = nlohmann::json::parse(line);
    const auto& prompt = prompts.at(row["key"].get<int64_t>());
    for (size_t i = 0; i < row["instruction_id_list"].size(); ++i) {
      const auto id = row["instruction_id_list"][i].get<std::string>();
      const jinja::Value arguments = jinja::parse_json_value(prompt["kwargs"][i].dump(), "kwargs");
      const auto response = row["response"].get<std::string>();
      for (const bool strict : {true, false}) {
        const bool ours = strict ? follows_strictly(id, *arguments.mapping(), response)
                                 : follows_loosely(id, *arguments.mapping(), response);
        const bool theirs = row[strict ? "strict" : "loose"][i].get<bool>();
        ++all;
        ++disagreed[id].second;
        if (ours != theirs) {
          ++wrong;
          ++disagreed[id].first;
        }
      }
    }
  }
  std::string table;
  for (const auto& [id, count] : disagreed) {
    if (count.first > 0) {
      table +=
          id + ": " + std::to_string(count.first) + " of " + std::to_string(count.second) + "\n";
    }
  }
  EXPECT_LE(static_cast<double>(wrong), 0.03 * static_cast<double>(all)) << table;
  RecordProperty("disagreements", table);
}

}  // namespace
}  // namespace ingot::testing
