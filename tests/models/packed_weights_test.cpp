#include "ingot/models/packed_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ingot/base/files.h"
#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "ingot/io/safetensors_shards.h"
#include "ingot/tensor/copy.h"
#include "tests/models/tiny_models.h"
#include "tests/support/message.h"

namespace ingot::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

// A folder written in integers, and what is in it.
class PackedFolders : public ::testing::Test {
 protected:
  std::filesystem::path write(const StoredModel& model, const PackedFormat& format,
                              const std::string& name = "packed") {
    result = write_folder(model, work / name, {.dtype = model.dtype, .packed = format});
    return work / name;
  }

  TensorDict stored(const std::filesystem::path& folder) {
    return SafetensorsSet(folder).tensors();
  }

  // The folder with one tensor changed, and what reading it says.
  std::string refusal(const std::string& tensor, const std::function<Tensor(const Tensor&)>& change,
                      ErrorKind kind = ErrorKind::format) {
    const std::filesystem::path broken = work / "broken";
    std::filesystem::remove_all(broken);
    make_directories(broken);
    write_file(broken / "config.json", read_file(work / "packed" / "config.json"));
    TensorDict changed;
    for (const auto& [name, value] : stored(work / "packed")) {
      const Tensor now = name == tensor ? change(value) : value;
      if (now.defined()) {
        changed.add(name, now);
      }
    }
    write_safetensors_set(broken, changed, 1 << 30);
    return message_of(kind, [&] { load_pretrained(broken); });
  }

  TemporaryFolder work;
  ExportResult result;
};

TEST_F(PackedFolders, HoldEveryMapOfTheLayersInIntegersAndTheRestAsItIs) {
  const StoredModel model = saved(tiny("llama"), work / "model");
  const std::filesystem::path folder = write(model, {.bits = 4, .group = 32});
  const TensorDict tensors = stored(folder);
  const Tensor& words = tensors.at("model.layers.0.self_attn.q_proj.weight_packed");
  EXPECT_EQ(words.dtype(), DType::i32);
  EXPECT_EQ(words.shape(), (Shape{64, 8}));
  EXPECT_EQ(tensors.at("model.layers.1.mlp.down_proj.weight_scale").shape(), (Shape{64, 3}));
  EXPECT_THAT(tensors.at("model.layers.1.mlp.down_proj.weight_shape").values<int64_t>(),
              ElementsAre(64, 96));
  EXPECT_EQ(tensors.at("model.embed_tokens.weight").dtype(), DType::f32);
  EXPECT_FALSE(tensors.contains("model.layers.0.self_attn.q_proj.weight"));
  const Json said = parse_json_file(folder / "config.json")["quantization_config"];
  EXPECT_EQ(said["quant_method"], "compressed-tensors");
  EXPECT_EQ(said["config_groups"]["group_0"]["weights"]["num_bits"], 4);
  EXPECT_THAT(said["ignore"].get<std::vector<std::string>>(), Contains("lm_head"));
  EXPECT_THAT(result.otherwise, ElementsAre());
}

// What is read is scale times code, whatever the type of the scales; a folder saved from it says
// nothing of integers.
TEST_F(PackedFolders, AreReadAsWhatTheirIntegersSay) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    SCOPED_TRACE(name(dtype));
    const std::string own = std::string("model-") + std::string(name(dtype));
    const StoredModel model = saved(tiny("llama"), work / own, dtype);
    const PackedFormat format = {.bits = 8, .group = 0};
    const std::filesystem::path folder = write(model, format, own + "-packed");
    const Pretrained loaded = load_pretrained(folder);
    EXPECT_EQ(loaded.model->dtype(), dtype);
    EXPECT_FALSE(Json::parse(loaded.config).contains("quantization_config"));
    const Tensor got =
        converted(loaded.model->parameters().at("layers.0.mlp.down.weight"), DType::f32);
    const Tensor exact = converted(
        load_stored(model).model->parameters().at("layers.0.mlp.down.weight"), DType::f32);
    const PackedMap map = packed_map(exact.values<float>(), exact.size(0), format, dtype);
    const Tensor words = stored(folder).at("model.layers.0.mlp.down_proj.weight_packed");
    EXPECT_THAT(words.values<int32_t>(), ::testing::ElementsAreArray(map.words));
    double worst = 0;
    for (size_t i = 0; i < got.values<float>().size(); ++i) {
      worst = std::max(worst,
                       std::abs(double{got.values<float>()[i]} - double{exact.values<float>()[i]}) /
                           double{map.scales[i / 96]});
    }
    // Half a step; in bf16 scale and product are rounded, by 2^-9 of up to 128 steps each: 0.877.
    EXPECT_LE(worst, dtype == DType::f32 ? 0.501 : 1.01);
    EXPECT_GT(worst, 0.4);
  }
}

