#include "ingot/cli/recipe_effects.h"

#include <gtest/gtest.h>

#include <set>

#include "ingot/base/config_toml.h"
#include "tests/support/message.h"

namespace ingot::testing {
namespace {

using Words = std::vector<std::string>;

std::string kind_settings(const std::string& kind) {
  return "kind = \"" + kind + "\"\n[distill]\n" +
         (kind == "distill" ? "teacher = \"somewhere\"\n" : "");
}

std::string refusal(const std::string& kind, const Words& settings) {
  return message_of(ErrorKind::config,
                    [&] { parse_recipe(kind_settings(kind), "recipe", settings); });
}

TEST(RecipeEffects, EveryKeyOfARecipeHasARow) {
  Recipe recipe;
  std::set<const KeyEffect*> used;
  const Fields fields = fields_of(recipe);
  for (const Field& field : fields.all()) {
    const KeyEffect* effect = effect_of(field.path);
    EXPECT_NE(effect, nullptr) << field.path << ": say in key_effects in which runs it counts";
    used.insert(effect);
  }
  for (const KeyEffect& effect : key_effects()) {
    EXPECT_TRUE(used.contains(&effect)) << effect.pattern << ": no key has this pattern first";
  }
}

// A value of the field that is not the one it has, in --set's spelling; empty where none is known.
std::string another_value(const Field& field) {
  const std::optional<Value> now = field.get();
  if (!now) {
    return "";
  }
  if (const auto* number = std::get_if<int64_t>(&*now)) {
    return std::to_string(*number + 1);
  }
  if (const auto* number = std::get_if<double>(&*now)) {
    return std::to_string(*number == 0 ? 0.25 : *number / 2);
  }
  if (const auto* truth = std::get_if<bool>(&*now)) {
    return *truth ? "false" : "true";
  }
  return "";
}

// For every kind and every key that is a number or a truth value: set, it is taken where its row
// says that it counts, and refused by name where not.
TEST(RecipeEffects, EveryKeyIsHonouredOrRefusedByEveryKind) {
  int refused = 0;
  for (const std::string& kind : run_kind_names()) {
    Recipe recipe = parse_recipe(kind_settings(kind), "recipe");
    const Recipe start = recipe;
    const Fields fields = fields_of(recipe);
    for (const Field& field : fields.all()) {
      const std::string value = another_value(field);
      if (value.empty()) {
        continue;
      }
      Recipe changed = start;
      const Fields of_changed = fields_of(changed);
      try {
        of_changed.find(field.path)->set(toml_value(value));
      } catch (const Error&) {
        continue;  // that value is out of range
      }
      const KeyEffect* effect = effect_of(field.path);
      ASSERT_NE(effect, nullptr) << field.path;
      if (effect->counts(changed)) {
        EXPECT_NO_THROW(check_effects(start, changed)) << kind << " " << field.path;
      } else {
        const std::string message =
            message_of(ErrorKind::config, [&] { check_effects(start, changed); });
        EXPECT_TRUE(message.starts_with(field.path + ": has no effect in this run: "))
            << kind << " " << message;
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 100);
}

TEST(RecipeEffects, KeysOfOtherKindsAreRefused) {
  EXPECT_EQ(refusal("sft", {"dpo.beta=0.3"}),
            "dpo.beta: has no effect in this run: 0.3 is of kind = \"dpo\"; leave it out");
  EXPECT_EQ(refusal("dpo", {"train.neftune=5"}),
            "train.neftune: has no effect in this run: 5.0 is of kinds that learn tokens, pretrain "
            "and sft; leave it out");
  EXPECT_EQ(refusal("reward", {"train.label_smoothing=0.1"}).substr(0, 28),
            "train.label_smoothing: has n");
  EXPECT_EQ(refusal("pretrain", {"data.weights=[1]", "data.files=[\"a.txt\"]"}),
            "data.weights: has no effect in this run: [1.0] is of rows that are stored as tokens; "
            "leave it out");
  EXPECT_EQ(refusal("simpo", {"data.caps=[4]"}).substr(0, 9), "data.caps");
  EXPECT_EQ(refusal("sft", {"peft.rank=4"}).substr(0, 9), "peft.rank");
  EXPECT_EQ(
      refusal("kto", {"optim.kind=sophia_g"}),
      "optim.kind: \"sophia_g\" draws next tokens from the model, which kind = \"kto\" does not "
      "learn; choose another, such as \"sophia_h\"");
  EXPECT_EQ(refusal("pretrain", {"optim.kind=sophia_h"}),
            "optim.kind: \"sophia_h\" takes differences of gradients, which half-precision weights "
            "are too coarse for: dtype is bf16; set dtype = \"f32\", or optim.kind = \"sophia_g\"");
}

TEST(RecipeEffects, DeadlinesAndAnnealingNeedADecay) {
  EXPECT_EQ(refusal("pretrain", {"train.until=\"06:00\""}).substr(0, 61),
            "train.until: places the decay of a wsd schedule in steps: sch");
  EXPECT_EQ(refusal("pretrain", {"data.anneal_files=[\"b.txt\"]"}).substr(0, 43),
            "data.anneal_files: are read while a wsd sch");
  EXPECT_NO_THROW(parse_recipe("", "recipe", {"schedule.kind=wsd", "train.until=\"06:00\""}));
}

TEST(RecipeEffects, WidthsOfMupAreForNewModelsWithAHeadOfTheirOwn) {
  const Words on = {"mup.base_width=64", "model.tied=false"};
  EXPECT_NO_THROW(parse_recipe("", "recipe", on));
  EXPECT_EQ(refusal("pretrain", {"mup.base_width=64", "model.tied=true"}),
            "mup: the output map needs weights of its own: change model.tied, or set "
            "mup.base_width = 0");
  EXPECT_EQ(refusal("pretrain", {on[0], on[1], "optim.kind=muon"}).substr(0, 36),
            "mup: its tables are for rules like A");
  EXPECT_EQ(refusal("pretrain", {"mup.base_head_dim=16"}),
            "mup.base_head_dim: has no effect while mup.base_width is 0; set both, or neither");
}

}  // namespace
}  // namespace ingot::testing
