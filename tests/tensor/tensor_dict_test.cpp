#include "ingot/tensor/tensor_dict.h"

#include <gtest/gtest.h>

#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

TensorDict example() {
  TensorDict dict;
  dict.add("embedding", zeros({4, 2}, DType::f32));
  dict.add("layers.0.attention.wq.weight", zeros({2, 2}, DType::bf16));
  dict.add("layers.1.attention.wq.weight", zeros({2, 2}, DType::bf16));
  dict.add("layers.1.norm", zeros({2}, DType::f32));
  return dict;
}

std::vector<std::string> names(const TensorDict& dict) {
  std::vector<std::string> out;
  for (const auto& [name, tensor] : dict) {
    out.push_back(name);
  }
  return out;
}

TEST(TensorDict, KeepsTheOrderOfAdding) {
  const TensorDict dict = example();
  EXPECT_EQ(names(dict),
            (std::vector<std::string>{"embedding", "layers.0.attention.wq.weight",
                                      "layers.1.attention.wq.weight", "layers.1.norm"}));
  EXPECT_EQ(dict.size(), 4);
  EXPECT_EQ(dict.elements(), 8 + 4 + 4 + 2);
  EXPECT_EQ(dict.bytes(), 32 + 8 + 8 + 8);
  EXPECT_FALSE(dict.empty());
  EXPECT_TRUE(TensorDict().empty());
}

TEST(TensorDict, FindsByNameAndSuggestsTheNearest) {
  TensorDict dict = example();
  EXPECT_TRUE(dict.contains("embedding"));
  EXPECT_FALSE(dict.contains("embeddings"));
  EXPECT_EQ(dict.at("layers.1.norm").shape(), (Shape{2}));
  dict.at("layers.1.norm") = zeros({7}, DType::f32);
  EXPECT_EQ(dict.at("layers.1.norm").shape(), (Shape{7}));
  expect_error([&] { dict.at("layers.1.nrom"); }, "tensor dict: no 'layers.1.nrom'");
  expect_error([&] { dict.at("layers.1.nrom"); }, "layers.1.norm");
}

TEST(TensorDict, RefusesADuplicate) {
  TensorDict dict = example();
  expect_error([&] { dict.add("embedding", zeros({1}, DType::f32)); },
               "tensor dict: 'embedding' is already there");
  EXPECT_EQ(dict.size(), 4);
  EXPECT_EQ(dict.at("embedding").shape(), (Shape{4, 2}));
}

TEST(TensorDict, SelectsByPattern) {
  const TensorDict dict = example();
  EXPECT_EQ(dict.select("layers.*.attention.wq.weight").size(), 2);
  EXPECT_EQ(dict.select("layers.*").size(), 0);  // '*' stops at a dot
  EXPECT_EQ(dict.select("layers.1.*").size(), 1);
  EXPECT_EQ(dict.select("layers.**").size(), 3);
  EXPECT_EQ(dict.select("**.weight").size(), 2);
  EXPECT_EQ(dict.select("layers.?.norm").size(), 1);
  EXPECT_EQ(dict.select("**").size(), 4);
}

TEST(TensorDict, PatternsMatchWholeNames) {
  EXPECT_TRUE(matches("", ""));
  EXPECT_FALSE(matches("", "a"));
  EXPECT_TRUE(matches("*", ""));
  EXPECT_FALSE(matches("a", "ab"));
  EXPECT_FALSE(matches("?", ""));
  EXPECT_TRUE(matches("*b*", "abc"));
  EXPECT_FALSE(matches("*b*", "a.bc"));
  EXPECT_TRUE(matches("a**c", "a.b.c"));
}

TEST(TensorDict, RenamesMapsAndMerges) {
  TensorDict all;
  all.add("step", scalar(3, DType::f64));
  all.merge(example().renamed([](const std::string& name) { return "m." + name; }), "adamw.");
  EXPECT_EQ(all.size(), 5);
  EXPECT_TRUE(all.contains("adamw.m.embedding"));
  const TensorDict wide =
      all.mapped([](const std::string&, const Tensor& x) { return converted(x, DType::f64); });
  EXPECT_EQ(names(wide), names(all));
  for (const auto& [name, tensor] : wide) {
    EXPECT_EQ(tensor.dtype(), DType::f64) << name;
  }
  expect_error([&] { all.merge(all); }, "tensor dict: 'step' is already there");
}

TEST(TensorDict, CopiesShareTheirTensors) {
  const TensorDict dict = example();
  const TensorDict copy = dict;
  EXPECT_EQ(copy.at("embedding").storage(), dict.at("embedding").storage());
}

}  // namespace
}  // namespace ingot::testing
