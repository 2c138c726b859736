#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "ingot/autograd/grad_mode.h"
#include "ingot/cli/adapter_model.h"
#include "ingot/io/gguf.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/matmul.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "tests/cli/adapted_model.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

using ::testing::HasSubstr;

#define NEED_PROGRAM() \
  if (!no_program().empty()) GTEST_SKIP() << no_program()

TEST(Merge, GivesTheLogitsOfBaseAndAdapter) {
  NEED_PROGRAM();
  for (const char* architecture : {"llama", "gpt2"}) {
    for (const char* kind : {"lora", "dora", "ia3"}) {
      if (std::string_view(architecture) == "gpt2" && std::string_view(kind) == "ia3") {
        continue;  // scales keys and values, not queries: PEFT cannot say so of GPT-2's one map of
                   // all
      }
      peft::PeftConfig config = Adapted::lora();
      config.kind = kind;
      const Adapted work(architecture, config);
      for (const char* out : {"merged", "merged.gguf"}) {
        const Outcome outcome = work.run({"merge", "base", out, "--lora", "adapter", "--json"});
        ASSERT_EQ(outcome.code, 0) << architecture << " " << kind << " " << outcome.err;
        const auto report = nlohmann::json::parse(outcome.out);
        EXPECT_LE(report["logits_difference"].get<double>(), 1e-5);
        const Pretrained back = load_stored(open_model(work / out), DType::f32);
        const NoGrad quiet;
        EXPECT_LE(difference(back.model->logits(Adapted::ids()), work.logits()), 2e-5)
            << architecture << " " << kind << " " << out;
      }
    }
  }
}

TEST(Merge, RefusesWhatComputesOtherwiseAndLeavesNothing) {
  NEED_PROGRAM();
  const Adapted work("llama");
  const Outcome outcome = work.run({"merge", "base", "merged", "--lora", "adapter", "--dtype",
                                    "bf16", "--max-difference", "1e-7"});
  EXPECT_EQ(outcome.code, 4);
  EXPECT_THAT(outcome.err, HasSubstr("merged: the merged model computes otherwise than base and "
                                     "adapter"));
  EXPECT_THAT(outcome.err, HasSubstr("nothing was written"));
  EXPECT_FALSE(std::filesystem::exists(work / "merged"));
  EXPECT_FALSE(std::filesystem::exists(work / "merged.unfinished"));
}

TEST(Merge, RefusesABaseThatHoldsTheAdapterAlready) {
  NEED_PROGRAM();
  const Adapted work("llama");
  ASSERT_EQ(work.run({"merge", "base", "merged", "--lora", "adapter"}).code, 0);
  const Outcome again = work.run({"merge", "merged", "twice", "--lora", "adapter", "--any-base"});
  EXPECT_EQ(again.code, 2);
  EXPECT_THAT(again.err, HasSubstr("merged: holds this adapter already: adapter"));
}

