#include "ingot/eval/task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "ingot/eval/needle.h"
#include "ingot/eval/run_task.h"
#include "ingot/eval/win_rate.h"
#include "tests/support/message.h"
#include "tests/support/paths.h"

namespace ingot::testing {
namespace {

using ::testing::HasSubstr;

// A model of bytes that gives a byte the probability that its table says, and writes one text.
EvalModel stand_in(std::map<char, double> chances, std::string says = "") {
  EvalModel out;
  out.context = 1000;
  out.empty_context = '\n';
  out.encode = [](std::string_view text, bool, bool) {
    return EvalModel::Ids(text.begin(), text.end());
  };
  out.score = [chances](std::span<const EvalModel::Question> questions) {
    std::vector<EvalModel::Score> scores;
    for (const EvalModel::Question& question : questions) {
      EvalModel::Score score;
      for (const int64_t id : question.continuation) {
        const auto found = chances.find(static_cast<char>(id));
        const double p = found == chances.end() ? 0.01 : found->second;
        score.log_probability += std::log(p);
        score.greedy = score.greedy && p > 0.5;
      }
      scores.push_back(score);
    }
    return scores;
  };
  out.text_score = [](std::span<const int64_t> ids, int64_t known) {
    return std::log(0.5) * static_cast<double>(static_cast<int64_t>(ids.size()) - known);
  };
  out.write = [says](std::span<const EvalModel::Prompt> prompts) {
    return std::vector<EvalModel::Written>(prompts.size(), {says, true});
  };
  return out;
}

class Tasks : public ::testing::Test {
 protected:
  std::string put(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder / name, std::ios::binary) << bytes;
    return (folder / name).string();
  }
  std::map<std::string, Estimate> scores(const std::string& toml, const EvalModel& model) const {
    const TaskConfig task = read_task(put("task.toml", toml));
    const TaskItems items = task_items(task, folder.path(), 0, 1);
    return summary(task, run_task(model, task, items.items, {}, {}));
  }

