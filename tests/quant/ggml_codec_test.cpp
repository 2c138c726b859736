#include "ingot/quant/ggml_codec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "ingot/base/files.h"
#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "tests/support/message.h"
#include "tests/support/oracle.h"
#include "tests/support/paths.h"

namespace ingot::testing {
namespace {

using quant::codec_of;
using quant::decode_values;
using quant::encode_values;
using quant::ggml_codecs;

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();

std::vector<float> floats_of(const std::filesystem::path& path) {
  const std::string bytes = read_file(path);
  std::vector<float> out(bytes.size() / sizeof(float));
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

std::vector<float> decoded(GgmlType type, const std::string& bytes) {
  const GgmlLayout& layout = layout_of(type);
  std::vector<float> out(bytes.size() / static_cast<size_t>(layout.block_bytes) *
                         static_cast<size_t>(layout.block_values));
  decode_values(type, std::as_bytes(std::span(bytes)), out);
  return out;
}

std::string encoded(GgmlType type, std::span<const float> values) {
  std::string out(static_cast<size_t>(bytes_of(type, static_cast<int64_t>(values.size()))), '\0');
  encode_values(type, values, std::as_writable_bytes(std::span(out)));
  return out;
}

double rms(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    sum += std::pow(double{a[i]} - double{b[i]}, 2);
  }
  return std::sqrt(sum / static_cast<double>(a.size()));
}

// Folders in the form of num-ggml-quant: oracle.json, input.f32, and of each type TYPE.q, TYPE.f32.
std::vector<std::filesystem::path> block_oracles() {
  std::vector<std::filesystem::path> out;
  for (const auto& folder : {data_folder().value_or("") / "num-ggml-quant",
                             oracle_folder() / "ggml-quant", oracle_folder()}) {
    if (std::filesystem::exists(folder / "input.f32")) {
      out.push_back(folder);
    }
  }
  return out;
}

bool is_written(GgmlType type) {
  const auto codecs = ggml_codecs();
  return std::any_of(codecs.begin(), codecs.end(), [&](const auto& codec) {
    return codec.type == type && codec.encode != nullptr;
  });
}

bool is_read(GgmlType type) {
  const auto codecs = ggml_codecs();
  return std::any_of(codecs.begin(), codecs.end(),
                     [&](const auto& codec) { return codec.type == type; });
}

TEST(GgmlBlocks, DecodeToTheBit) {
  const auto folders = block_oracles();
  if (folders.empty()) {
    GTEST_SKIP() << no_data_folder;
  }
  std::string unread;
  for (const auto& folder : folders) {
    const auto oracle = parse_json_file(folder / "oracle.json");
    for (const auto& [word, about] : oracle["types"].items()) {
      const auto type = ggml_type_named(word);
      ASSERT_TRUE(type) << word;
      const GgmlLayout& layout = layout_of(*type);
      EXPECT_EQ(static_cast<int>(*type), about["ggml_type"].get<int>());
      EXPECT_EQ(layout.block_values, about["block_size"].get<int64_t>());
      EXPECT_EQ(layout.block_bytes, about["bytes_per_block"].get<int64_t>());
      if (!is_read(*type)) {
        unread += " " + word;
        continue;
      }
      const std::vector<float> got = decoded(*type, read_file(folder / (word + ".q")));
      const std::vector<float> expected = floats_of(folder / (word + ".f32"));
      ASSERT_EQ(got.size(), expected.size());
      for (size_t i = 0; i < got.size(); ++i) {
        ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(expected[i]))
            << word << " value " << i << ": " << got[i] << " for " << expected[i];
      }
    }
  }
  std::cout << "types of the oracle not covered:" << unread << '\n';
}

// The errors that ggml's own encoders make are the ones to beat, row by row.
TEST(GgmlBlocks, EncodeAtLeastAsWellAsTheReference) {
  const auto folders = block_oracles();
  if (folders.empty()) {
    GTEST_SKIP() << no_data_folder;
  }
  for (const auto& folder : folders) {
    const auto oracle = parse_json_file(folder / "oracle.json");
    const std::vector<float> input = floats_of(folder / "input.f32");
    const auto width = oracle["shape"][1].get<size_t>();
    for (const auto& [word, about] : oracle["types"].items()) {
      const GgmlType type = *ggml_type_named(word);
      if (!is_written(type)) {
        continue;
      }
      const std::vector<float> back = decoded(type, encoded(type, input));
      const auto& limits = about["rmse_per_row"];
      for (size_t row = 0; row < limits.size(); ++row) {
        const double error = rms(std::span(input).subspan(row * width, width),
                                 std::span(back).subspan(row * width, width));
        // The figures are printed with six digits.
        EXPECT_LE(error, limits[row].get<double>() * (1 + 5e-6)) << word << " row " << row;
      }
    }
  }
}

TEST(GgmlBlocks, AgreeWithTheMethodOracles) {
  int compared = 0;
  for (const auto& path : oracle_files("methods/quant")) {
    const Oracle oracle = read_oracle(path);
    if (!oracle.method.starts_with("gguf_")) {
      continue;
    }
    const auto type = ggml_type_named(oracle.word("type"));
    ASSERT_TRUE(type) << path;
    const auto hex = oracle.inputs["bytes_hex"].get<std::string>();
    std::string bytes;
    for (size_t i = 0; i < hex.size(); i += 2) {
      bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
    }
    const std::vector<float> got = decoded(*type, bytes);
    const auto& expected = oracle.expected["values"];
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      // The oracle computes in f64; a product of three factors is rounded once here.
      const double value = expected[i].get<double>();
      EXPECT_NEAR(got[i], value, std::abs(value) * 1e-7) << oracle.method << " value " << i;
    }
    ++compared;
  }
  EXPECT_GT(compared, 0);
}

