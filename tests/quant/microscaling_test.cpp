#include "ingot/quant/microscaling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "ingot/base/philox.h"
#include "ingot/quant/fp8_scaling.h"
#include "ingot/tensor/factories.h"
#include "tests/support/message.h"
#include "tests/support/oracle.h"
#include "tests/support/paths.h"

namespace ingot::testing {
namespace {

using quant::ScaleRule;

std::vector<int64_t> whole_numbers(const nlohmann::json& value) {
  const Tensor x = tensor_from(value);
  const auto all = x.values<int64_t>();
  return {all.begin(), all.end()};
}
std::vector<int64_t> whole_numbers(const std::vector<uint8_t>& codes) {
  return {codes.begin(), codes.end()};
}

void expect_microscaled(const Oracle& oracle) {
  const Tensor x = oracle.input("x", DType::f32);
  const auto got = quant::microscaled(
      x.values<float>(), *quant::small_float_named(oracle.word("element")),
      oracle.word("scale_rule") == "round_up" ? ScaleRule::round_up : ScaleRule::floor,
      static_cast<int64_t>(oracle.setting("block")));
  EXPECT_EQ(whole_numbers(got.scales), whole_numbers(oracle.expected["scale_codes"]));
  EXPECT_EQ(whole_numbers(got.codes), whole_numbers(oracle.expected["codes"]));
  expect_entry(oracle, "dequantized", tensor_of(dequantized(got), x.shape()));
}

void expect_nvfp4(const Oracle& oracle) {
  const Tensor x = oracle.input("x", DType::f32);
  const auto got = quant::nvfp4(x.values<float>());
  expect_entry(oracle, "tensor_scale", scalar(static_cast<double>(got.tensor_scale), DType::f64),
               DType::f32);
  EXPECT_EQ(whole_numbers(got.scales), whole_numbers(oracle.expected["scale_codes"]));
  EXPECT_EQ(whole_numbers(got.codes), whole_numbers(oracle.expected["codes"]));
  expect_entry(oracle, "dequantized", tensor_of(dequantized(got), x.shape()));
}

void expect_scaled(const Oracle& oracle) {
  const Tensor x = oracle.input("x", DType::f32);
  const auto got =
      quant::fp8_tensor(x.values<float>(), *quant::small_float_named(oracle.word("format")));
  expect_entry(oracle, "scale", scalar(static_cast<double>(got.scales[0]), DType::f64), DType::f32);
  EXPECT_EQ(whole_numbers(got.codes), whole_numbers(oracle.expected["codes"]));
  expect_entry(oracle, "dequantized", tensor_of(dequantized(got), x.shape()));
}

TEST(Microscaling, CodesAndScalesAreThoseOfTheOracles) {
  int compared = 0;
  for (const auto& path : oracle_files("methods/quant")) {
    const Oracle oracle = read_oracle(path);
    SCOPED_TRACE(oracle.method);
    if (oracle.method.starts_with("mxfp")) {
      expect_microscaled(oracle);
    } else if (oracle.method.starts_with("nvfp4")) {
      expect_nvfp4(oracle);
    } else if (oracle.method.ends_with("_scaled")) {
      expect_scaled(oracle);
    } else {
      continue;
    }
    ++compared;
  }
  EXPECT_GE(compared, 13);
}

TEST(Microscaling, AgreesWithTheBlocksOfTheDataFolder) {
  if (!data_folder()) {
    GTEST_SKIP() << no_data_folder;
  }
  std::ifstream file(*data_folder() / "num-low-precision/mx_blocks.json");
  const nlohmann::json blocks = nlohmann::json::parse(file)["blocks"];
  ASSERT_FALSE(blocks.empty());
  int compared = 0;
  for (const nlohmann::json& block : blocks) {
    const auto x = block["input_float32"].get<std::vector<float>>();
    for (const auto& [key, found] : block.items()) {
      if (key == "int8") {
        const auto got = quant::mxint8(x);
        EXPECT_EQ(got.scales[0], found["e8m0_scale_byte"].get<int>());
        EXPECT_EQ(std::vector<int64_t>(got.codes.begin(), got.codes.end()),
                  whole_numbers(found["codes"]));
        EXPECT_LE(
            normwise_error(tensor_of(dequantized(got), {32}), tensor_from(found["dequantized"])),
            0);
        ++compared;
        continue;
      }
      const size_t at = key.find("_e");
      if (!found.is_object() || at == std::string::npos) {
        continue;
      }
      const auto element = quant::small_float_named(key.substr(at + 1));
      ASSERT_TRUE(element) << key;
      const auto got = quant::microscaled(x, *element);
      EXPECT_EQ(got.scales[0], found["e8m0_scale_byte"].get<int>()) << key;
      EXPECT_EQ(whole_numbers(got.codes), whole_numbers(found["codes"])) << key;
      ++compared;
    }
  }
  EXPECT_GE(compared, 24);
}

std::vector<float> drawn(size_t count, double spread_of_blocks) {
  const Philox random({4, 5, 6});
  std::vector<float> out;
  for (size_t i = 0; i < count; ++i) {
    const double scale = std::pow(spread_of_blocks, static_cast<double>(i / 32 % 4) / 3);
    out.push_back(static_cast<float>(random.normal_f64(i) * scale));
  }
  return out;
}

double mean_relative_square(const std::vector<float>& x, const std::vector<float>& y) {
  double total = 0;
  for (size_t begin = 0; begin < x.size(); begin += 32) {
    double error = 0, size = 0;
    for (size_t i = begin; i < begin + 32; ++i) {
      error += std::pow(static_cast<double>(x[i]) - static_cast<double>(y[i]), 2);
      size += std::pow(static_cast<double>(x[i]), 2);
    }
    total += error / size;
  }
  return total * 32 / static_cast<double>(x.size());
}

TEST(Microscaling, BlocksOfDifferentMagnitudeLoseTenTimesLessThanUnderOneScale) {
  const std::vector<float> x = drawn(4096, 1000);
  for (const quant::SmallFloat& element : {quant::e2m1, quant::e3m2, quant::e2m3}) {
    const double blocks = mean_relative_square(x, dequantized(quant::microscaled(x, element)));
    const auto whole = quant::fp8_tensor(x, element);
    EXPECT_LT(10 * blocks, mean_relative_square(x, dequantized(whole))) << element.name;
  }
}

TEST(Microscaling, TakesTheBitsThatThePaperSays) {
  EXPECT_EQ(quant::bits_per_value(quant::microscaled(drawn(64, 1), quant::e2m1)), 4.25);
  EXPECT_EQ(quant::bits_per_value(quant::microscaled(drawn(64, 1), quant::e4m3)), 8.25);
}

TEST(Microscaling, RoundingTheScaleUpNeverSaturates) {
  for (const quant::SmallFloat& element : {quant::e4m3, quant::e5m2, quant::e2m1}) {
    const std::vector<float> x = drawn(3200, 1e6);
    const auto codes = quant::microscaled(x, element, ScaleRule::round_up);
    for (size_t i = 0; i < x.size(); ++i) {
      const double scaled =
          std::abs(static_cast<double>(x[i])) / quant::decoded_e8m0(codes.scales[i / 32]);
      EXPECT_LE(scaled, element.largest());
    }
  }
}

TEST(Microscaling, HoldsZerosExtremesAndWhatIsNoNumber) {
  const std::vector<float> zeros(32, 0.0F);
  EXPECT_EQ(dequantized(quant::microscaled(zeros, quant::e4m3)), zeros);
  EXPECT_EQ(dequantized(quant::nvfp4(zeros)), zeros);
  std::vector<float> wrong = drawn(64, 1);
  wrong[40] = std::numeric_limits<float>::quiet_NaN();
  const auto codes = quant::microscaled(wrong, quant::e4m3);
  EXPECT_EQ(codes.scales[1], 255);
  EXPECT_FALSE(std::isnan(dequantized(codes)[5]));
  EXPECT_TRUE(std::isnan(dequantized(codes)[33]));
  EXPECT_THAT(message_of(ErrorKind::numeric, [&] { quant::nvfp4(wrong); }),
              ::testing::StartsWith("nvfp4: a value is not finite: got "));
  EXPECT_EQ(message_of(ErrorKind::shape,
                       [&] {
                         quant::microscaled({zeros.data(), 31}, quant::e4m3);
                       }),
            "microscaling: the values are no whole blocks: 31 values, blocks of 32");
  EXPECT_EQ(dequantized(quant::mxint8(zeros)), zeros);
  EXPECT_EQ(quant::mxint8(wrong).scales[1], 255);
  std::vector<float> edge(32, 1.999F);
  EXPECT_EQ(quant::mxint8(edge).codes[0], 127);  // 127.9 units
  std::vector<float> tiny(16, std::numeric_limits<float>::denorm_min());
  for (const float value : dequantized(quant::nvfp4(tiny))) {
    EXPECT_TRUE(std::isfinite(value));
  }
  std::vector<float> huge(32, std::numeric_limits<float>::max());
  for (const ScaleRule rule : {ScaleRule::floor, ScaleRule::round_up}) {
    for (const float value : dequantized(quant::microscaled(huge, quant::e5m2, rule))) {
      EXPECT_GE(value, 0.8 * static_cast<double>(huge[0]));
    }
  }
}

TEST(Fp8, TilesHaveScalesOfTheirOwn) {
  const std::vector<float> x = drawn(6 * 256, 1000);
  const auto rows = quant::fp8_tiles(x, 6, 256, 1, 128, quant::e4m3);
  EXPECT_EQ(rows.scales.size(), 12u);
  const auto blocks = quant::fp8_tiles(x, 6, 256, 4, 128, quant::e4m3);
  EXPECT_EQ(blocks.scales.size(), 4u);
  const double of_rows = mean_relative_square(x, dequantized(rows));
  const double of_blocks = mean_relative_square(x, dequantized(blocks));
  const double of_tensor = mean_relative_square(x, dequantized(quant::fp8_tensor(x, quant::e4m3)));
  EXPECT_LT(of_rows, of_blocks * 1.1);  // measured: 6.9e-4 and 6.7e-4
  EXPECT_LT(of_blocks, of_tensor * 1.1);
  // 3 fraction bits: an error of at most 2⁻⁴ of each number that is not subnormal.
  EXPECT_LT(of_rows, std::pow(2.0, -8));
  EXPECT_EQ(message_of(ErrorKind::shape, [&] { quant::fp8_tiles(x, 6, 255, 1, 128, quant::e4m3); }),
            "fp8: the shape does not fit: 6 rows of 255 in tiles of 1 by 128, 1536 values");
}

TEST(Fp8, TheLargestOfATileIsKeptAlmostExactly) {
  const std::vector<float> x = drawn(2560, 10);
  for (const quant::SmallFloat& format : {quant::e4m3, quant::e5m2}) {
    const auto codes = quant::fp8_tiles(x, 10, 256, 1, 128, format);
    const auto back = dequantized(codes);
    for (size_t tile = 0; tile < 20; ++tile) {
      float most = 0, kept = 0;
      for (size_t i = tile * 128; i < tile * 128 + 128; ++i) {
        most = std::max(most, std::abs(x[i]));
        kept = std::max(kept, std::abs(back[i]));
      }
      EXPECT_NEAR(kept, most, 1e-6F * most);
    }
  }
}

TEST(Fp8, ADelayedScaleFollowsTheLastMaxima) {
  quant::DelayedScale delayed(3, 1);
  EXPECT_EQ(delayed.scale(quant::e4m3), 1.0F);  // nothing is known yet
  for (const float most : {2.0F, 14.0F, 1.0F}) {
    delayed.observe(most);
  }
  EXPECT_EQ(delayed.scale(quant::e4m3), 448.0F / 14 / 2);
  delayed.observe(3);
  EXPECT_EQ(delayed.scale(quant::e4m3), 448.0F / 14 / 2);
  delayed.observe(1);
  EXPECT_FLOAT_EQ(delayed.scale(quant::e4m3), 448.0F / 3 / 2);
  // What grows beyond the history saturates and is seen the next time.
  const auto codes = quant::fp8_tensor(std::vector<float>{100}, quant::e4m3, 448.0F / 3);
  EXPECT_FLOAT_EQ(dequantized(codes)[0], 3);
}

}  // namespace
}  // namespace ingot::testing
