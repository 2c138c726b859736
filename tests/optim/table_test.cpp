#include "ingot/optim/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ingot/base/config_toml.h"
#include "ingot/optim/alternatives.h"
#include "ingot/optim/schedule.h"
#include "tests/optim/given.h"
#include "tests/support/message.h"

namespace ingot::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Recipe {
  OptimizerConfig optim;
  ScheduleConfig schedule;
  template <class V>
  void describe(V& v) {
    v.group("optim", optim, "the optimizer");
    v.group("schedule", schedule, "the learning rate over the run");
  }
};

Recipe recipe_of(std::string_view text) {
  Recipe recipe;
  const std::vector<Setting> settings = toml_settings(text, "test.toml");
  choose_kind(recipe.optim, settings, "optim.kind");
  choose_kind(recipe.schedule, settings, "schedule.kind");
  apply_settings(fields_of(recipe), settings);
  return recipe;
}

TEST(OptimizerTable, ReadsTheFieldsOfTheChosenRule) {
  const Recipe recipe = recipe_of(
      "[optim]\nkind = 'sgd'\nmomentum = 0.9\nnesterov = true\nlr = 0.1\ngroups = ['** decay=on']\n"
      "[schedule]\nkind = 'wsd'\ndecay = 5\n");
  EXPECT_EQ(recipe.optim.learning_rate, 0.1);
  EXPECT_EQ(std::get<SgdConfig>(recipe.optim.rule).momentum, 0.9);
  EXPECT_EQ(std::get<WsdSchedule>(recipe.schedule.schedule).decay, 5);
  const Tensor p = parameter({1}, {1}, DType::f32);
  const Optimizer optimizer = make_optimizer(recipe.optim, dict({{"p", p}}));
  EXPECT_EQ(optimizer.rule(), "sgd");
  EXPECT_THAT(optimizer.groups(), ElementsAre(Group{1, 1}));
}

TEST(OptimizerTable, RefusesUnknownRulesAndFieldsOfOtherRules) {
  EXPECT_THAT(message_of(ErrorKind::config, [] { recipe_of("[optim]\nkind = 'adamv'\n"); }),
              HasSubstr("one of adamw, adam, sgd"));
  EXPECT_THAT(
      message_of(ErrorKind::config, [] { recipe_of("[optim]\nkind = 'sgd'\nbeta1 = 0.5\n"); }),
      HasSubstr("optim.beta1"));
  EXPECT_THAT(message_of(ErrorKind::config, [] { recipe_of("[schedule]\nkind = 'cos'\n"); }),
              HasSubstr("one of cosine, constant, linear, wsd"));
}

TEST(OptimizerTable, WritesARecipeThatReadsBackTheSame) {
  const Recipe recipe = recipe_of("[optim]\nkind = 'adam'\nbeta2 = 0.9\n[schedule]\nwarmup = 7\n");
  const std::string text = to_toml(recipe);
  EXPECT_EQ(to_toml(recipe_of(text)), text);
  EXPECT_THAT(text, HasSubstr("beta2 = 0.9"));
}

TEST(OptimizerTable, BuildsEveryRuleAtItsDefaults) {
  for (const std::string& name : rule_names()) {
    OptimizerConfig config;
    choose(config, name);
    const Tensor p = parameter({1, 2}, {1, 2}, DType::f32);
    Optimizer optimizer = make_optimizer(config, dict({{"p", p}}));
    EXPECT_EQ(optimizer.rule(), name);
    for (int t = 0; t < 2; ++t) {  // the first gradient of some rules only prepares
      give(p, 1);
      optimizer.step(0.1);
    }
    EXPECT_LT(numbers(p)[0], 1) << name;
  }
}

}  // namespace
}  // namespace ingot::testing
