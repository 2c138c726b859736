#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>

#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "ingot/io/gguf.h"
#include "ingot/models/pretrained.h"
#include "ingot/nn/initialise.h"
#include "tests/cli/program.h"

namespace ingot::testing {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

class Convert : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = no_program(); !reason.empty()) {
      GTEST_SKIP() << reason;
    }
    save_model("model", 11);
  }
  Workplace work;

  void save_model(const std::string& name, uint64_t seed) const {
    DecoderConfig c;
    c.vocab = 64;
    c.width = 64;
    c.layers = 2;
    c.heads = 4;
    c.kv_heads = 2;
    c.hidden = 96;
    c.context = 48;
    Decoder model(c);
    nn::initialise(model, {"normal", 0.08}, seed);
    save_pretrained(model, work / name);
  }

  std::string output(const Words& arguments) {
    const Outcome outcome = work.run(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out;
  }

  std::string refusal(const Words& arguments, int code) {
    const Outcome outcome = work.run(arguments);
    EXPECT_EQ(outcome.code, code) << outcome.out;
    EXPECT_EQ(lines_of(outcome.err).size(), 1U) << outcome.err;
    return outcome.err;
  }
};

TEST_F(Convert, GoesToGgufAndBackBitForBit) {
  const std::string said = output({"convert", "model", "x.gguf", "--verify"});
  EXPECT_THAT(said, HasSubstr("x.gguf: 21 tensors"));
  EXPECT_THAT(said, HasSubstr("lacks: no tokenizer"));
  EXPECT_THAT(said, HasSubstr("logits differ by 0 of the largest"));
  output({"convert", "x.gguf", "back"});
  EXPECT_EQ(content(work / "back/model.safetensors"), content(work / "model/model.safetensors"));
  const GgufFile file(work / "x.gguf");
  EXPECT_EQ(file.metadata().number("ingot.verify.logits", "x"), 0);
  EXPECT_EQ(file.metadata().number("ingot.verify.tokens", "x"), 4 * 47);
  EXPECT_GT(file.metadata().number("ingot.verify.perplexity_after", "x"), 1);
  EXPECT_THAT(output({"ckpt", "diff", "model", "back"}), HasSubstr("the same, bit for bit"));
}

TEST_F(Convert, TellsProgramsWhatItDid) {
  const Json told =
      Json::parse(output({"convert", "model", "half", "--dtype", "bf16", "--verify", "--json"}));
  EXPECT_EQ(told["type"], "bf16");
  EXPECT_EQ(told["tensors"], 21);
  EXPECT_GT(told["verify"]["ingot.verify.logits"], 0);
  EXPECT_LT(told["verify"]["ingot.verify.logits"], 0.02);
  const Json config = parse_json_file(work / "half/config.json");
  EXPECT_EQ(config["torch_dtype"], "bfloat16");
  EXPECT_EQ(config["ingot_verify"]["logits"], told["verify"]["ingot.verify.logits"]);
}

TEST_F(Convert, QuantizesToEveryTypeThatIsWritten) {
  for (const char* type : {"Q8_0", "q4_0", "Q4_1", "Q5_0", "Q5_1", "Q6_K", "IQ4_NL", "F16"}) {
    const Json told =
        Json::parse(output({"quantize", "model", "x.gguf", "--type", type, "--verify", "--json"}));
    EXPECT_GT(told["verify"]["ingot.verify.logits"], 0) << type;
    const std::string ids =
        output({"generate", "x.gguf", "--ids", "--prompt", "1,2,3", "--tokens", "4"});
    EXPECT_EQ(std::count(ids.begin(), ids.end(), ' '), 4) << ids;
  }
}