TEST_F(PackedFolders, GiveNearlyTheLogitsOfTheModelInEveryFamilyWithLinearMaps) {
  for (const char* family : {"llama", "qwen2", "qwen3", "gemma2", "phi3", "gpt_neox", "olmo2"}) {
    SCOPED_TRACE(family);
    const StoredModel model = saved(tiny(family), work / family);
    const Tensor exact = logits_of(model);
    double most = 0;
    for (const float x : exact.values<float>()) {
      most = std::max(most, std::abs(double{x}));
    }
    double before = HUGE_VAL;
    for (const int64_t bits : {4, 8}) {
      const std::string out = concat(family, bits);
      const Tensor got = logits_of(open_model(write(model, {.bits = bits, .group = 32}, out)));
      double off = 0;
      for (size_t i = 0; i < got.values<float>().size(); ++i) {
        off = std::max(off,
                       std::abs(double{got.values<float>()[i]} - double{exact.values<float>()[i]}));
      }
      EXPECT_GT(off, 0);
      EXPECT_LT(off, before / 4);  // 16 times finer
      if (bits == 8) {
        EXPECT_LT(off / most, 0.12);  // at most 0.081, of weights that are all noise
      }
      before = off;
    }
  }
}

TEST_F(PackedFolders, LeaveRoutersAndRowsThatAreNoWholeGroups) {
  DecoderConfig config = tiny("mixtral");
  config.moe.experts = 4;
  config.moe.top_k = 2;
  const StoredModel model = saved(config, work / "model");
  const std::filesystem::path folder = write(model, {.bits = 4, .group = 64});
  const TensorDict tensors = stored(folder);
  EXPECT_TRUE(tensors.contains("model.layers.0.block_sparse_moe.gate.weight"));
  EXPECT_TRUE(tensors.contains("model.layers.0.block_sparse_moe.experts.3.w1.weight_packed"));
  EXPECT_TRUE(tensors.contains("model.layers.0.block_sparse_moe.experts.3.w2.weight"));
  EXPECT_THAT(result.otherwise,
              Contains("model.layers.0.block_sparse_moe.experts.3.w2.weight: f32, for 96 columns "
                       "are no whole groups of 64"));
  const Json said = parse_json_file(folder / "config.json")["quantization_config"];
  const auto ignored = said["ignore"].get<std::vector<std::string>>();
  EXPECT_THAT(ignored, Contains("model.layers.0.block_sparse_moe.gate"));
  EXPECT_THAT(ignored, Contains("model.layers.0.block_sparse_moe.experts.3.w2"));
  EXPECT_THAT(ignored, Not(Contains("model.layers.0.block_sparse_moe.experts.3.w1")));
  EXPECT_TRUE(load_stored(open_model(folder)).model != nullptr);
}

