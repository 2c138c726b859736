#include "ingot/nn/module.h"

#include <gtest/gtest.h>

#include "ingot/autograd/record.h"
#include "ingot/nn/linear.h"
#include "ingot/tensor/factories.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

using nn::Bias;
using nn::Linear;
using nn::Role;

// Two linear layers, and a third member that is the first one's weight again.
class Pair : public nn::Module {
 public:
  Pair() : first(3, 2, Bias::yes, DType::f32, cpu_device) {
    rest.push_back(std::make_unique<Linear>(2, 2, Bias::no, DType::f32, cpu_device));
    rest.push_back(std::make_unique<Linear>(2, 3, Bias::no, DType::f32, cpu_device));
    tied = first.weight;
  }
  void visit(nn::Visitor& v) override {
    v("first", first);
    v("absent", absent);
    v("rest", rest);
    v("tied", tied, Role::matrix);
  }

  Linear first;
  std::optional<Linear> absent;
  std::vector<std::unique_ptr<Linear>> rest;
  Tensor tied;
};

std::vector<std::string> names(const TensorDict& dict) {
  std::vector<std::string> out;
  for (const auto& [name, tensor] : dict) {
    out.push_back(name);
  }
  return out;
}

TensorDict some_values() {
  TensorDict values;
  values.add("first.weight", full({2, 3}, 1.5, DType::f64));
  values.add("first.bias", full({2}, 2, DType::f32));
  values.add("rest.0.weight", full({2, 2}, 3, DType::f32));
  values.add("rest.1.weight", full({3, 2}, 4, DType::f32));
  return values;
}

TEST(Module, NamesParametersByPathAndTiedOnesOnce) {
  const Pair pair;
  EXPECT_EQ(names(pair.parameters()), (std::vector<std::string>{"first.weight", "first.bias",
                                                                "rest.0.weight", "rest.1.weight"}));
  EXPECT_EQ(pair.count(), 6 + 2 + 4 + 6);
}

TEST(Module, CountsItsParametersAsParameters) {
  const int64_t before =
      allocator(cpu_device).stats().live[static_cast<size_t>(Purpose::parameters)];
  const Pair pair;
  const int64_t after =
      allocator(cpu_device).stats().live[static_cast<size_t>(Purpose::parameters)];
  EXPECT_EQ(after - before, 4 * 64);
}

TEST(Module, LoadsValuesByNameAndConvertsThem) {
  Pair pair;
  pair.load(some_values());
  EXPECT_EQ(pair.first.weight.values<float>()[5], 1.5F);
  EXPECT_EQ(pair.tied.values<float>()[0], 1.5F);
  EXPECT_EQ(pair.rest[1]->weight.values<float>()[0], 4);
}

TEST(Module, LoadListsEverythingThatDoesNotFitAndChangesNothing) {
  Pair pair;
  TensorDict values = some_values();
  TensorDict wrong;
  for (const auto& [name, value] : values) {
    if (name != "rest.0.weight") {
      wrong.add(name == "rest.1.weight" ? "rest.7.weight" : name,
                name == "first.bias" ? zeros({5}, DType::f32) : value);
    }
  }
  expect_error([&] { pair.load(wrong); },
               "load: the values do not fit the module:\n"
               "  missing: rest.0.weight [2, 2]\n"
               "  missing: rest.1.weight [3, 2]\n"
               "  unexpected: rest.7.weight [3, 2]\n"
               "  shape: first.bias is [5], the module has [2]");
  EXPECT_EQ(pair.first.weight.values<float>()[0], 0);
}

TEST(Module, ConvertsEveryParameterAndKeepsTies) {
  Pair pair;
  pair.load(some_values());
  pair.require_gradients();
  pair.to(DType::bf16);
  EXPECT_EQ(pair.first.weight.dtype(), DType::bf16);
  EXPECT_EQ(pair.tied.storage(), pair.first.weight.storage());
  EXPECT_EQ(pair.tied.node(), pair.first.weight.node());
  EXPECT_NE(pair.tied.node(), nullptr);
  EXPECT_EQ(pair.rest[0]->weight.dtype(), DType::bf16);
}

TEST(Module, MakesOnlyMatchingParametersCollectGradients) {
  Pair pair;
  pair.require_gradients();
  pair.require_gradients("rest.**");
  EXPECT_EQ(pair.first.weight.node(), nullptr);
  EXPECT_EQ(pair.tied.node(), nullptr);
  EXPECT_NE(pair.rest[0]->weight.node(), nullptr);
  expect_error([&] { pair.require_gradients("nothing"); },
               "require_gradients: no parameter matches 'nothing'");
}

TEST(Module, PrintsItsTree) {
  EXPECT_EQ(nn::tree(Pair()),
            "first\n"
            "  weight [2, 3] f32\n"
            "  bias [2] f32\n"
            "rest\n"
            "  0\n"
            "    weight [2, 2] f32\n"
            "  1\n"
            "    weight [3, 2] f32\n"
            "18 parameters\n");
}

}  // namespace
}  // namespace ingot::testing
