#include "ingot/scaling/mup.h"

#include <gtest/gtest.h>

#include "ingot/tensor/factories.h"
#include "tests/support/message.h"
#include "tests/support/oracle.h"

namespace ingot::testing {
namespace {

TEST(Mup, HasTheNumbersOfTheOracles) {
  int compared = 0;
  for (const auto& path : oracle_files("methods/scaling")) {
    const Oracle oracle = read_oracle(path);
    if (!oracle.method.starts_with("mup_")) {
      continue;
    }
    SCOPED_TRACE(oracle.file);
    const MupForm form = oracle.word("variant") == "table3" ? MupForm::table3 : MupForm::table8;
    const double m = oracle.setting("width") / oracle.setting("base_width");
    const auto expect = [&](const std::string& entry, double got) {
      EXPECT_NEAR(got, oracle.expected.at(entry).get<double>(), 1e-12) << entry;
    };
    const auto of = [&](MupRule rule, MupPart part) { return mup_numbers(form, rule, part, m); };
    expect("hidden_std_mult", of(MupRule::adam, MupPart::hidden).deviation);
    expect("output_std_mult", of(MupRule::adam, MupPart::output).deviation);
    expect("output_forward_mult", of(MupRule::sgd, MupPart::output).forward);
    const double base = oracle.setting("base_attention_numerator");
    expect("attention_scale", mup_attention_scale(static_cast<int64_t>(oracle.setting("head_dim")),
                                                  static_cast<int64_t>(base * base)));
    for (const auto& [name, part] :
         std::vector<std::pair<std::string, MupPart>>{{"embedding", MupPart::embedding},
                                                      {"vector", MupPart::vector},
                                                      {"hidden", MupPart::hidden},
                                                      {"output", MupPart::output}}) {
      const double lr = oracle.setting("lr");
      expect("adam_lr_" + name, lr * of(MupRule::adam, part).rate);
      expect("sgd_lr_" + name, lr * of(MupRule::sgd, part).rate);
      expect("adam_weight_decay_" + name,
             oracle.setting("weight_decay") * of(MupRule::adam, part).decay);
    }
    ++compared;
  }
  EXPECT_GE(compared, 2);
}

TEST(Mup, KnowsThePartsOfADecoder) {
  EXPECT_EQ(mup_part("embedding.weight", 2), MupPart::embedding);
  EXPECT_EQ(mup_part("positions.weight", 2), MupPart::embedding);
  EXPECT_EQ(mup_part("head.weight", 2), MupPart::output);
  EXPECT_EQ(mup_part("layers.3.attention.wq.weight", 2), MupPart::hidden);
  EXPECT_EQ(mup_part("layers.3.attention_norm.weight", 1), MupPart::vector);
}

TEST(Mup, ScalesInitialWeightsByPartAndScheme) {
  const MupConfig config{.base_width = 64, .base_head_dim = 0};
  for (const auto& [scheme, hidden, output] : std::vector<std::tuple<std::string, double, double>>{
           {"gpt2", 0.5, 0.25}, {"kaiming", 1, 0.5}}) {
    TensorDict values;
    for (const char* name : {"embedding.weight", "layers.0.mlp.up.weight", "head.weight"}) {
      values.add(name, full({2, 2}, 1, DType::f32));
    }
    scale_initial(values, config, 256, scheme);
    EXPECT_EQ(values.at("embedding.weight").values<float>()[0], 1);
    EXPECT_EQ(values.at("layers.0.mlp.up.weight").values<float>()[0], hidden) << scheme;
    EXPECT_EQ(values.at("head.weight").values<float>()[0], output) << scheme;
  }
}

TEST(Mup, WritesGroupRules) {
  const MupConfig config{.base_width = 64, .base_head_dim = 0};
  EXPECT_EQ(mup_group("head.weight", 2, config, 192, MupRule::adam),
            "head.weight lr=0.3333333333333333 decay=3");
  EXPECT_EQ(mup_group("norm.weight", 1, config, 256, MupRule::sgd), "norm.weight lr=4");
  EXPECT_EQ(mup_group("norm.weight", 1, config, 256, MupRule::adam), "");
}

TEST(Mup, SaysWhichRulesItsTablesAreFor) {
  EXPECT_EQ(mup_rule("lion"), MupRule::adam);
  EXPECT_EQ(mup_rule("sgd"), MupRule::sgd);
  EXPECT_EQ(
      message_of(ErrorKind::config, [] { mup_rule("muon"); }),
      "mup: its tables are for rules like Adam and SGD: optim.kind is muon, which follows the "
      "size of weights or matrices itself; choose adamw, or leave mup out");
}

}  // namespace
}  // namespace ingot::testing