  TemporaryFolder folder;
};

TEST_F(Tasks, OfChoicesScoreLikelihoodAlsoByLength) {
  put("rows.jsonl", R"({"q": "Q", "options": ["aa", "bbbb"], "right": 0})"
                    "\n"
                    R"({"q": "Q", "options": ["c", "bbbb"], "right": 1})"
                    "\n");
  const std::string toml =
      "name = \"t\"\nkind = \"choice\"\nfiles = [\"rows.jsonl\"]\nprompt = \"{{ q }}\"\n"
      "choices = [\"{{ options | tojson }}\"]\ngold = \"{{ right }}\"\n";
  // ln p: " aa" = ln .01 + 2 ln .4, " bbbb" = ln .01 + 4 ln .5, " c" = ln .01 + ln .01
  const auto found = scores(toml, stand_in({{'a', 0.4}, {'b', 0.5}}));
  EXPECT_DOUBLE_EQ(found.at("acc").value, 1.0);  // −1.83 > −2.77; −2.77 > −4.6
  // By characters: (−4.6 − 1.83)/2 = −3.2 < (−4.6 − 2.77)/4 = −1.8, so the first is wrong.
  EXPECT_DOUBLE_EQ(found.at("acc_norm").value, 0.5);
  EXPECT_DOUBLE_EQ(found.at("acc_norm").error, 0.5);  // s = √½, /√2
  EXPECT_DOUBLE_EQ(found.at("acc").error, 0.0);
}

TEST_F(Tasks, OfContextsContinuationsAndWritingScoreByTheirKinds) {
  put("rows.jsonl",
      R"({"beginnings": ["xxa", "xxb"], "end": "b.", "gold": 1, "answer": "Onion", "others": ["bulb"]})"
      "\n");
  const auto contexts = scores(
      "name = \"t\"\nkind = \"contexts\"\nfiles = [\"rows.jsonl\"]\ncontexts = [\"{{ beginnings | "
      "tojson }}\"]\n"
      "target = \"{{ end }}\"\ngold = \"{{ gold }}\"\n",
      stand_in({}));
  EXPECT_DOUBLE_EQ(contexts.at("acc").value, 0);  // equal likelihoods: the first is taken
  const std::string end =
      "name = \"t\"\nkind = \"continuation\"\nfiles = [\"rows.jsonl\"]\nprompt = \"p\"\ntarget = "
      "\"bb\"\ndelimiter = \"\"\n";
  const auto said = scores(end, stand_in({{'b', 0.6}}));
  EXPECT_DOUBLE_EQ(said.at("acc").value, 1);
  EXPECT_NEAR(said.at("perplexity").value, 1 / 0.36, 1e-12);
  const std::string writing =
      "name = \"t\"\nkind = \"generate\"\nfiles = [\"rows.jsonl\"]\nprompt = \"p\"\ntarget = \"{{ "
      "answer }}\"\n"
      "aliases = \"{{ others | tojson }}\"\nnormalize = \"trivia\"\nextract = [\"first_line\"]\n";
  EXPECT_DOUBLE_EQ(scores(writing, stand_in({}, " The BULB!\nmore")).at("exact_match").value, 1);
  EXPECT_DOUBLE_EQ(scores(writing, stand_in({}, "leek")).at("exact_match").value, 0);
  put("a.txt", "one two\n\nthree");
  const auto text =
      scores("name = \"t\"\nkind = \"text\"\nfiles = [\"a.txt\"]\nprompt = \"{{ text }}\"\n",
             stand_in({}));
  EXPECT_NEAR(text.at("bits_per_byte").value, 1, 1e-12);
  EXPECT_NEAR(text.at("byte_perplexity").value, 2, 1e-12);
  EXPECT_NEAR(text.at("word_perplexity").value, std::pow(2, 15.0 / 3),
              1e-9);  // 14 bytes and a line end
}

TEST_F(Tasks, PutExamplesBeforeTheQuestionAndNeverTheQuestionItself) {
  std::string rows;
  for (int i = 0; i < 5; ++i) {
    rows += "{\"q\": \"Q" + std::to_string(i) + "\", \"a\": \"A" + std::to_string(i) + "\"}\n";
  }
  put("rows.jsonl", rows);
  const std::string toml =
      "name = \"t\"\nkind = \"continuation\"\nfiles = [\"rows.jsonl\"]\nprompt = \"{{ q }}:\"\n"
      "target = \"{{ a }}\"\nshots = 2\ndescription = \"About {{ _file }}.\\n\\n\"\nshot_delimiter "
      "= \"|\"\n";
  const TaskConfig task = read_task(put("task.toml", toml));
  const TaskItems items = task_items(task, folder.path(), 0, 1);
  EXPECT_EQ(items.items[0].prompt, "About rows.\n\nQ1: A1|Q2: A2|Q0:");
  EXPECT_EQ(items.items[4].prompt, "About rows.\n\nQ0: A0|Q1: A1|Q4:");
  EXPECT_EQ(items.shots_hash.size(), 32u);
  const TaskConfig drawn = read_task(folder / "task.toml", {"shot_order=drawn"});
  EXPECT_NE(task_items(drawn, folder.path(), 0, 1).shots_hash, items.shots_hash);
  EXPECT_EQ(task_items(drawn, folder.path(), 0, 1).shots_hash,
            task_items(drawn, folder.path(), 0, 1).shots_hash);
  EXPECT_EQ(task_items(task, folder.path(), 2, 1).items.size(), 2u);
}

TEST_F(Tasks, ContinueWhereTheyWereStopped) {
  std::string rows;
  for (int i = 0; i < 10; ++i) {
    rows += "{\"q\": \"Q\", \"a\": \"" + std::string(i % 2 == 0 ? "b" : "x") + "\"}\n";
  }
  put("rows.jsonl", rows);
  const TaskConfig task =
      read_task(put("task.toml",
                    "name = \"t\"\nkind = \"continuation\"\nfiles = [\"rows.jsonl\"]\nprompt = "
                    "\"{{ q }}\"\ntarget = \"{{ a }}\"\ndelimiter = \"\"\n"));
  const TaskItems items = task_items(task, folder.path(), 0, 1);
  const EvalModel model = stand_in({{'b', 0.9}});
  std::vector<ItemResult> kept;
  RunTaskOptions options;
  options.batch = 3;
  options.on_results = [&](const std::vector<ItemResult>& results) {
    kept.insert(kept.end(), results.begin(), results.end());
    return kept.size() < 6;
  };
  EXPECT_EQ(run_task(model, task, items.items, {}, options).size(), 6u);
  int64_t asked = 0;
  options.on_results = [&](const std::vector<ItemResult>& results) {
    asked += static_cast<int64_t>(results.size());
    return true;
  };
  const auto all = run_task(model, task, items.items, kept, options);
  EXPECT_EQ(asked, 4);
  EXPECT_EQ(all.size(), 10u);
  EXPECT_DOUBLE_EQ(summary(task, all).at("acc").value, 0.5);
}

TEST_F(Tasks, NameWhatIsWrongInThem) {
  put("rows.jsonl", R"({"q": "Q", "options": ["a"], "right": 7})"
                    "\n");
  const auto refused = [&](const std::string& toml, ErrorKind kind) {
    return message_of(kind, [&] { scores(toml, stand_in({})); });
  };
  EXPECT_THAT(refused("name = \"t\"\nfiles = [\"rows.jsonl\"]\n", ErrorKind::config),
              HasSubstr("a task of the kind choice needs `choices and gold`"));
  EXPECT_THAT(refused("name = \"t\"\nfile = 1\n", ErrorKind::config), HasSubstr("file"));
  const std::string start = "name = \"t\"\nfiles = [\"rows.jsonl\"]\nprompt = \"{{ q }}\"\n";
  EXPECT_THAT(
      refused(start + "choices = [\"a\", \"b\"]\ngold = \"{{ right }}\"\n", ErrorKind::format),
      HasSubstr("rows.jsonl:1: gold '7' is none of the 2 choices"));
  EXPECT_THAT(
      refused(start + "choices = [\"{{ options | tojson }}\"]\ngold = \"0\"\n", ErrorKind::format),
      HasSubstr("1 choices; at least two"));
  EXPECT_THAT(
      refused(start + "choices = [\"a\", \"b\"]\ngold = \"0\"\nshots = 3\n", ErrorKind::config),
      HasSubstr("3 examples from 1 rows"));
  EXPECT_THAT(message_of(ErrorKind::config,
                         [&] {
                           const TaskConfig task = read_task(
                               put("t.toml", start + "choices = [\"a\", \"b\"]\ngold = \"0\"\n"));
                           RunTaskOptions options;
                           options.chat = true;
                           run_task(stand_in({}), task, task_items(task, folder.path(), 0, 1).items,
                                    {}, options);
                         }),
              HasSubstr("the model has no chat template"));
}

TEST(TextTasks, OfTextsWithoutAByteAreAnErrorAndNoFigure) {
  TaskConfig task;
  task.name = "text";
  task.kind = "text";
  const auto row = [](double bytes) {
    return ItemResult{
        0, {{"log_likelihood", -bytes}, {"words", 1}, {"bytes", bytes}, {"tokens", bytes}}, ""};
  };
  EXPECT_THAT(message_of(ErrorKind::format,
                         [&] {
                           summary(task, {row(0), row(0)});
                         }),
              HasSubstr("text: nothing to measure: 2 texts without a byte"));
  EXPECT_NEAR(summary(task, {row(0), row(8)}).at("bits_per_byte").value, 1 / std::log(2.0), 1e-12);
}

// Every task of recipes/tasks reads its files.
TEST(TaskFiles, ReadTheirDataAndKnowTheAnswers) {
  if (!data_folder()) {
    GTEST_SKIP() << no_data_folder;
  }
  const auto folder = program().parent_path().parent_path().parent_path() / "recipes" / "tasks";
  int64_t tasks = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const TaskConfig task = read_task(entry.path());
    EXPECT_EQ(entry.path().stem(), task.name);
    const TaskItems items = task_items(task, *data_folder(), 20, 1);
    EXPECT_GE(items.items.size(), 1u) << task.name;
    for (const TaskItem& item : items.items) {
      EXPECT_THAT(item.prompt, ::testing::Not(HasSubstr("Undefined"))) << task.name;
      EXPECT_FALSE(task.kind != "ifeval" && task.kind != "text" && item.answers.at(0).empty())
          << task.name << item.place;
    }
    ++tasks;
  }
  EXPECT_GE(tasks, 25);
}

