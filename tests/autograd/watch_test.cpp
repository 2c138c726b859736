#include "ingot/autograd/watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/record.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot::testing {
namespace {

using ::testing::ElementsAre;

struct Notes : Watch {
  std::vector<std::string> lines;
  void made(std::string_view op, const TensorList& ys) override {
    lines.push_back(concat("made ", op, " ", ys[0].shape(), " ", current_part()));
  }
  void entering(const Node& node) override { lines.push_back(concat("into ", node.op)); }
  void differentiated(const Node& node, const Formula&, const TensorList& parts) override {
    lines.push_back(concat("gradient of ", node.op, " ", parts[0].item()));
  }
};

Tensor twice(const Tensor& x) {
  Tensor y = copy_of(x);
  add_into(y, x);
  return record("twice", y, wrt(x, [](const Tensor& dy) { return twice(dy); }));
}

TEST(Watch, SeesResultsAndGradientsWithTheirPart) {
  Tensor x = full({1}, 3, DType::f32);
  require_grad(x);
  const Notes notes;
  Tensor y;
  {
    const PartScope outer("layers.0");
    const PartScope inner("layers.0.mlp");
    y = twice(x);
  }
  backward(y);
  EXPECT_THAT(notes.lines, ElementsAre("made twice [1] layers.0.mlp", "into twice",
                                       "made twice [1] ", "gradient of twice 2"));
}

TEST(Watch, TheNewestOneSees) {
  const Notes outer;
  {
    const Notes inner;
    twice(full({1}, 1, DType::f32));
    EXPECT_EQ(inner.lines.size(), 1u);
  }
  EXPECT_EQ(watching(), &outer);
  EXPECT_TRUE(outer.lines.empty());
}

TEST(Watch, PartsEndWithTheirScope) {
  EXPECT_EQ(current_part(), "");
  {
    const PartScope scope("norm");
    EXPECT_EQ(current_part(), "norm");
  }
  EXPECT_EQ(current_part(), "");
  EXPECT_EQ(watching(), nullptr);
}

}  // namespace
}  // namespace ingot::testing
