#include "ingot/quant/codebook.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "ingot/quant/nf4.h"
#include "ingot/quant/small_float.h"
#include "ingot/tensor/factories.h"
#include "tests/support/message.h"
#include "tests/support/oracle.h"
#include "tests/support/paths.h"

namespace ingot::testing {
namespace {

using quant::codebook_codes;
using quant::dynamic_map;

std::vector<int64_t> whole_numbers(const std::vector<uint8_t>& codes) {
  return {codes.begin(), codes.end()};
}

Tensor line(const std::vector<float>& values) {
  return tensor_of(values, {static_cast<int64_t>(values.size())});
}

TEST(DynamicMap, RoundsAsTheOraclesDo) {
  int compared = 0;
  for (const auto& path : oracle_files("methods/quant")) {
    const Oracle oracle = read_oracle(path);
    if (!oracle.method.starts_with("dynamic_8bit")) {
      continue;
    }
    SCOPED_TRACE(oracle.file);
    const auto map = dynamic_map(oracle.hyper.at("signed").get<bool>());
    const Tensor x = oracle.input("x", DType::f32);
    const auto got =
        codebook_codes(x.values<float>(), map, static_cast<int64_t>(oracle.setting("blocksize")));
    expect_entry(oracle, "map", line({map.begin(), map.end()}));
    EXPECT_EQ(whole_numbers(got.codes), oracle.expected["codes"].get<std::vector<int64_t>>());
    expect_entry(oracle, "absmax", line(got.absmax));
    expect_entry(oracle, "dequantized", tensor_of(dequantized(got, map), x.shape()));
    ++compared;
  }
  EXPECT_GE(compared, 2);
}

TEST(Codebooks, AreThoseOfTheDataFolder) {
  if (!data_folder()) {
    GTEST_SKIP() << no_data_folder;
  }
  const auto books = parse_json_file(*data_folder() / "num-low-precision" / "codebooks.json");
  size_t compared = 0;
  const auto expect = [&](const char* name, const auto& ours, double factor) {
    const auto listed = books.at(name).get<std::vector<double>>();
    ASSERT_EQ(listed.size(), std::size(ours)) << name;
    for (size_t i = 0; i < listed.size(); ++i) {
      EXPECT_EQ(static_cast<float>(listed[i]), static_cast<float>(factor * ours[i])) << name << i;
    }
    ++compared;
  };
  expect("nf4", quant::nf4_codebook, 1);
  expect("bnb_fp4_by_code", quant::fp4_codebook, 1);
  expect("bnb_dynamic_8bit_signed", dynamic_map(true), 1);
  expect("bnb_dynamic_8bit_unsigned", dynamic_map(false), 1);
  std::vector<double> e2m1;
  for (uint8_t code = 0; code < 16; ++code) {
    e2m1.push_back(quant::decoded(quant::e2m1, code));
  }
  expect("mxfp4_ggml_x2", e2m1, 2);
  EXPECT_EQ(compared, books.size() - 1) << "a code book that no one compares";  // and "note"
}

TEST(Codebooks, NearestEntriesHaveTheLeastDistance) {
  const auto map = dynamic_map(true);
  for (int i = -1000; i <= 1000; ++i) {
    const float x = static_cast<float>(i) / 1000;
    const double found = std::abs(double{map[quant::nearest_entry(map, x)]} - double{x});
    for (const float entry : map) {
      EXPECT_LE(found, std::abs(double{entry} - double{x}));
    }
  }
}

TEST(Codebooks, HoldZerosShortBlocksAndRefuseWhatIsNoNumber) {
  const std::vector<float> zeros(5, 0.0F);
  const auto map = dynamic_map(true);
  EXPECT_EQ(dequantized(codebook_codes(zeros, map, 4), map), zeros);
  EXPECT_EQ(codebook_codes(zeros, map, 4).absmax.size(), 2u);
  EXPECT_TRUE(codebook_codes({}, map, 4).codes.empty());
  EXPECT_EQ(message_of(ErrorKind::argument, [&] { codebook_codes(zeros, map, 0); }),
            "codebook: blocks must have at least 1 value: got 0");
  std::vector<float> wrong = zeros;
  wrong[3] = INFINITY;
  EXPECT_EQ(message_of(ErrorKind::numeric, [&] { codebook_codes(wrong, map, 4); }),
            "codebook: value 3 is not finite");
}

}  // namespace
}  // namespace ingot::testing
