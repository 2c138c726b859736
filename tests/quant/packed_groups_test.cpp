#include "ingot/quant/packed_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "ingot/base/half.h"
#include "tests/support/message.h"

namespace ingot::testing {
namespace {

using quant::PackedGroups;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<float> row = {0.5, -1.5, 0.25, 1.0, 2.0, -0.1F, 0.0, -2.0, 0, 0, 0, 0};

struct Packed {
  std::vector<float> scales;
  std::vector<int32_t> words;
};

Packed packed(const std::vector<float>& x, const PackedGroups& format,
              DType scale_type = DType::f32) {
  const auto count = static_cast<int64_t>(x.size());
  Packed out{std::vector<float>(static_cast<size_t>(count / format.group)),
             std::vector<int32_t>(static_cast<size_t>(quant::words_of(count, format)))};
  quant::packed_scales(x, format, scale_type, out.scales);
  quant::pack_row(x, out.scales, format, out.words);
  return out;
}

std::vector<float> unpacked(const Packed& from, size_t count, const PackedGroups& format,
                            const std::vector<int32_t>& zeros = {}) {
  std::vector<float> out(count);
  quant::unpack_row(from.words, from.scales, zeros, format, out);
  return out;
}

// Scales and words of a program of its own, which follows the definition in Python's integers.
TEST(PackedGroups, HaveTheWordsThatTheDefinitionGives) {
  const Packed four = packed(row, {4, 4});
  EXPECT_THAT(four.scales, ElementsAre(0.2F, 2 / 7.5F, 1.0F));
  EXPECT_THAT(four.words, ElementsAre(412080394, 34952));
  const Packed eight = packed(row, {8, 4});
  EXPECT_THAT(eight.scales, ElementsAre(1.5F / 127.5F, 2 / 127.5F, 1.0F));
  EXPECT_THAT(eight.words, ElementsAre(-711655254, 25197311, -2139062144));
}

TEST(PackedGroups, AreReadAsScaleTimesCode) {
  const std::vector<float> four = unpacked(packed(row, {4, 4}), row.size(), {4, 4});
  EXPECT_FLOAT_EQ(four[0], 0.4F);
  EXPECT_FLOAT_EQ(four[1], -1.6F);  // −8, the only code beyond 7.5 steps
  EXPECT_FLOAT_EQ(four[4], 7 * 2 / 7.5F);
  EXPECT_EQ(four[9], 0);
  const std::vector<float> moved = unpacked(packed(row, {4, 4}), row.size(), {4, 4}, {1, -2, 0});
  EXPECT_FLOAT_EQ(moved[0], 0.2F);
  EXPECT_FLOAT_EQ(moved[4], 9 * 2 / 7.5F);
}

// Half a step, and up to a step at the end of the range, where 7.5 steps are cut to 7.
TEST(PackedGroups, AreOffByNoMoreThanRoundingAllows) {
  std::vector<float> x(256);
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = std::sin(static_cast<float>(i * i)) * static_cast<float>(1 + i % 7);
  }
  for (const int64_t bits : {4, 8}) {
    for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
      const PackedGroups format = {bits, 32};
      const Packed from = packed(x, format, type);
      const std::vector<float> y = unpacked(from, x.size(), format);
      for (size_t i = 0; i < x.size(); ++i) {
        const float scale = from.scales[i / 32];
        const float end = scale * static_cast<float>((1 << (bits - 1)) - 1);
        const float allowed = std::abs(x[i]) > end ? std::abs(x[i]) - end : 0.5F * scale;
        EXPECT_LE(std::abs(x[i] - y[i]), allowed * 1.0001F) << bits << ' ' << i;
      }
    }
  }
}

TEST(PackedGroups, ScalesAreRoundedBeforeCodesAreChosen) {
  const Packed from = packed({1, 0.3F, -0.2F, 0.9F}, {4, 4}, DType::bf16);
  EXPECT_EQ(from.scales[0], static_cast<float>(static_cast<BF16>(1 / 7.5F)));
  const Packed tiny = packed({1e-9F, 0, 0, 0}, {4, 4}, DType::f16);  // no f16 is as small
  EXPECT_THAT(tiny.scales, ElementsAre(1.0F));
  EXPECT_THAT(unpacked(tiny, 4, {4, 4}), ElementsAre(0, 0, 0, 0));
}

TEST(PackedGroups, RefuseWhatIsNotFinite) {
  EXPECT_THAT(message_of(ErrorKind::numeric,
                         [] {
                           packed({1, 2, std::nanf(""), 4}, {4, 4});
                         }),
              HasSubstr("value 2 of the row is not finite"));
}

}  // namespace
}  // namespace ingot::testing
