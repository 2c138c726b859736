#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>

#include "ingot/base/config_diff.h"
#include "ingot/base/config_help.h"
#include "ingot/base/config_json.h"
#include "ingot/base/config_toml.h"
#include "ingot/base/describe.h"
#include "ingot/base/edit_distance.h"
#include "ingot/base/files.h"
#include "ingot/base/json_library.h"
#include "ingot/base/setting.h"
#include "tests/support/message.h"
#include "tests/support/paths.h"

namespace ingot {
namespace {

using ::testing::HasSubstr;
using testing::message_of;

struct Rule {
  double beta1 = 0.9;
  double eps = 1e-8;
  bool nesterov = false;
  template <class V>
  void describe(V& v) {
    v("beta1", beta1, half_open(0, 1), "decay of the first moment");
    v("eps", eps, above(0), "keeps the division finite");
    v("nesterov", nesterov, "look ahead");
  }
};

struct Optim {
  std::string kind = "adamw";
  Rule rule;
  template <class V>
  void describe(V& v) {
    v("kind", kind, one_of({"sgd", "adamw"}), "which rule");
    v.group("rule", rule, "its numbers");
  }
};

struct Recipe {
  Optim optim;
  int64_t steps = 1000;
  std::string text = "corpus.txt";
  std::vector<double> weights = {0.5, 0.25};
  std::vector<int64_t> layers;
  std::vector<std::string> files = {"a", "b"};
  std::optional<double> clip;
  std::optional<std::string> resume;
  std::optional<std::vector<int64_t>> stops;
  template <class V>
  void describe(V& v) {
    v.group("optim", optim, "the optimizer");
    v("steps", steps, at_least(1), "optimizer steps");
    v("text", text, "training text");
    v("weights", weights, in(0, 1), "share of each source");
    v("layers", layers, at_least(0), "layers to keep");
    v("files", files, "sources");
    v("clip", clip, above(0), "largest gradient norm");
    v("resume", resume, "checkpoint to continue");
    v("stops", stops, "token ids");
  }
};

Recipe from_toml(const std::string& text) {
  Recipe recipe;
  apply_settings(fields_of(recipe), toml_settings(text, "r.toml"));
  return recipe;
}

Recipe from_arguments(const std::vector<std::string>& arguments) {
  Recipe recipe;
  const Fields fields = fields_of(recipe);
  std::vector<Setting> settings;
  for (const std::string& argument : arguments) {
    settings.push_back(command_line_setting(fields, argument));
  }
  apply_settings(fields, settings);
  return recipe;
}

std::string toml_error(const std::string& text) {
  return message_of(ErrorKind::config, [&] { from_toml(text); });
}

std::string argument_error(const std::string& argument) {
  return message_of(ErrorKind::config, [&] { from_arguments({argument}); });
}

TEST(Config, ReadsEveryKindOfFieldFromToml) {
  const Recipe r = from_toml(R"(
steps = 2_000
text = "kjv.txt"
weights = [0.1, 1]
layers = [0, 2]
files = ["x"]
clip = 1
stops = []
optim.kind = "sgd"
[optim.rule]
beta1 = 0.8
nesterov = true
)");
  EXPECT_EQ(r.steps, 2000);
  EXPECT_EQ(r.text, "kjv.txt");
  EXPECT_EQ(r.weights, (std::vector<double>{0.1, 1.0}));
  EXPECT_EQ(r.layers, (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(r.files, std::vector<std::string>{"x"});
  EXPECT_EQ(r.clip, 1.0);
  EXPECT_EQ(r.stops, std::vector<int64_t>{});
  EXPECT_EQ(r.optim.kind, "sgd");
  EXPECT_EQ(r.optim.rule.beta1, 0.8);
  EXPECT_TRUE(r.optim.rule.nesterov);
}

TEST(Config, KeepsDefaultsOfKeysThatAreLeftOut) {
  const Recipe r = from_toml("");
  EXPECT_EQ(r.steps, 1000);
  EXPECT_EQ(r.optim.rule.beta1, 0.9);
  EXPECT_EQ(r.clip, std::nullopt);
}

TEST(Config, ReadsFilesAndNamesThemInErrors) {
  const testing::TemporaryFolder folder;
  const std::string path = (folder / "tiny.toml").string();
  write_file(path, "steps = 3\n");
  Recipe r;
  read_toml(path, r);
  EXPECT_EQ(r.steps, 3);
  write_file(path, "steps = 3\n\nsteeps = 4\n");
  EXPECT_EQ(message_of(ErrorKind::config, [&] { read_toml(path, r); }),
            path + ":3: steeps: no such key; the nearest is steps");
}

TEST(Config, NamesTheNearestKeyOfAnUnknownOne) {
  EXPECT_EQ(toml_error("step = 5"), "r.toml:1: step: no such key; the nearest is steps");
  EXPECT_EQ(toml_error("[optim]\n[optim.rule]\nbeta = 0.5"),
            "r.toml:3: optim.rule.beta: no such key; the nearest is optim.rule.beta1");
  EXPECT_EQ(toml_error("beta1 = 0.5"),
            "r.toml:1: beta1: no such key; the nearest is optim.rule.beta1");
  EXPECT_EQ(toml_error("\n[optimm]"), "r.toml:2: optimm: no such group; the nearest is optim");
}

TEST(Config, ReportsTheFirstErrorOfTheFile) {
  EXPECT_EQ(toml_error("text = 'a'\nzebra = 1\nanother = 1"),
            "r.toml:2: zebra: no such key; the nearest is text");
}

TEST(Config, NamesBothTypesWhereTheyDiffer) {
  EXPECT_EQ(toml_error("steps = 'many'"),
            "r.toml:1: steps: wrong type: expected an integer, got a text: \"many\"");
  EXPECT_EQ(toml_error("steps = 1e3"),
            "r.toml:1: steps: wrong type: expected an integer, got a number: 1000.0");
  EXPECT_EQ(toml_error("optim.rule.nesterov = 1"),
            "r.toml:1: optim.rule.nesterov: wrong type: expected true or false, got an integer: 1");
  EXPECT_EQ(toml_error("weights = 1.0"),
            "r.toml:1: weights: wrong type: expected a list of numbers, got a number: 1.0");
  EXPECT_EQ(toml_error("layers = [1, true]"),
            "r.toml:1: layers: wrong type: expected a list of integers, got a boolean in the list: "
            "true");
  EXPECT_EQ(toml_error("text = ['a']"),
            "r.toml:1: text: wrong type: expected a text, got a list: [\"a\"]");
  EXPECT_THAT(toml_error("steps = 2020-01-01"), HasSubstr("got a date or time"));
  EXPECT_THAT(toml_error("layers = [[1]]"), HasSubstr("got a list of other things"));
}

TEST(Config, NamesTheRangeOfAValueOutsideIt) {
  EXPECT_EQ(toml_error("steps = 0"), "r.toml:1: steps: out of range: got 0, allowed is at least 1");
  EXPECT_EQ(toml_error("optim.rule.beta1 = 1"),
            "r.toml:1: optim.rule.beta1: out of range: got 1.0, allowed is [0, 1)");
  EXPECT_EQ(toml_error("optim.rule.eps = 0.0"),
            "r.toml:1: optim.rule.eps: out of range: got 0.0, allowed is above 0");
  EXPECT_EQ(toml_error("weights = [0.5, 1.5]"),
            "r.toml:1: weights: out of range: got 1.5, allowed is [0, 1]");
  EXPECT_EQ(toml_error("optim.kind = 'adam'"),
            "r.toml:1: optim.kind: out of range: got \"adam\", allowed is one of sgd, adamw");
  EXPECT_EQ(toml_error("clip = nan"), "r.toml:1: clip: not a number: got nan");
}

TEST(Config, TellsGroupsFromKeys) {
  EXPECT_EQ(toml_error("optim = 'adamw'"),
            "r.toml:1: optim: is a group of keys, not one: got \"adamw\"; write optim.KEY = VALUE");
  EXPECT_EQ(toml_error("[steps]"),
            "r.toml:1: steps: is a single key, not a group; write steps = VALUE");
}

TEST(Config, PointsAtTheLineThatIsNotToml) {
  EXPECT_THAT(toml_error("steps = 1\ntext = \"open\nsteps"), HasSubstr("r.toml:2:"));
  EXPECT_THAT(toml_error("steps = 1\ntext = \"open\nsteps"), HasSubstr("not valid TOML: "));
  EXPECT_THAT(toml_error("steps = 1\nsteps = 2"), HasSubstr("r.toml:2:"));
}

TEST(Config, ChangesNothingWhenOneOfSeveralSettingsIsWrong) {
  Recipe r;
  EXPECT_THROW(apply_settings(fields_of(r), toml_settings("steps = 7\ntext = 1", "r")), Error);
  EXPECT_EQ(r.steps, 1000);
}

TEST(Config, TakesOverridesFromTheCommandLine) {
  const Recipe r = from_arguments({"steps=5", "steps=6", "optim.rule.beta1=0.5", "text=a b=c",
                                   "files=x,y", "weights=0.5,1", "layers=[1, 2]", "clip=2",
                                   "resume=step-1", "optim.rule.nesterov=true"});
  EXPECT_EQ(r.steps, 6);
  EXPECT_EQ(r.optim.rule.beta1, 0.5);
  EXPECT_EQ(r.text, "a b=c");
  EXPECT_EQ(r.files, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(r.weights, (std::vector<double>{0.5, 1}));
  EXPECT_EQ(r.layers, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(r.clip, 2.0);
  EXPECT_EQ(r.resume, "step-1");
  EXPECT_TRUE(r.optim.rule.nesterov);
}

TEST(Config, UnsetsOptionalFieldsWithAnEmptyOverride) {
  EXPECT_EQ(from_arguments({"clip=1", "clip="}).clip, std::nullopt);
  EXPECT_EQ(from_arguments({"text="}).text, "");
}

TEST(Config, ReadsATextOverrideAsTyped) {
  EXPECT_EQ(from_arguments({"text=12"}).text, "12");
  EXPECT_EQ(from_arguments({"text=\"quoted\""}).text, "quoted");
  EXPECT_EQ(from_arguments({"text=1\nsteps = 3"}).text, "1\nsteps = 3");
}

TEST(Config, ChecksOverridesLikeTheFile) {
  EXPECT_EQ(argument_error("steps"), "--set: no value: got steps; write --set steps=VALUE");
  EXPECT_EQ(argument_error("stepps=1"), "--set: stepps: no such key; the nearest is steps");
  EXPECT_EQ(argument_error("steps=0"), "--set: steps: out of range: got 0, allowed is at least 1");
  EXPECT_EQ(argument_error("steps=few"),
            "--set: steps: wrong type: expected an integer, got a text: \"few\"");
  EXPECT_EQ(argument_error("optim=adamw"),
            "--set: optim: is a group of keys, not one: got \"adamw\"; write optim.KEY = VALUE");
  EXPECT_EQ(argument_error("steps="),
            "--set: steps: wrong type: expected an integer, got a text: \"\"");
}

TEST(Config, WritesTheResolvedRecipeWithItsHelp) {
  Rule rule;
  EXPECT_EQ(to_toml(rule),
            "# decay of the first moment; [0, 1)\nbeta1 = 0.9\n"
            "# keeps the division finite; above 0\neps = 1e-08\n"
            "# look ahead\nnesterov = false\n");
}

TEST(Config, WritesTheKeysOfATableBeforeItsSubtables) {
  const Recipe defaults;
  const std::string text = to_toml(defaults);
  EXPECT_LT(text.find("steps = 1000"), text.find("[optim]"));
  EXPECT_THAT(text, HasSubstr("# clip is not set\n"));
  EXPECT_TRUE(diff_configs(from_toml(text), defaults).empty());
}

RC_GTEST_PROP(Config, RoundTripsThroughTomlAndJsonExactly, ()) {
  Recipe r;
  r.steps = *rc::gen::inRange<int64_t>(1, INT64_MAX);
  r.text = *rc::gen::string<std::string>();
  for (char& letter : r.text) {
    letter = static_cast<char>(letter & 0x7f);  // any ASCII, control characters too
  }
  r.layers = *rc::gen::container<std::vector<int64_t>>(rc::gen::nonNegative<int64_t>());
  const auto word = *rc::gen::arbitrary<uint64_t>();
  const double any_double = std::abs(std::bit_cast<double>(word));
  if (std::isfinite(any_double) && any_double > 0) {
    r.clip = any_double;
    r.optim.rule.eps = any_double;
  }
  if (*rc::gen::arbitrary<bool>()) {
    r.stops = {1, -1};
  }
  Recipe back = from_toml(to_toml(r));
  RC_ASSERT(diff_configs(r, back).empty());
  RC_ASSERT(back.clip == r.clip && back.optim.rule.eps == r.optim.rule.eps && back.text == r.text);

  Recipe from_json;
  const nlohmann::json json = nlohmann::json::parse(write_json(fields_of(r)).dump());
  apply_settings(fields_of(from_json), json_settings(json, "r.json"));
  RC_ASSERT(diff_configs(r, from_json).empty());
  RC_ASSERT(from_json.clip == r.clip && from_json.text == r.text);
}

TEST(Config, RoundTripsInfinity) {
  Recipe r;
  r.clip = std::numeric_limits<double>::infinity();
  EXPECT_EQ(from_toml(to_toml(r)).clip, r.clip);
  Recipe back;
  apply_settings(fields_of(back), json_settings(write_json(fields_of(r)), "r.json"));
  EXPECT_EQ(back.clip, r.clip);
}

TEST(Config, ChecksJsonLikeToml) {
  const auto error = [](const std::string& text) {
    return message_of(ErrorKind::config, [&] {
      Recipe r;
      apply_settings(fields_of(r), json_settings(nlohmann::json::parse(text), "r.json"));
    });
  };
  EXPECT_EQ(error("[1]"), "r.json: not a JSON object: got array");
  EXPECT_EQ(error(R"({"optim": {"kinds": "sgd"}})"),
            "r.json: optim.kinds: no such key; the nearest is optim.kind");
  EXPECT_EQ(error(R"({"steps": null})"), "r.json: steps: must have a value: expected an integer");
  EXPECT_EQ(error(R"({"layers": [[1]]})"),
            "r.json: layers: wrong type: expected a boolean, integer, number, text or a list of "
            "them, got a list of other things");
}

TEST(Config, ListsEveryFieldInTheHelp) {
  Recipe r;
  const std::string help = help_text(fields_of(r));
  EXPECT_THAT(help, ::testing::ContainsRegex(
                        "optim.rule.beta1 +number +0.9 +\\[0, 1\\) +decay of the first moment\n"));
  EXPECT_THAT(help, ::testing::ContainsRegex("clip +number +not set +above 0 +largest"));
  EXPECT_THAT(help, HasSubstr("\noptim: the optimizer\n"));
}

TEST(Config, ListsTheKeysThatDiffer) {
  Recipe a;
  Recipe b;
  b.steps = 5;
  b.clip = 0.5;
  b.optim.rule.beta1 = 0.1;
  EXPECT_EQ(diff_configs(a, b), (std::vector<Difference>{{"optim.rule.beta1", "0.9", "0.1"},
                                                         {"steps", "1000", "5"},
                                                         {"clip", "not set", "0.5"}}));
  Rule rule;
  EXPECT_EQ(diff(fields_of(a.optim), fields_of(rule)).back(),
            (Difference{"nesterov", "absent", "false"}));
}

TEST(Config, RefusesAFieldDescribedTwice) {
  struct Twice {
    bool x = false;
    void describe(Fields& v) {
      v("x", x, "");
      v("x", x, "");
    }
  };
  Twice twice;
  EXPECT_EQ(message_of(ErrorKind::internal, [&] { fields_of(twice); }), "x: described twice");
}

TEST(EditDistance, CountsInsertionsDeletionsReplacementsAndSwaps) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("beta1", "bate1"), 2);
  EXPECT_EQ(edit_distance("layres", "layers"), 1);
  const std::vector<std::string> words = {"train", "generate", "plan"};
  EXPECT_EQ(nearest_word("pln", words), "plan");
}

TEST(Range, SaysWhatItAllows) {
  EXPECT_EQ(in(0, 1).text(), "[0, 1]");
  EXPECT_EQ(at_most(3).text(), "at most 3");
  EXPECT_EQ(any().text(), "");
  EXPECT_TRUE(in(0, 1).contains(1.0));
  EXPECT_FALSE(half_open(0, 1).contains(1.0));
  EXPECT_FALSE(above(0).contains(int64_t{0}));
  EXPECT_FALSE(any().contains(std::nan("")));
}

}  // namespace
}  // namespace ingot