TEST_F(Convert, QuantizesToFoldersOfIntegersThatOtherVerbsRead) {
  for (const char* bits : {"8", "4"}) {
    const std::string out = std::string("int") + bits;
    const Json told = Json::parse(
        output({"quantize", "model", out, "--bits", bits, "--group", "32", "--verify", "--json"}));
    EXPECT_EQ(told["type"], out + " and f32");
    EXPECT_GT(told["verify"]["ingot.verify.logits"], 0);
    const Json config = parse_json_file(work / out / "config.json");
    EXPECT_EQ(config["quantization_config"]["quant_method"], "compressed-tensors");
    EXPECT_EQ(config["ingot_verify"]["logits"], told["verify"]["ingot.verify.logits"]);
    const Words how = {"--ids", "--prompt", "5,6", "--tokens", "20", "--seed", "3"};
    const std::string ids = output(joined({"generate", out}, how));
    output({"convert", out, out + ".gguf"});  // the integers' values, as f32
    EXPECT_EQ(output(joined({"generate", out + ".gguf"}, how)), ids);
  }
  EXPECT_LT(std::filesystem::file_size(work / "int4/model.safetensors"),
            std::filesystem::file_size(work / "int8/model.safetensors"));
  EXPECT_THAT(refusal({"quantize", "model", "x", "--bits", "5"}, 2), HasSubstr("--bits"));
  EXPECT_THAT(refusal({"quantize", "model", "x.gguf", "--bits", "4"}, 2),
              HasSubstr("--bits writes a folder"));
  EXPECT_THAT(refusal({"quantize", "model", "x", "--bits", "4", "--type", "Q8_0"}, 2),
              HasSubstr("give --type for a GGUF file (NAME.gguf), or --bits for a folder"));
  EXPECT_THAT(refusal({"quantize", "model", "x"}, 2), HasSubstr("or --bits for a folder"));
  EXPECT_FALSE(std::filesystem::exists(work / "x"));
}

TEST_F(Convert, RefusesWhatDiffersTooMuchAndLeavesNothing) {
  EXPECT_THAT(
      refusal({"quantize", "model", "x.gguf", "--type", "Q4_0", "--verify", "--max-growth", "0"},
              4),
      HasSubstr("x.gguf: differs too much from the model it was made from: perplexity"));
  EXPECT_FALSE(std::filesystem::exists(work / "x.gguf"));
  EXPECT_FALSE(std::filesystem::exists(work / "x.gguf.unfinished"));
}

TEST_F(Convert, GeneratesFromAGgufFileWhatTheFolderGenerates) {
  output({"convert", "model", "x.gguf"});
  const Words how = {"--ids", "--prompt", "5,6", "--tokens", "20", "--seed", "3"};
  EXPECT_EQ(output(joined({"generate", "x.gguf"}, how)),
            output(joined({"generate", "model"}, how)));
}

TEST_F(Convert, SaysWhatItCannotDo) {
  EXPECT_THAT(refusal({"convert", "nothing", "x.gguf"}, 3),
              HasSubstr("nothing: no such file or folder"));
  EXPECT_THAT(refusal({"convert", "model", "model"}, 2), HasSubstr("IN and OUT are the same"));
  EXPECT_THAT(refusal({"convert", "model", "text.txt"}, 2),
              HasSubstr("is a file; a folder is written"));
  std::filesystem::create_directory(work / "full");
  put(work / "full/x", "x");
  EXPECT_THAT(refusal({"convert", "model", "full"}, 2),
              HasSubstr("the folder exists and is not empty"));
  EXPECT_THAT(refusal({"convert", "text.txt", "y"}, 3), HasSubstr("no model that Ingot reads"));
  EXPECT_THAT(refusal({"quantize", "model", "x.gguf", "--type", "Q4"}, 2),
              HasSubstr("'Q4' is no type"));
  EXPECT_THAT(refusal({"quantize", "model", "x.gguf", "--type", "MXFP4"}, 2),
              HasSubstr("MXFP4: Ingot reads this type and does not write it"));
  EXPECT_THAT(refusal({"quantize", "model", "x", "--type", "Q8_0"}, 2),
              HasSubstr("end the name with .gguf"));
  put(work / "cut.gguf", "GGUF");
  EXPECT_THAT(refusal({"generate", "cut.gguf", "--ids", "--prompt", "1"}, 3),
              HasSubstr("truncated"));
}