TEST(EvalModels, GiveBlanksBetweenContextAndAnswerToTheAnswer) {
  const EvalModel model = stand_in({});
  const EvalModel::Question question = question_of(model, "Q: ", " A");
  EXPECT_EQ(question.context, (EvalModel::Ids{'Q', ':'}));
  EXPECT_EQ(question.continuation, (EvalModel::Ids{' ', ' ', 'A'}));
  EXPECT_EQ(question_of(model, "", "A").context, (EvalModel::Ids{'\n'}));
}

TEST(Statistics, AreThoseOfTheirFormulas) {
  const std::vector<double> values = {1, 0, 0, 1, 1};
  EXPECT_DOUBLE_EQ(mean_of(values).value, 0.6);
  EXPECT_NEAR(mean_of(values).error, std::sqrt(0.3 / 5), 1e-15);  // s² = 1.2/4
  EXPECT_DOUBLE_EQ(mean_of(std::vector<double>{3}).error, 0);
  // Wilson's interval of 7 of 10: R's prop.test(7, 10, correct = FALSE) gives 0.3967781 to
  // 0.8922087.
  EXPECT_NEAR(wilson_interval(0.7, 10).low, 0.3967781, 1e-6);
  EXPECT_NEAR(wilson_interval(0.7, 10).high, 0.8922087, 1e-6);
  EXPECT_DOUBLE_EQ(pair_accuracy(std::vector<double>{2, 1, 1}, std::vector<double>{1, 1, 2}).value,
                   0.5);
  EXPECT_THAT(message_of(ErrorKind::argument, [] { pair_accuracy(std::vector<double>{1}, {}); }),
              HasSubstr("1 chosen scores, 0 rejected ones"));
  EXPECT_THAT(message_of(ErrorKind::numeric,
                         [] { pair_accuracy(std::vector<double>{NAN}, std::vector<double>{0}); }),
              HasSubstr("pair 0 are nan and 0"));
}

