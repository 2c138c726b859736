#include <gmock/gmock.h>

#include "ingot/models/architecture.h"
#include "tests/models/tiny_models.h"
#include "tests/support/message.h"

namespace ingot::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(GgufWindows, AreWrittenUnderTheirKeyAndReadBackFromIt) {
  for (const char* family : {"mistral", "mixtral", "phi3"}) {
    SCOPED_TRACE(family);
    const TemporaryFolder work;
    DecoderConfig c = tiny(family);
    c.window = 3;
    c.moe.experts = family == std::string("mixtral") ? 4 : 0;
    const StoredModel there = saved(c, work / "hf");
    ASSERT_EQ(there.config.window, 3);
    write_gguf(there, work / "x.gguf", GgmlType::f32);
    const GgufFile file(work / "x.gguf");
    const std::string prefix = family == std::string("phi3") ? "phi3." : "llama.";
    EXPECT_EQ(file.metadata().integer(prefix + "attention.sliding_window", "x"), 3);
    EXPECT_FALSE(file.metadata().contains(prefix + "attention.sliding_window_pattern"));
    const StoredModel bare = by_its_own_keys(work / "x.gguf");
    EXPECT_EQ(bare.model_type, family);
    EXPECT_EQ(bare.config.window, 3);
    expect_same_logits(there, bare);
  }
}

TEST(GgufWindows, OfSomeLayersAreWrittenAsAPattern) {
  for (const char* family : {"qwen2", "qwen3"}) {
    SCOPED_TRACE(family);
    const TemporaryFolder work;
    DecoderConfig c = tiny(family);
    c.layers = 3;
    c.qk_norm = family == std::string("qwen3");
    c.window = 2;
    c.windowed_layers = std::vector<int64_t>{0, 2};
    const StoredModel there = saved(c, work / "hf");
    write_gguf(there, work / "x.gguf", GgmlType::f32);
    const GgufFile file(work / "x.gguf");
    const GgufValue* pattern =
        file.metadata().find(std::string(family) + ".attention.sliding_window_pattern");
    ASSERT_NE(pattern, nullptr);
    EXPECT_TRUE(*pattern == GgufValue{GgufArray{std::vector<bool>({true, false, true})}});
    const StoredModel bare = by_its_own_keys(work / "x.gguf");
    EXPECT_EQ(bare.config.windowed_layers, c.windowed_layers);
    expect_same_logits(there, bare);
  }
}

// Without the key a mistral file is read as llama.cpp computes it.
TEST(GgufWindows, ThatAFileDoesNotNameAreNone) {
  const TemporaryFolder work;
  DecoderConfig c = tiny("mistral");
  c.window = 3;
  write_gguf(saved(c, work / "hf"), work / "x.gguf", GgmlType::f32);
  GgufHeader header = GgufFile(work / "x.gguf").header();
  header.metadata.erase("llama.attention.sliding_window");
  const GgufFile file(work / "x.gguf");
  GgufWriter writer(work / "y.gguf", header);
  for (const GgufTensor& tensor : file.tensors()) {
    writer.write(file.bytes(tensor));
  }
  writer.commit();
  EXPECT_EQ(open_model(work / "y.gguf").config.window, 0);
}

TEST(GgufWindows, AreSaidWhereLlamaCppComputesNone) {
  const TemporaryFolder work;
  const auto differs = [&](const DecoderConfig& config) {
    static int number = 0;
    return write_gguf(saved(config, work / concat("hf", ++number)), work / "x.gguf", GgmlType::f32)
        .differs;
  };
  DecoderConfig c = tiny("mistral");
  c.window = 3;
  EXPECT_THAT(differs(c),
              ElementsAre("llama.cpp computes no window for llama: beyond a text's first 3 tokens "
                          "its results are another model's"));
  c.window = 0;
  EXPECT_THAT(differs(c), IsEmpty());
  c = start_of("gemma2");
  c.vocab = 256;
  c.width = 64;
  c.layers = 2;
  c.heads = 4;
  c.hidden = 96;
  c.context = 32;
  c.window = 3;
  EXPECT_THAT(differs(c), IsEmpty());  // it computes those
}

TEST(GgufWindows, RefuseAPatternThatIsNoListOfBooleans) {
  const TemporaryFolder work;
  DecoderConfig c = tiny("qwen2");
  c.window = 2;
  write_gguf(saved(c, work / "hf"), work / "x.gguf", GgmlType::f32);
  GgufMetadata wrong;
  wrong.set("ingot.config", "{}");
  wrong.set("qwen2.attention.sliding_window_pattern", "every other");
  rewrite_gguf(GgufFile(work / "x.gguf"), work / "y.gguf", std::nullopt, wrong);
  EXPECT_THAT(message_of(ErrorKind::format, [&] { open_model(work / "y.gguf"); }),
              HasSubstr("qwen2.attention.sliding_window_pattern: must be a list of booleans"));
}

TEST(GgufNames, ThatLlamaCppTakesForPhi3AreDivided) {
  const TemporaryFolder work;
  const StoredModel there = saved(tiny("phi3"), work / "My-Phi3-tune");
  write_gguf(there, work / "x.gguf", GgmlType::f32);
  EXPECT_EQ(GgufFile(work / "x.gguf").metadata().text("general.name", "x"), "My-phi 3-tune");
}

}  // namespace
}  // namespace ingot::testing
