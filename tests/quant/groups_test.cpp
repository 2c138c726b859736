#include "ingot/quant/groups.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ingot/base/philox.h"
#include "ingot/tensor/factories.h"
#include "tests/support/message.h"
#include "tests/support/oracle.h"

namespace ingot::testing {
namespace {

using quant::dequantized;
using quant::GroupCodes;
using quant::GroupGrid;
using quant::GroupRule;
using quant::packed_pairs;
using quant::quantize_groups;

// The grid of a fixture; "absmax7" stores −7 … 7 as 1 … 15.
GroupGrid grid_of(const Oracle& oracle) {
  const std::string scheme = oracle.word("scheme");
  if (scheme == "absmax7") {
    return {GroupRule::symmetric, -7, 7};
  }
  const auto low = static_cast<int32_t>(oracle.setting("qmin", 0));
  const auto high = static_cast<int32_t>(oracle.setting("qmax", 15));
  return {scheme == "asymmetric"       ? GroupRule::asymmetric
          : scheme == "gptq_symmetric" ? GroupRule::gptq
          : scheme == "narrow"         ? GroupRule::symmetric
                                       : GroupRule::centred,
          low, high};
}

Tensor shaped(const std::vector<float>& values, const Tensor& like) {
  return tensor_of(values, like.shape());
}

std::vector<int64_t> whole_numbers(const Tensor& x) {
  const auto all = x.values<int64_t>();
  return {all.begin(), all.end()};
}

void expect_fixture(const Oracle& oracle) {
  const Tensor x = oracle.input("x", DType::f32);
  const bool in_rows = oracle.hyper.value("per_channel", false);
  const auto group = static_cast<int64_t>(
      oracle.setting("group", static_cast<double>(in_rows ? x.size(1) : x.elements())));
  GroupCodes got = quantize_groups(x.values<float>(), group, grid_of(oracle));
  expect_entry(oracle, "scale", shaped(got.scales, tensor_from(oracle.expected["scale"])));
  expect_entry(oracle, "dequantized", shaped(dequantized(got), x));
  const int32_t shift = oracle.word("scheme") == "absmax7" ? 8 : 0;
  for (int32_t& code : got.codes) {
    code += shift;
  }
  for (int32_t& zero : got.zeros) {
    zero += shift;
  }
  EXPECT_EQ(std::vector<int64_t>(got.codes.begin(), got.codes.end()),
            whole_numbers(tensor_from(oracle.expected["codes"])));
  EXPECT_EQ(std::vector<int64_t>(got.zeros.begin(), got.zeros.end()),
            whole_numbers(tensor_from(oracle.expected["zero_point"])));
  if (oracle.expected.contains("packed")) {
    const std::vector<uint8_t> packed = packed_pairs(got.codes);
    EXPECT_EQ(std::vector<int64_t>(packed.begin(), packed.end()),
              whole_numbers(tensor_from(oracle.expected["packed"])));
  }
}

TEST(Groups, RoundAsTheOraclesDo) {
  int compared = 0;
  for (const auto& path : oracle_files("methods/quant")) {
    const Oracle oracle = read_oracle(path);
    SCOPED_TRACE(oracle.method);
    const bool ours = oracle.method.starts_with("int8_") || oracle.method.starts_with("uint8_") ||
                      oracle.method.starts_with("int4_group");
    if (ours) {
      expect_fixture(oracle);
      ++compared;
    }
  }
  EXPECT_GT(compared, 0);
}

// A fixture of a new form fails here, not silently.
TEST(QuantOracles, EveryFileIsReadByATest) {
  for (const auto& path : oracle_files("methods/quant")) {
    const std::string method = read_oracle(path).method;
    bool read = method.ends_with("_decode") || method.ends_with("_rounding") ||  // small_float
                method.ends_with("_scaled");                                     // microscaling
    for (const char* prefix : {"int8_", "uint8_", "int4_group", "gguf_", "nf4", "mxfp", "nvfp4",
                               "dynamic_8bit", "fake_quantize", "lsq", "bitnet"}) {
      read = read || method.starts_with(prefix);
    }
    EXPECT_TRUE(read) << method << " is read by no test";
  }
}

TEST(Groups, HoldZerosAndRefuseWhatIsNoNumber) {
  const std::vector<float> zeros(8, 0.0F);
  for (const GroupRule rule :
       {GroupRule::asymmetric, GroupRule::symmetric, GroupRule::centred, GroupRule::gptq}) {
    EXPECT_EQ(dequantized(quantize_groups(zeros, 4, {rule, -8, 7})), zeros);
  }
  EXPECT_EQ(message_of(ErrorKind::shape, [&] { quantize_groups(zeros, 3, {}); }),
            "quantize_groups: 8 values are no whole groups of 3");
  std::vector<float> wrong = zeros;
  wrong[5] = NAN;
  EXPECT_EQ(message_of(ErrorKind::numeric, [&] { quantize_groups(wrong, 4, {}); }),
            "quantize_groups: value 5 is not finite");
  EXPECT_EQ(message_of(ErrorKind::argument,
                       [] {
                         packed_pairs(std::vector<int32_t>{1, 16});
                       }),
            "packed_pairs: codes must be 0 to 15: got 1 and 16");
}

// n values between from and to, evenly drawn.
std::vector<float> drawn(size_t n, double from, double to, uint64_t seed) {
  const Philox random({seed, 0, 0});
  std::vector<float> out(n);
  for (size_t i = 0; i < n; ++i) {
    const double share = static_cast<double>(random.word(i)) / 4294967296.0;
    out[i] = static_cast<float>(from + (to - from) * share);
  }
  return out;
}

// Σ (x − x')² of the values begin … end − 1.
double squared_error(const std::vector<float>& x, const GroupCodes& codes, size_t begin,
                     size_t end) {
  const std::vector<float> back = dequantized(codes);
  double sum = 0;
  for (size_t i = begin; i < end; ++i) {
    sum += std::pow(static_cast<double>(x[i]) - back[i], 2);
  }
  return sum;
}

TEST(Groups, ScaleAndZeroKeepValuesWithinHalfAStepAndZeroExactly) {
  // b − a = 2.55 over 255 steps: 0.01, and −1 is a hundred of them below 0.
  const GroupCodes by_hand =
      quantize_groups(std::vector<float>{-1.0F, 0.0F, 0.5F, 1.55F}, 4, {GroupRule::asymmetric});
  EXPECT_NEAR(by_hand.scales.at(0), 0.01, 1e-8);
  EXPECT_EQ(by_hand.zeros.at(0), -28);
  EXPECT_EQ(by_hand.codes, (std::vector<int32_t>{-128, -28, 22, 127}));
  for (const GroupRule rule : {GroupRule::asymmetric, GroupRule::symmetric}) {
    std::vector<float> x = drawn(1000, -0.7, 3, 1);
    x[17] = 0;
    const GroupCodes codes = quantize_groups(x, 1000, {rule});
    const std::vector<float> back = dequantized(codes);
    const double scale = codes.scales.at(0);
    for (size_t i = 0; i < x.size(); ++i) {
      if (x[i] >= (-128 - codes.zeros[0]) * scale && x[i] <= (127 - codes.zeros[0]) * scale) {
        EXPECT_LE(std::abs(x[i] - back[i]), scale * (0.5 + 1e-5)) << i;
      }
    }
    EXPECT_EQ(back[17], 0);
  }
}

TEST(Groups, AnAsymmetricGridHasTwiceTheLevelsForPositiveValuesAndNoMoreForCentredOnes) {
  const auto error = [](const std::vector<float>& x, GroupRule rule) {
    const GroupCodes codes = quantize_groups(x, 4096, {rule});
    EXPECT_EQ(rule == GroupRule::symmetric ? codes.zeros.at(0) : 0, 0);
    return squared_error(x, codes, 0, x.size());
  };
  const std::vector<float> positive = drawn(4096, 0, 1, 2);
  EXPECT_GE(error(positive, GroupRule::symmetric),
            3.5 * error(positive, GroupRule::asymmetric));  // (255 / 127)² = 4.03
  const std::vector<float> centred = drawn(4096, -1, 1, 3);
  const double symmetric = error(centred, GroupRule::symmetric);
  EXPECT_NEAR(error(centred, GroupRule::asymmetric), symmetric, 0.05 * symmetric);
}

TEST(Groups, AScaleARowSavesTheSmallRowsAndLeavesTheLargeOnes) {
  constexpr size_t columns = 256;
  std::vector<float> weight = drawn(2 * columns, -1, 1, 4);
  weight[columns] = 1;  // the large row has the largest magnitude, as the tensor's scale does
  for (size_t i = columns; i < 2 * columns; ++i) {
    weight[i] *= 100;
  }
  const GroupGrid grid{GroupRule::symmetric};
  const GroupCodes tensor = quantize_groups(weight, 2 * columns, grid);
  const GroupCodes rows = quantize_groups(weight, columns, grid);
  EXPECT_EQ(tensor.scales.size(), 1);
  EXPECT_EQ(rows.scales.size(), 2);
  EXPECT_EQ(rows.zeros.size(), 2);
  EXPECT_GE(squared_error(weight, tensor, 0, columns),
            1000 * squared_error(weight, rows, 0, columns));
  EXPECT_EQ(squared_error(weight, tensor, columns, 2 * columns),
            squared_error(weight, rows, columns, 2 * columns));
}

}  // namespace
}  // namespace ingot::testing
