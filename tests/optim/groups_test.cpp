#include "ingot/optim/groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ingot/optim/table.h"
#include "tests/optim/given.h"
#include "tests/support/message.h"

namespace ingot::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TensorDict some_parameters() {
  return dict({{"embedding.weight", zeros({5, 3}, DType::f32)},
               {"layers.0.wq.weight", zeros({3, 3}, DType::f32)},
               {"layers.0.wq.bias", zeros({3}, DType::f32)},
               {"norm.weight", zeros({3}, DType::f32)}});
}

TEST(Groups, DecayTensorsOfTwoAndMoreDimensions) {
  EXPECT_THAT(groups_of(some_parameters(), {}),
              ElementsAre(Group{1, 1, false}, Group{1, 1, true}, Group{1, 0}, Group{1, 0}));
}

TEST(Groups, CallMatricesWhatIsNeitherAVectorNorATableOfTokens) {
  const TensorDict parameters = dict({{"embedding.weight", zeros({5, 3}, DType::f32)},
                                      {"positions.weight", zeros({5, 3}, DType::f32)},
                                      {"layers.0.mlp.up.weight", zeros({6, 3}, DType::f32)},
                                      {"layers.0.norm.weight", zeros({3}, DType::f32)},
                                      {"layers.0.conv.weight", zeros({6, 3, 2}, DType::f32)},
                                      {"head.weight", zeros({5, 3}, DType::f32)}});
  std::vector<bool> matrices;
  for (const Group& group : groups_of(parameters, {})) {
    matrices.push_back(group.matrix);
  }
  EXPECT_THAT(matrices, ElementsAre(false, false, true, false, false, false));
  const auto chosen =
      groups_of(parameters, group_rules({"**.mlp.** matrix=off", "head.* matrix=on"}));
  EXPECT_FALSE(chosen[2].matrix);
  EXPECT_TRUE(chosen[5].matrix);
  EXPECT_EQ(message_of(ErrorKind::config,
                       [&] { groups_of(parameters, group_rules({"**.norm.* matrix=on"})); }),
            "group rule '**.norm.*': matrix=on needs two dimensions: 'layers.0.norm.weight' has "
            "shape [3]; narrow the pattern");
}

TEST(Groups, ApplyTheirRulesInOrder) {
  const GroupRules rules = group_rules(
      {"embedding.** lr=0.1 decay=off", "**.bias lr=2", "layers.*.wq.* lr=0.5", "norm.* decay=on"});
  EXPECT_THAT(groups_of(some_parameters(), rules),
              ElementsAre(Group{0.1, 0, false}, Group{0.5, 1, true}, Group{0.5, 0}, Group{1, 1}));
}

TEST(Groups, MultiplyTheLearningRateAndTheDecay) {
  const Tensor a = parameter({1}, {1, 1}, DType::f64);
  const Tensor b = parameter({1}, {1, 1}, DType::f64);
  Optimizer optimizer(dict({{"a", a}, {"b", b}}), make_rule(SgdConfig{.weight_decay = 0.5}),
                      group_rules({"b lr=0.1 decay=0.5"}));
  give(a, 1);
  give(b, 1);
  optimizer.step(0.1);
  EXPECT_NEAR(numbers(a)[0], 1 - 0.1 * 1.5, 1e-15);
  EXPECT_NEAR(numbers(b)[0], 1 - 0.01 * 1.25, 1e-15);
}

TEST(Groups, RefuseRulesTheyCannotReadOrUse) {
  const auto refused = [](const char* text) {
    return message_of(ErrorKind::config, [&] { groups_of(some_parameters(), {group_rule(text)}); });
  };
  EXPECT_EQ(refused("head.* lr=1"),
            "group rule 'head.*': matches none of the 4 parameters; the first is "
            "'embedding.weight'");
  EXPECT_EQ(refused("** rate=1"),
            "group rule '** rate=1': cannot read 'rate=1'; write lr=NUMBER, decay=on|off|NUMBER or "
            "matrix=on|off");
  EXPECT_THAT(refused("** lr=fast"), HasSubstr("'lr=fast' needs a number of at least 0"));
  EXPECT_THAT(refused("** decay=-1"), HasSubstr("'decay=-1' needs a number of at least 0"));
  EXPECT_THAT(refused("**"), HasSubstr("it sets nothing"));
  EXPECT_THAT(refused(" "), HasSubstr("it is empty"));
}

}  // namespace
}  // namespace ingot::testing