// Every code of every scale: what is read and written again is read the same.
TEST(GgmlBlocks, KeepWhatTheyDecodedBefore) {
  for (const auto& codec : ggml_codecs()) {
    if (codec.encode == nullptr) {
      continue;
    }
    std::vector<float> values(512);
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = std::sin(static_cast<float>(i * i)) * 0.05F;
    }
    const auto once = decoded(codec.type, encoded(codec.type, values));
    const auto twice = decoded(codec.type, encoded(codec.type, once));
    // An encoder that searches may find codes still nearer; it may not lose what was exact.
    EXPECT_LE(rms(once, twice), 0.03 * rms(values, once) + 1e-12) << name(codec.type);
  }
}

TEST(GgmlBlocks, RefuseWhatATypeCannotHold) {
  for (const auto& codec : ggml_codecs()) {
    if (codec.encode == nullptr || codec.type == GgmlType::f32 || codec.type == GgmlType::bf16) {
      continue;
    }
    for (const float wrong : {nan_value, INFINITY, -1e5F}) {
      std::vector<float> values(256, 1.0F);
      values[77] = wrong;
      const std::string message =
          message_of(ErrorKind::numeric, [&] { encoded(codec.type, values); });
      EXPECT_EQ(message, concat(name(codec.type), ": value 77 cannot be stored: it is ", wrong,
                                ", allowed are finite numbers within 65504 of 0"));
    }
  }
}

TEST(GgmlBlocks, RefuseScalesThatAreNotNumbers) {
  for (const auto& codec : ggml_codecs()) {
    const GgmlLayout& layout = layout_of(codec.type);
    if (layout.block_values == 1) {
      continue;
    }
    std::string bytes(static_cast<size_t>(3 * layout.block_bytes), '\x11');
    std::fill_n(bytes.begin() + layout.block_bytes, layout.block_bytes, '\xff');
    EXPECT_EQ(message_of(ErrorKind::numeric, [&] { decoded(codec.type, bytes); }),
              concat(layout.name, ": value ", layout.block_values,
                     " is not finite: the scale of its block is NaN or infinite; the file is "
                     "damaged"));
  }
}

TEST(GgmlBlocks, TakeTheLargestAndTheSmallestNumbers) {
  for (const auto& codec : ggml_codecs()) {
    if (codec.encode == nullptr) {
      continue;
    }
    for (const float size : {65504.0F, 1e-38F, 1e-44F, 0.0F, -0.0F}) {
      std::vector<float> values(256, size);
      values[3] = -size;
      const auto back = decoded(codec.type, encoded(codec.type, values));
      EXPECT_LE(rms(values, back), 0.2 * std::abs(size) + 1e-7) << name(codec.type) << size;
    }
  }
}

TEST(GgmlBlocks, SayWhatIsWrongWithSizesAndTypes) {
  std::vector<float> values(31);
  std::vector<std::byte> bytes(17);
  EXPECT_EQ(message_of(ErrorKind::shape, [&] { decode_values(GgmlType::q4_0, bytes, values); }),
            "Q4_0: holds whole blocks of 32 values: got 31");
  values.resize(32);
  EXPECT_EQ(message_of(ErrorKind::shape, [&] { encode_values(GgmlType::q4_0, values, bytes); }),
            "Q4_0: 32 values take 18 bytes: got 17");
  EXPECT_EQ(message_of(ErrorKind::dtype, [&] { encode_values(GgmlType::mxfp4, values, bytes); }),
            "MXFP4: Ingot reads this type and does not write it");
  EXPECT_TRUE(message_of(ErrorKind::dtype, [] {
                codec_of(GgmlType::iq1_s);
              }).starts_with("IQ1_S: Ingot does not read this type; it reads F32, F16, Q4_0"));
}

}  // namespace
}  // namespace ingot::testing