TEST(WinRates, CountATieAsHalfAndKnowAJudgeThatLooksAtThePlace) {
  EXPECT_EQ(verdict_of("[[A]] at first, but then [[B]]"), Verdict::second);
  EXPECT_EQ(verdict_of("no idea"), Verdict::none);
  const Comparison win{Verdict::first, Verdict::second, 0},
      loss{Verdict::second, Verdict::first, 0}, tie{Verdict::tie, Verdict::tie, 0},
      biased{Verdict::first, Verdict::first, 0}, broken{Verdict::none, Verdict::tie, 0};
  const WinRate rate = win_rate(std::vector<Comparison>{win, win, loss, tie, broken});
  EXPECT_DOUBLE_EQ(rate.rate, 2.5 / 4);
  EXPECT_EQ(rate.unparsable, 1);
  EXPECT_LT(rate.interval.low, 0.625);
  const WinRate always_first = win_rate(std::vector<Comparison>(10, biased));
  EXPECT_DOUBLE_EQ(always_first.position_bias(), 1);
  EXPECT_DOUBLE_EQ(always_first.rate, 0.5);
}

TEST(WinRates, AtEqualLengthTakeAPlantedPreferenceForLongAnswersOut) {
  std::vector<Comparison> comparisons;
  for (int i = 0; i < 400; ++i) {  // the longer answer wins, and ours is longer in three of four
    const bool longer = i % 4 != 0;
    const double difference = (longer ? 1 : -1) * (50.0 + i % 100);
    const bool wins = i % 7 == 0 ? !longer : longer;  // but for one in seven
    comparisons.push_back({wins ? Verdict::first : Verdict::second,
                           wins ? Verdict::second : Verdict::first, difference});
  }
  const WinRate rate = win_rate(comparisons);
  EXPECT_GT(rate.rate, 0.65);
  EXPECT_NEAR(rate.length_controlled, 0.5, 0.08);
}

TEST(Needles, AreFoundByAModelThatReadsThem) {
  EvalModel model = stand_in({});
  model.context = 2000;
  model.score = [](std::span<const EvalModel::Question> questions) {
    std::vector<EvalModel::Score> scores;
    for (const EvalModel::Question& question : questions) {
      const std::string text(question.context.begin(), question.context.end());
      const std::string answer(question.continuation.begin(), question.continuation.end());
      const bool there = text.find("house is" + answer + ".") != std::string::npos;
      scores.push_back({there ? -1.0 : -5.0, there});
    }
    return scores;
  };
  NeedleConfig config;
  config.lengths = {400, 1000};
  config.trials = 4;
  config.depths = 3;
  const auto scores = needle_scores(model, config);
  ASSERT_EQ(scores.size(), 6u);
  for (const NeedleScore& score : scores) {
    EXPECT_DOUBLE_EQ(score.accuracy.value, 1);
    EXPECT_DOUBLE_EQ(score.greedy.value, 1);
  }
  config.lengths = {3000};
  EXPECT_THAT(message_of(ErrorKind::config, [&] { needle_scores(model, config); }),
              HasSubstr("beyond the model's context of 2000"));
  config.lengths = {20};
  EXPECT_THAT(message_of(ErrorKind::config, [&] { needle_scores(model, config); }),
              HasSubstr("has no room for needle and question"));
}

}  // namespace
}  // namespace ingot::testing