TEST(Merge, RefusesAnotherBase) {
  NEED_PROGRAM();
  const Adapted work("llama");
  const Adapted other("llama");
  Decoder changed(small_decoder("llama", 64));
  nn::initialise(changed, {"normal", 0.3}, 4);
  save_pretrained(changed, work / "changed");
  const Outcome outcome = work.run({"merge", "changed", "merged", "--lora", "adapter"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err,
              HasSubstr("adapter: the adapter was made for another base (some/base): its base's "
                        "hash is "));
  EXPECT_EQ(work.run({"merge", "changed", "merged", "--lora", "adapter", "--any-base"}).code, 0);
}

TEST(Merge, OfSeveralAddsThemByTheirWeights) {
  NEED_PROGRAM();
  const Adapted work("llama");
  const Outcome outcome = work.run({"merge", "base", "half", "--lora", "adapter=0.5"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  work.adapters->set_weight(0.5);
  const Pretrained back = load_pretrained(work / "half");
  const NoGrad quiet;
  EXPECT_LE(difference(back.model->logits(Adapted::ids()), work.logits()), 2e-5);
  const Outcome wrong = work.run({"merge", "base", "x", "--lora", "adapter=half"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("--lora: 'half' is no weight"));
}

// llama.cpp adds alpha/rank · B A to the weight of that name, rank being that of the tensors.
TEST(GgufAdapter, AddsToEveryTensorWhatTheAdapterDoes) {
  NEED_PROGRAM();
  for (const bool rslora : {false, true}) {
    peft::PeftConfig config = Adapted::lora();
    config.rslora = rslora;
    for (const char* architecture : {"llama", "gpt2"}) {
      const Adapted work(architecture, config);
      ASSERT_EQ(work.run({"merge", "base", "a.gguf", "--lora", "adapter", "--adapter-only"}).code,
                0);
      ASSERT_EQ(work.run({"convert", "base", "base.gguf"}).code, 0);
      ASSERT_EQ(work.run({"merge", "base", "merged.gguf", "--lora", "adapter"}).code, 0);
      const GgufFile adapter(work / "a.gguf"), base(work / "base.gguf"),
          merged(work / "merged.gguf");
      const std::string file = "a.gguf";
      EXPECT_EQ(adapter.metadata().text("general.type", file), "adapter");
      EXPECT_EQ(adapter.metadata().text("adapter.type", file), "lora");
      EXPECT_EQ(adapter.metadata().text("general.architecture", file), architecture);
      const double alpha = adapter.metadata().number("adapter.lora.alpha", file);
      const auto tensor_in = [](const GgufFile& from, const std::string& name) {
        const GgufTensor& t = from.tensor(name);
        const auto bytes = from.bytes(t);
        return converted(tensor_of(std::span(reinterpret_cast<const float*>(bytes.data()),
                                             bytes.size() / sizeof(float)),
                                   t.shape),
                         DType::f64);
      };
      int compared = 0;
      for (const GgufTensor& t : base.tensors()) {
        const Tensor change = tensor_in(merged, t.name) - tensor_in(base, t.name);
        if (!adapter.contains(t.name + ".lora_a")) {
          EXPECT_EQ(difference(change, zeros(change.shape(), DType::f64)), 0) << t.name;
          continue;
        }
        const Tensor a = tensor_in(adapter, t.name + ".lora_a");
        const Tensor b = tensor_in(adapter, t.name + ".lora_b");
        const double rank = static_cast<double>(a.size(0));
        EXPECT_LE(difference(matmul(b, a) * (alpha / rank), change), 1e-6) << t.name;
        ++compared;
      }
      EXPECT_EQ(2 * compared, static_cast<int>(adapter.tensors().size())) << architecture;
      EXPECT_GE(compared, 8);
    }
  }
}

TEST(GgufAdapter, IsOfLoraAlone) {
  NEED_PROGRAM();
  peft::PeftConfig config = Adapted::lora();
  config.kind = "dora";
  const Adapted work("llama", config);
  const Outcome outcome =
      work.run({"merge", "base", "a.gguf", "--lora", "adapter", "--adapter-only"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("gguf adapter: llama.cpp takes lora alone: this is dora"));
}

TEST(Generate, WritesWithAdapterWhatTheMergedModelWrites) {
  NEED_PROGRAM();
  const Adapted work("llama");
  ASSERT_EQ(work.run({"merge", "base", "merged", "--lora", "adapter"}).code, 0);
  const Words prompt = {"--ids", "--prompt", "1,2,3", "--tokens", "12", "--temperature", "0"};
  const Outcome with = work.run(joined({"generate", "base", "--lora", "adapter"}, prompt));
  const Outcome merged = work.run(joined({"generate", "merged"}, prompt));
  const Outcome without = work.run(joined({"generate", "base"}, prompt));
  ASSERT_EQ(with.code, 0) << with.err;
  EXPECT_EQ(with.out, merged.out);
  EXPECT_NE(with.out, without.out);
}

}  // namespace
}  // namespace ingot::testing
