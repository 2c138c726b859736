#include "ingot/quant/groups.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

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

constexpr GroupGrid asymmetric8{GroupRule::asymmetric, -128, 127};
constexpr GroupGrid symmetric8{GroupRule::symmetric, -127, 127};

std::vector<float> uniform_values(double low, double high, int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> out;
  for (int64_t i = 0; i < count; ++i) {
    out.push_back(static_cast<float>(low + (high - low) * (random() / 4294967296.0)));
  }
  return out;
}

// Σ (x − x')² over values begin … end − 1.
double squared_error(std::span<const float> x, const GroupCodes& codes, size_t begin, size_t end) {
  const std::vector<float> near = dequantized(codes);
  double sum = 0;
  for (size_t i = begin; i < end; ++i) {
    sum += std::pow(static_cast<double>(x[i]) - near[i], 2);
  }
  return sum;
}

TEST(Groups, AreWithinHalfAScaleOfEveryValueAndHoldZeroExactly) {
  for (const GroupGrid& grid : {asymmetric8, symmetric8}) {
    for (const auto& [low, high] : {std::pair{-1.0, 3.0}, {0.5, 4.0}, {-7.0, -2.0}, {-2.0, 2.0}}) {
      std::vector<float> x = uniform_values(low, high, 4096, 5);
      x[17] = 0;
      const GroupCodes codes = quantize_groups(x, 4096, grid);
      const std::vector<float> near = dequantized(codes);
      const float half = codes.scales[0] / 2 * (1 + 1e-4F);
      for (size_t i = 0; i < x.size(); ++i) {
        ASSERT_LE(std::abs(x[i] - near[i]), half) << x[i];
      }
      EXPECT_EQ(near[17], 0);
    }
  }
}

// 255 steps over [0, b] are half as wide as 127; over [−b, b] 255 and 254 are nearly the same.
TEST(Groups, AsymmetricOnesErrAQuarterOnPositiveValuesAndAsMuchOnCentredOnes) {
  const auto ratio = [](double low, double high) {
    const std::vector<float> x = uniform_values(low, high, 65536, 6);
    const GroupCodes symmetric = quantize_groups(x, 65536, symmetric8);
    EXPECT_EQ(symmetric.zeros, std::vector<int32_t>{0});
    return squared_error(x, symmetric, 0, x.size()) /
           squared_error(x, quantize_groups(x, 65536, asymmetric8), 0, x.size());
  };
  EXPECT_GE(ratio(0, 3), 3.5);
  EXPECT_NEAR(ratio(-3, 3), 1, 0.05);
}

// Rows in turn of magnitude 1 and 100.
TEST(Groups, ByRowSpareSmallRowsTheScaleOfLargeOnes) {
  constexpr size_t width = 256;
  std::vector<float> x = uniform_values(-1, 1, 8 * width, 7);
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] *= i / width % 2 == 1 ? 100.0F : 1.0F;
  }
  x[3 * width] = 100;  // the same largest magnitude in every large row, so of the tensor
  x[width] = x[5 * width] = x[7 * width] = 100;
  const GroupCodes tensor = quantize_groups(x, 8 * width, symmetric8);
  const GroupCodes rows = quantize_groups(x, width, symmetric8);
  EXPECT_EQ(tensor.scales.size(), 1u);
  EXPECT_EQ(rows.scales.size(), 8u);
  EXPECT_EQ(rows.zeros.size(), 8u);
  for (size_t row = 0; row < 8; ++row) {
    const double before = squared_error(x, tensor, row * width, (row + 1) * width);
    const double after = squared_error(x, rows, row * width, (row + 1) * width);
    if (row % 2 == 0) {
      EXPECT_GE(before, 1000 * after) << row;
    } else {
      EXPECT_EQ(before, after) << row;
    }
  }
}

}  // namespace
}  // namespace ingot::testing