TEST_F(Convert, ListsVerifiesAndComparesEveryKindOfFile) {
  output({"convert", "model", "x.gguf"});
  EXPECT_THAT(output({"ckpt", "ls", "x.gguf", "--hashes"}),
              HasSubstr("blk.0.attn_q.weight F32 [64, 64] 16384 bytes "));
  const Json listed = Json::parse(output({"ckpt", "ls", "model", "--json"}));
  EXPECT_EQ(listed["tensors"].size(), 21U);
  EXPECT_EQ(listed["kind"], "safetensors file");
  EXPECT_THAT(output({"ckpt", "verify", "model"}), HasSubstr("lengths and places hold"));
  const Json spectra =
      Json::parse(output({"ckpt", "ranks", "x.gguf", "--names", "**.attn_q.*", "--json"}));
  ASSERT_EQ(spectra["matrices"].size(), 2U);
  EXPECT_EQ(spectra["matrices"][0]["name"], "blk.0.attn_q.weight");
  EXPECT_EQ(spectra["matrices"][0]["rank"], 64);  // random weights are of full rank
  EXPECT_GT(spectra["matrices"][0]["effective_rank"], 40);
  EXPECT_THAT(output({"ckpt", "ranks", "model"}), HasSubstr("[64,64]: rank 64, effective "));
  save_model("other", 12);
  const Outcome differ = work.run({"ckpt", "diff", "model", "other", "--count", "2"});
  EXPECT_EQ(differ.code, 1);
  EXPECT_THAT(differ.out, HasSubstr("16 tensors differ"));
  EXPECT_THAT(differ.out, HasSubstr("values differ, most by"));
  EXPECT_THAT(differ.out, HasSubstr("--count 0 shows all"));
}

TEST_F(Convert, ChecksTheHashesOfARun) {
  output(work.train("run"));
  EXPECT_THAT(output({"ckpt", "ls", "run"}),
              HasSubstr("parameters: layers.0.attention.wq.weight f32"));
  EXPECT_THAT(output({"ckpt", "verify", "run"}), HasSubstr("every hash holds"));
  const auto file = work / "run/checkpoints/step-00000006/parameters.safetensors";
  std::string bytes = content(file);
  bytes[bytes.size() - 3] = static_cast<char>(bytes[bytes.size() - 3] ^ 1);
  put(file, bytes);
  EXPECT_THAT(refusal({"ckpt", "verify", "run"}, 3), HasSubstr("parameters.safetensors"));
}

// Files of some 200 MiB, larger than what may be resident. Measured: see the bound.
TEST_F(Convert, StaysWithinABoundOfMemory) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "memory is not bounded under AddressSanitizer, which keeps what was freed";
#endif
  const auto most_resident = [&](const Words& words) {
    Child child(work.path(), words);
    int64_t most = 0;  // the last reading: the first may still be of this process, before exec
    while (child.running()) {
      const int64_t now = child.resident_bytes();
      most = now > 0 ? now : most;
    }
    EXPECT_EQ(child.wait().code, 0);
    EXPECT_GT(most, 0);
    std::cout << words[0] << ' ' << words[2] << ": " << (most >> 20) << " MiB\n";
    return most;
  };
  DecoderConfig c;
  c.architecture = "llama";
  c.vocab = 256;
  c.width = 1024;
  c.layers = 4;
  c.heads = 8;
  c.hidden = 2816;
  c.context = 64;
  save_pretrained(Decoder(c), work / "large");
  constexpr int64_t bound = 120 << 20;  // measured: 60 to 80 MiB
  EXPECT_LT(most_resident({"convert", "large", "large.gguf"}), bound);
  EXPECT_LT(most_resident({"quantize", "large.gguf", "small.gguf", "--type", "F16"}), bound);
  EXPECT_LT(most_resident({"convert", "large.gguf", "again", "--dtype", "bf16"}), bound);
}

}  // namespace
}  // namespace ingot::testing
