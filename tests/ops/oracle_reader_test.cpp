#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "ingot/tensor/factories.h"
#include "tests/support/op_case.h"
#include "tests/support/oracle.h"
#include "tests/support/paths.h"

namespace ingot::testing {
namespace {

TEST(OracleReader, ReadsNestedListsAndTheNumbersJsonLacks) {
  const Tensor x = tensor_from(nlohmann::json::parse(R"([[1.5, "Infinity"], ["NaN", -2]])"));
  EXPECT_EQ(x.shape(), (Shape{2, 2}));
  EXPECT_EQ(x.dtype(), DType::f64);
  EXPECT_EQ(x.values<double>()[1], HUGE_VAL);
  EXPECT_TRUE(std::isnan(x.values<double>()[2]));
  const Tensor ids = tensor_from(nlohmann::json::parse("[3, -100]"));
  EXPECT_EQ(ids.dtype(), DType::i64);
  EXPECT_EQ(ids.values<int64_t>()[1], -100);
  EXPECT_EQ(tensor_from(nlohmann::json(2.5)).item(), 2.5);
}

TEST(OracleReader, RefusesRaggedListsAndWords) {
  expect_error([] { tensor_from(nlohmann::json::parse("[[1, 2], [3]]")); }, "unequal length");
  expect_error([] { number_from(nlohmann::json("many")); }, "not a number");
}

TEST(OracleReader, MeasuresErrorsRelativeToTheLargestExpectedValue) {
  const auto vector = [](std::vector<double> v) {
    return tensor_of(v, {static_cast<int64_t>(v.size())});
  };
  EXPECT_DOUBLE_EQ(normwise_error(vector({1, 10.5}), vector({1, 10})), 0.05);
  EXPECT_DOUBLE_EQ(normwise_error(vector({0.25}), vector({0})), 0.25);
  EXPECT_EQ(normwise_error(vector({NAN}), vector({NAN})), 0);
  EXPECT_EQ(normwise_error(vector({NAN}), vector({1})), HUGE_VAL);
  EXPECT_EQ(normwise_error(vector({1, 2}), vector({1})), HUGE_VAL);
}

TEST(OracleReader, FindsTheLimitOfAnEntry) {
  const TemporaryFolder folder;
  std::ofstream(folder / "toy.json") << R"({"method": "toy_2", "hyper": {"lr": 0.5, "kind": "a"},
    "inputs": {"x": [1.0]}, "expected": {"y": [2.0], "n": 3},
    "tolerance": {"rule": "normwise", "f64": 1e-12, "f32": 2e-6, "looser": {"y": 0.1}}})";
  const Oracle oracle = read_oracle(folder / "toy.json");
  EXPECT_EQ(oracle.file, "toy");
  EXPECT_EQ(oracle.method, "toy_2");
  EXPECT_EQ(oracle.setting("lr"), 0.5);
  EXPECT_EQ(oracle.setting("absent", 7), 7);
  EXPECT_EQ(oracle.word("kind"), "a");
  EXPECT_EQ(oracle.limit("z", DType::f32), 2e-6);
  EXPECT_EQ(oracle.limit("y", DType::f64), 0.1);
  EXPECT_EQ(oracle.input("x", DType::f32).dtype(), DType::f32);
  expect_entry(oracle, "y", full({1}, 2.1, DType::f64));
  expect_entry(oracle, "n", scalar(3, DType::i64));
}

}  // namespace
}  // namespace ingot::testing
