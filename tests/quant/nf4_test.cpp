#include "ingot/quant/nf4.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ingot/base/json.h"
#include "ingot/quant/coded_weights.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"
#include "tests/support/op_case.h"
#include "tests/support/oracle.h"
#include "tests/support/paths.h"

namespace ingot::testing {
namespace {

using quant::nf4_codes;
using quant::Nf4Codes;
using quant::ScaleStorage;

std::vector<int64_t> whole(const Tensor& x) {
  const Tensor all = x.dtype() == DType::i64 ? x : converted(x, DType::i64);
  const auto values = all.values<int64_t>();
  return {values.begin(), values.end()};
}

std::vector<float> decoded(const Nf4Codes& codes) {
  std::vector<float> out(static_cast<size_t>(codes.count));
  quant::nf4_decode(codes, 0, out);
  return out;
}

void expect_fixture(const Oracle& oracle) {
  const auto block = static_cast<int64_t>(oracle.setting("blocksize"));
  const bool twice = oracle.hyper.at("double_quantization").get<bool>();
  const Nf4Codes got = nf4_codes(oracle.input("x", DType::f32), block,
                                 twice ? ScaleStorage::doubled : ScaleStorage::f32);
  EXPECT_EQ(whole(got.packed), whole(tensor_from(oracle.expected["packed_high_nibble_first"])));
  std::vector<float> absmax;
  for (int64_t b = 0; b * block < got.count; ++b) {
    absmax.push_back(quant::nf4_absmax(got, b));
  }
  expect_entry(oracle, twice ? "absmax_restored" : "absmax",
               tensor_of(absmax, {static_cast<int64_t>(absmax.size())}));
  if (twice) {
    EXPECT_EQ(whole(got.scale_codes), whole(tensor_from(oracle.expected["absmax_codes"])));
    expect_entry(oracle, "absmax_of_absmax", got.scale_scales);
    expect_entry(oracle, "absmax_offset", scalar(got.offset, DType::f32));
  }
  expect_entry(oracle, "dequantized", tensor_of(decoded(got), {got.count}));
  const std::vector<float> book(quant::nf4_codebook.begin(), quant::nf4_codebook.end());
  expect_entry(oracle, "codebook", tensor_of(book, {16}));
}

TEST(Nf4, RoundsAsTheOraclesDo) {
  int compared = 0;
  for (const auto& path : oracle_files("methods/quant")) {
    const Oracle oracle = read_oracle(path);
    if (oracle.method.starts_with("nf4")) {
      SCOPED_TRACE(oracle.file);
      expect_fixture(oracle);
      ++compared;
    }
  }
  EXPECT_GT(compared, 0) << "no nf4 file in methods/quant of the oracle folder";
}

TEST(Nf4, AgreesWithTheBlocksOfTheDataFolder) {
  if (!data_folder()) {
    GTEST_SKIP() << no_data_folder;
  }
  const auto blocks =
      parse_json_file(*data_folder() / "num-low-precision" / "nf4_blocks.json").at("blocks");
  ASSERT_FALSE(blocks.empty());
  for (const auto& one : blocks) {
    const auto x = one.at("input").get<std::vector<float>>();
    const auto count = static_cast<int64_t>(x.size());
    const Nf4Codes got = nf4_codes(tensor_of(x, {count}), count);
    EXPECT_EQ(quant::nf4_absmax(got, 0), one.at("absmax").get<float>());
    EXPECT_EQ(whole(got.packed),
              one.at("packed_bytes_high_nibble_first").get<std::vector<int64_t>>());
    EXPECT_LE(normwise_error(tensor_of(decoded(got), {count}), tensor_from(one.at("dequantized"))),
              1e-7);
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_EQ(quant::nf4_nearest(x[i] / quant::nf4_absmax(got, 0)),
                one.at("indices")[i].get<int>());
    }
  }
}

TEST(Nf4, TakesTheBitsThatThePaperCounts) {
  const Tensor x = converted(random_tensor({1 << 20}, 3), DType::f32);
  EXPECT_DOUBLE_EQ(nf4_codes(x).bits_per_value(), 4.5);
  // 4 + 8/64 + 32/(64·256) bits (QLoRA, section 3).
  EXPECT_NEAR(nf4_codes(x, 64, ScaleStorage::doubled).bits_per_value(), 4.127, 5e-4);
}

TEST(Nf4, DecodesAnyStretchAsThatOfTheWhole) {
  const Tensor x = converted(random_tensor({333}, 3), DType::f32);
  for (const ScaleStorage scales : {ScaleStorage::f32, ScaleStorage::doubled}) {
    const Nf4Codes codes = nf4_codes(x, 64, scales);
    const std::vector<float> all = decoded(codes);
    for (const auto& [begin, end] : std::vector<std::pair<int64_t, int64_t>>{
             {0, 1}, {1, 2}, {63, 65}, {64, 333}, {7, 130}, {332, 333}, {5, 5}}) {
      std::vector<float> part(static_cast<size_t>(end - begin));
      quant::nf4_decode(codes, begin, part);
      EXPECT_EQ(part, std::vector<float>(all.begin() + begin, all.begin() + end)) << begin;
    }
  }
}

TEST(Nf4, KeepsZerosAndRefusesWhatIsNotFinite) {
  const std::vector<float> zero(70, 0.0F);
  EXPECT_EQ(decoded(nf4_codes(tensor_of(zero, {70}))), zero);
  std::vector<float> wrong = zero;
  wrong[66] = std::numeric_limits<float>::quiet_NaN();
  expect_error([&] { nf4_codes(tensor_of(wrong, {70})); }, "nf4: value 66 is not finite");
  expect_error([&] { nf4_codes(tensor_of(zero, {70}), 63); },
               "nf4: blocks must be of an even number of values: got 63");
  EXPECT_EQ(nf4_codes(zeros({0}, DType::f32), 64, ScaleStorage::doubled).bytes(), 0);
}

TEST(CodedWeights, DecodeTheRowsOfTheirMatrix) {
  const Tensor w = converted(random_tensor({37, 75}, 5), DType::f32);
  for (const auto& coded : {quant::nf4_weight(w), quant::int8_rows(w)}) {
    const Tensor all = coded->decoded(0, 37, DType::f32);
    EXPECT_LT(difference(all, w), 0.6);  // of values up to 3.5: NF4 0.29
    EXPECT_TRUE(same_bits(coded->decoded(11, 20, DType::f32), copy_of(sliced(all, 0, 11, 20))));
    EXPECT_EQ(coded->decoded(3, 5, DType::bf16).dtype(), DType::bf16);
  }
  const Tensor planned = empty({37, 75}, DType::f32, meta_device);
  EXPECT_EQ(quant::nf4_weight(planned)->bytes(), quant::nf4_weight(w)->bytes());
}

}  // namespace
}  // namespace ingot::testing
