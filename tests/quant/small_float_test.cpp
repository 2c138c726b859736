#include "ingot/quant/small_float.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <limits>

#include "ingot/base/half.h"
#include "ingot/base/json_library.h"
#include "ingot/base/philox.h"
#include "tests/support/message.h"
#include "tests/support/oracle.h"
#include "tests/support/paths.h"

namespace ingot::testing {
namespace {

using quant::decoded;
using quant::encoded;
using quant::Overflow;
using quant::SmallFloat;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr SmallFloat formats[] = {quant::e4m3, quant::e5m2, quant::e3m2, quant::e2m3, quant::e2m1};

// The data folder spells what JSON lacks as "nan", "inf" and "-inf".
double listed(const nlohmann::json& value) {
  if (!value.is_string()) {
    return value.get<double>();
  }
  const std::string text = value;
  return text == "inf" || text == "-inf" ? (text[0] == '-' ? -infinity : infinity)
         : text == "nan"                 ? std::nan("")
                                         : number_from(value);
}

bool same_number(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

void expect_decodes(const SmallFloat& format, const nlohmann::json& values) {
  ASSERT_EQ(values.size(), size_t{1} << format.bits());
  for (size_t code = 0; code < values.size(); ++code) {
    EXPECT_TRUE(same_number(decoded(format, static_cast<uint8_t>(code)), listed(values[code])))
        << format.name << " " << code;
  }
}

void expect_codes(const SmallFloat& format, const nlohmann::json& numbers,
                  const nlohmann::json& codes, Overflow overflow) {
  ASSERT_EQ(numbers.size(), codes.size());
  for (size_t i = 0; i < codes.size(); ++i) {
    EXPECT_EQ(encoded(format, listed(numbers[i]), overflow), codes[i].get<int>())
        << format.name << " of " << numbers[i];
  }
}

TEST(SmallFloat, DecodesAndRoundsAsTheOraclesDo) {
  int compared = 0;
  for (const auto& path : oracle_files("methods/quant")) {
    const Oracle oracle = read_oracle(path);
    SCOPED_TRACE(oracle.method);
    const bool rounds = oracle.method.ends_with("_rounding");
    const auto format = quant::small_float_named(oracle.word("format"));
    if (format && oracle.method.ends_with("_decode")) {
      expect_decodes(*format, oracle.expected["values"]);
    } else if (format && rounds) {
      expect_codes(*format, oracle.inputs["x"], oracle.expected["codes_saturating"],
                   Overflow::saturate);
      expect_codes(*format, oracle.inputs["x"], oracle.expected["codes_not_saturating"],
                   Overflow::overflow);
    } else if (oracle.method == "e8m0_decode") {
      for (size_t code = 0; code < 256; ++code) {
        EXPECT_TRUE(same_number(quant::decoded_e8m0(static_cast<uint8_t>(code)),
                                number_from(oracle.expected["values"][code])));
      }
    } else if (rounds) {  // bf16 and fp16, by their bits
      for (size_t i = 0; i < oracle.inputs["float32_bits"].size(); ++i) {
        const auto x = std::bit_cast<float>(oracle.inputs["float32_bits"][i].get<uint32_t>());
        const uint16_t bits = oracle.word("format") == "bf16"
                                  ? BF16(x).bits
                                  : std::bit_cast<uint16_t>(static_cast<F16>(x));
        EXPECT_EQ(bits, oracle.expected["bits"][i].get<int>()) << x;
      }
    } else {
      continue;
    }
    ++compared;
  }
  EXPECT_GE(compared, 9);
}

TEST(SmallFloat, AgreesWithTheTablesOfTheDataFolder) {
  if (!data_folder()) {
    GTEST_SKIP() << no_data_folder;
  }
  const auto read = [](const char* name) {
    std::ifstream file(*data_folder() / "num-low-precision" / name);
    return nlohmann::json::parse(file);
  };
  const nlohmann::json tables = read("decode_tables.json");
  const nlohmann::json conversions = read("float_conversions.json");
  for (const SmallFloat& format : formats) {
    const std::string name = format.name == "e4m3" ? "e4m3fn" : std::string(format.name);
    const std::string key = "fp" + std::to_string(format.bits()) + "_" + name;
    ASSERT_TRUE(tables.contains(key)) << key;
    expect_decodes(format, tables[key]);
    expect_codes(format, conversions["float32"], conversions[key + "_saturate"],
                 Overflow::saturate);
    if (format.bits() == 8) {
      expect_codes(format, conversions["float32"], conversions[key + "_nonsaturate"],
                   Overflow::overflow);
    }
  }
  for (size_t i = 0; i < conversions["float32"].size(); ++i) {
    const auto x = static_cast<float>(listed(conversions["float32"][i]));
    const auto hex = [&](const char* key) {
      return std::stoul(conversions[key][i].get<std::string>(), nullptr, 16);
    };
    EXPECT_EQ(BF16(x).bits, hex("bf16_hex")) << x;
    EXPECT_EQ(std::bit_cast<uint16_t>(static_cast<F16>(x)), hex("fp16_hex")) << x;
  }
}

TEST(SmallFloat, EveryNumberKeepsItsCode) {
  for (const SmallFloat& format : formats) {
    for (int code = 0; code < 1 << format.bits(); ++code) {
      const double value = decoded(format, static_cast<uint8_t>(code));
      if (!std::isnan(value)) {
        EXPECT_EQ(encoded(format, value, Overflow::overflow), code) << format.name;
      }
    }
  }
}

TEST(SmallFloat, TakesTheNearestNumberAndTheEvenCodeAtATie) {
  for (const SmallFloat& format : formats) {
    for (uint8_t code = 0; code < format.largest_code(); ++code) {
      const double low = decoded(format, code);
      const double high = decoded(format, static_cast<uint8_t>(code + 1));
      const double middle = (low + high) / 2;
      EXPECT_EQ(encoded(format, middle), code % 2 == 0 ? code : code + 1) << format.name;
      EXPECT_EQ(encoded(format, std::nextafter(middle, low)), code);
      EXPECT_EQ(encoded(format, std::nextafter(middle, high)), code + 1);
    }
  }
}

TEST(SmallFloat, TheirLargestNumbersAreThePublishedOnes) {
  EXPECT_EQ(quant::e4m3.largest(), 448);
  EXPECT_EQ(quant::e5m2.largest(), 57344);
  EXPECT_EQ(quant::e3m2.largest(), 28);
  EXPECT_EQ(quant::e2m3.largest(), 7.5);
  EXPECT_EQ(quant::e2m1.largest(), 6);
  EXPECT_EQ(quant::e4m3.largest_exponent(), 8);
}

TEST(SmallFloat, WhatIsNoNumberHasACodeOrAnError) {
  const double nan_value = std::numeric_limits<double>::quiet_NaN();
  for (const SmallFloat& format : {quant::e4m3, quant::e5m2}) {
    EXPECT_TRUE(std::isnan(decoded(format, encoded(format, nan_value))));
    EXPECT_EQ(decoded(format, encoded(format, -infinity)), -format.largest());
  }
  EXPECT_EQ(decoded(quant::e5m2, encoded(quant::e5m2, infinity, Overflow::overflow)), infinity);
  EXPECT_TRUE(std::isnan(decoded(quant::e4m3, encoded(quant::e4m3, 1e9, Overflow::overflow))));
  EXPECT_EQ(message_of(ErrorKind::numeric, [&] { encoded(quant::e2m1, nan_value); }),
            "e2m1: NaN has no code in this format");
}

TEST(SmallFloat, StochasticRoundingHasTheRightMean) {
  const Philox random({1, 2, 3});
  constexpr int draws = 100000;
  for (const SmallFloat& format : formats) {
    for (const double x : {0.3, -1.9, 2.25, 5.1}) {
      double sum = 0, squares = 0;
      for (int i = 0; i < draws; ++i) {
        const double y = decoded(
            format,
            quant::encoded_stochastically(format, x, random.uniform_f64(static_cast<uint64_t>(i))));
        sum += y;
        squares += y * y;
      }
      const double mean = sum / draws;
      const double error = std::sqrt(std::max(0.0, squares / draws - mean * mean) / draws);
      EXPECT_NEAR(mean, x, 3 * error + 1e-12) << format.name;
    }
  }
  EXPECT_EQ(quant::encoded_stochastically(quant::e2m1, 9, 0.9), encoded(quant::e2m1, 6));
}

}  // namespace
}  // namespace ingot::testing