// Zeros are packed along the rows of the map: eight rows a word.
TEST(PackedZeros, AreTakenFromTheCodes) {
  TensorDict stored;
  stored.add("a.weight_packed", tensor_of(std::vector<int32_t>{0x0000'00f8, 0x0000'0008}, {2, 1}));
  stored.add("a.weight_scale", tensor_of(std::vector<float>{0.5F, 2.0F}, {2, 1}));
  stored.add("a.weight_shape", tensor_of(std::vector<int64_t>{2, 2}, {2}));
  stored.add("a.weight_zero_point", tensor_of(std::vector<int32_t>{0x0000'00a7}, {1, 1}));
  const TensorDict out = unpacked(stored, {.bits = 4, .group = 2, .symmetric = false}, "x");
  // Codes 0 7 and 0 −8; zeros −1 and 2.
  EXPECT_THAT(out.at("a.weight").values<float>(), ElementsAre(0.5F, 4.0F, -4.0F, -20.0F));
  EXPECT_EQ(out.size(), 1);
}

TEST_F(PackedFolders, RefusePartsThatDoNotFit) {
  write(saved(tiny("llama"), work / "model"), {.bits = 4, .group = 32});
  const std::string stem = "model.layers.0.self_attn.q_proj.weight";
  const auto gone = [](const Tensor&) { return Tensor(); };
  EXPECT_THAT(refusal(stem + "_scale", gone), HasSubstr(stem + "_scale: is missing"));
  EXPECT_THAT(refusal(stem + "_shape", gone), HasSubstr(stem + "_shape: is missing"));
  EXPECT_THAT(refusal(stem + "_packed", gone), HasSubstr("model.layers.0.self_attn.q_proj.weight"));
  const auto sizes = [](int64_t rows, int64_t columns) {
    return [=](const Tensor&) { return tensor_of(std::vector<int64_t>{rows, columns}, {2}); };
  };
  EXPECT_THAT(refusal(stem + "_shape", sizes(64, 128)),
              HasSubstr("weight_packed is i32 [64, 8], where weight_shape and quantization_config "
                        "ask for i32 [64, 16]"));
  EXPECT_THAT(refusal(stem + "_shape", sizes(64, 70)),
              HasSubstr("70 columns are no whole groups of 32"));
  EXPECT_THAT(refusal(stem + "_shape", sizes(-1, 64)),
              HasSubstr("weight_shape is no size of a matrix: -1 x 64"));
  EXPECT_THAT(refusal(stem + "_shape", sizes(int64_t{1} << 62, 64)),
              HasSubstr("is no size of a matrix"));
  EXPECT_THAT(refusal(stem + "_shape", [](const Tensor&) { return zeros({2}, DType::f32); }),
              HasSubstr("weight_shape is f32 [2], not two integers"));
  EXPECT_THAT(refusal(stem + "_scale",
                      [](const Tensor&) {
                        return zeros({64, 2}, DType::i32);
                      }),
              HasSubstr("weight_scale is i32, not a floating-point type"));
  EXPECT_THAT(refusal(stem + "_scale",
                      [](const Tensor&) {
                        return zeros({64, 3}, DType::f32);
                      }),
              HasSubstr("weight_scale is f32 [64, 3]"));
}

TEST(PackedFormats, SayWhichOthersTheyAre) {
  Json config = {{"quantization_config", packed_config({.bits = 4, .group = 128}, {"lm_head"})}};
  const auto read = packed_format(config, "config.json");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->bits, 4);
  EXPECT_EQ(read->group, 128);
  EXPECT_TRUE(read->symmetric);
  EXPECT_EQ(packed_format({{"quantization_config", packed_config({.group = 0}, {})}}, "x")->group,
            0);
  EXPECT_FALSE(packed_format(Json::object(), "x"));
  EXPECT_FALSE(packed_format({{"quantization_config", nullptr}}, "x"));
  const auto refused = [&](const std::string& pointer, const Json& value) {
    Json changed = config;
    changed[Json::json_pointer("/quantization_config" + pointer)] = value;
    return message_of(ErrorKind::config, [&] { packed_format(changed, "config.json"); });
  };
  const std::string weights = "/config_groups/group_0/weights";
  EXPECT_EQ(refused("/quant_method", "gptq"),
            "config.json: quantization_config: quant_method is \"gptq\"; read are weights of "
            "compressed-tensors in \"pack-quantized\" with 4 or 8 bits: convert the model with the "
            "program that made it");
  EXPECT_THROW(packed_format({{"quantization_config", 3}}, "config.json"), Error);
  EXPECT_THROW(packed_format({{"quantization_config", Json::array()}}, "config.json"), Error);
  EXPECT_THROW(packed_format({{"quantization_config", Json::object()}}, "config.json"), Error);
  EXPECT_THAT(refused("/format", "float-quantized"), HasSubstr("format is \"float-quantized\""));
  EXPECT_THAT(refused("/config_groups", Json::object()), HasSubstr("does not have one group"));
  EXPECT_THAT(refused("/config_groups", 3), HasSubstr("does not have one group"));
  EXPECT_THAT(refused(weights, nullptr), HasSubstr("says nothing of weights"));
  EXPECT_THAT(refused(weights + "/num_bits", 3), HasSubstr("type \"int\" with 3 bits"));
  EXPECT_THAT(refused(weights + "/type", "float"), HasSubstr("type \"float\" with 4 bits"));
  EXPECT_THAT(refused(weights + "/actorder", "group"), HasSubstr("columns are reordered"));
  EXPECT_THAT(refused(weights + "/strategy", "block"), HasSubstr("strategy is \"block\""));
  EXPECT_THAT(refused(weights + "/group_size", 0), HasSubstr("must be positive: got 0"));
  EXPECT_THAT(refused("/config_groups/group_0/input_activations", Json::object()),
              HasSubstr("activations are quantized too"));
}

TEST_F(PackedFolders, RefuseGroupsThatFitNoMap) {
  const StoredModel model = saved(tiny("llama"), work / "model");
  EXPECT_THAT(message_of(ErrorKind::config, [&] { write(model, {.bits = 4, .group = 128}); }),
              HasSubstr("no map has columns in whole groups of 128; choose a smaller --group"));
  EXPECT_FALSE(std::filesystem::exists(work / "packed"));
}

TEST_F(PackedFolders, RefuseAFamilyWhoseMapsAreTransposed) {
  const StoredModel model = saved(tiny("gpt2"), work / "model");
  EXPECT_THAT(message_of(ErrorKind::config, [&] { write(model, {.bits = 4, .group = 32}); }),
              HasSubstr("this family stores maps as [In, Out]"));
}

}  // namespace
}  // namespace ingot::testing
