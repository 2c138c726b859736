#include "ingot/models/multi_token.h"

#include <gmock/gmock.h>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/grad_mode.h"
#include "ingot/autograd/record.h"
#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "ingot/io/safetensors_shards.h"
#include "ingot/io/safetensors_writer.h"
#include "ingot/models/architecture.h"
#include "ingot/ops/cross_entropy.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/reduce.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"
#include "tests/models/tiny_models.h"
#include "tests/support/message.h"
#include "tests/support/oracle.h"

namespace ingot::testing {
namespace {

using ::testing::HasSubstr;

DecoderConfig with_heads(const std::string& kind, int64_t depth = 2) {
  DecoderConfig c = tiny("llama");
  c.vocab = 20;
  c.width = 16;
  c.heads = 2;
  c.hidden = 24;
  c.mtp = {depth, kind};
  return c;
}

std::unique_ptr<Decoder> started(const DecoderConfig& config, DType dtype = DType::f32) {
  auto model = std::make_unique<Decoder>(config, dtype);
  nn::initialise(*model, {"normal", 0.3}, 4);
  return model;
}

Tensor text(std::vector<int64_t> ids) {
  const auto size = static_cast<int64_t>(ids.size());
  return tensor_of(ids, {1, size});
}

std::vector<Tensor> further(const Decoder& model, const Tensor& ids) {
  std::vector<nn::Routed> routed;
  return model.hidden_ahead(ids, {}, routed).further;
}

// By the formulas, from the parts of the model.
TEST(MultiToken, SequentialHeadsReadTheOneBeforeAndTheTokenAhead) {
  const auto model_owner = started(with_heads("sequential"));
  const Decoder& model = *model_owner;
  const Tensor ids = text({3, 1, 4, 1, 5, 9});
  const std::vector<Tensor> found = further(model, ids);
  ASSERT_EQ(found.size(), 2U);
  const auto tables = nn::rotary_tables(model.config().rope, arange(6, DType::i64),
                                        model.config().head_dim, 32, 6, DType::f32);
  nn::Context context;
  context.rope = tables;
  Tensor before = model.hidden(ids);
  const Tensor shifted[] = {text({1, 4, 1, 5, 9, 0}), text({4, 1, 5, 9, 0, 0})};
  for (size_t k = 0; k < 2; ++k) {
    const MultiTokenHead& head = *model.mtp[k];
    const Tensor joined = (*head.join)(concat(
        {(*head.embedding_norm)(model.embedding(shifted[k])), (*head.hidden_norm)(before)}, -1));
    before = head.layer(joined, context);
    EXPECT_TRUE(same_bits(found[k], head.norm(before))) << k;
  }
}

TEST(MultiToken, ParallelHeadsReadTheInputOfTheLastLayer) {
  const auto model_owner = started(with_heads("parallel"));
  const Decoder& model = *model_owner;
  const Tensor ids = text({3, 1, 4, 1, 5, 9});
  const std::vector<Tensor> found = further(model, ids);
  nn::Context context;
  context.rope = nn::rotary_tables(model.config().rope, arange(6, DType::i64),
                                   model.config().head_dim, 32, 6, DType::f32);
  const Tensor trunk = (*model.layers[0])(model.embedding(ids), context);
  // The head of the next token is the last layer.
  EXPECT_TRUE(same_bits(model.hidden(ids), model.norm((*model.layers[1])(trunk, context))));
  for (size_t k = 0; k < 2; ++k) {
    EXPECT_TRUE(same_bits(found[k], model.mtp[k]->norm(model.mtp[k]->layer(trunk, context))));
  }
}

// The k-th head at place t sees ids up to t + k (sequential) or t (parallel), and none after.
TEST(MultiToken, HeadsSeeNoTokenThatTheyPredict) {
  for (const char* kind : {"sequential", "parallel"}) {
    const auto model_owner = started(with_heads(kind));
    const Decoder& model = *model_owner;
    std::vector<int64_t> ids = {3, 1, 4, 1, 5, 9, 2, 6};
    const std::vector<Tensor> before = further(model, text(ids));
    ids[5] = 11;
    const std::vector<Tensor> after = further(model, text(ids));
    for (int64_t k = 1; k <= 2; ++k) {
      const int64_t sees = kind == std::string("sequential") ? 5 - k : 5;  // the first place
      const auto part = [&](const std::vector<Tensor>& all, int64_t begin, int64_t end) {
        return contiguous(slice(all[static_cast<size_t>(k - 1)], 1, begin, end));
      };
      EXPECT_TRUE(same_bits(part(before, 0, sees), part(after, 0, sees))) << kind << k;
      EXPECT_FALSE(same_bits(part(before, sees, sees + 1), part(after, sees, sees + 1)))
          << kind << k;
    }
  }
}

TEST(MultiToken, WithoutHeadsTheModelIsWhatItWas) {
  const auto plain_owner = started(with_heads("sequential", 0));
  const Decoder& plain = *plain_owner;
  const auto heads_owner = started(with_heads("sequential"));
  const Decoder& heads = *heads_owner;
  EXPECT_TRUE(further(plain, text({3, 1})).empty());
  EXPECT_TRUE(same_bits(plain.logits(text({3, 1, 4})), heads.logits(text({3, 1, 4}))));
}

Tensor loss_of(const Decoder& model) {
  const Tensor ids = tensor_of(std::vector<int64_t>{1, 5, 2, 8, 8, 0, 3, 1, 9, 4, 4, 7}, {2, 6});
  const Tensor labels = tensor_of(std::vector<int64_t>{5, 2, 8, 8, 0, 3, 1, 9, 4, 4, 7, 6}, {2, 6});
  std::vector<nn::Routed> routed;
  const Decoder::Ahead made = model.hidden_ahead(ids, {}, routed);
  Tensor sum = cross_entropy(model.logits_of(made.hidden), labels, Reduction::mean);
  for (const Tensor& one : made.further) {
    sum = sum + cross_entropy(model.logits_of(one), labels, Reduction::mean) * 0.5;
  }
  return sum;
}

double moved_loss(const Decoder& model, const TensorDict& directions, double h) {
  const NoGrad quiet;
  const auto move = [&](double by) {
    for (const auto& [name, parameter] : model.parameters()) {
      Tensor target = detach(parameter);
      copy_into(target, detach(parameter) + directions.at(name) * by);
    }
  };
  move(h);
  const double loss = loss_of(model).item();
  move(-h);
  return loss;
}

TEST(MultiToken, GradientsOfAllHeadsAreTheLossesSlope) {
  DecoderConfig latent = with_heads("sequential");
  latent.latent.kv_rank = 8;
  latent.latent.nope_dim = 4;
  latent.latent.rope_dim = 4;
  latent.latent.value_dim = 6;
  for (const DecoderConfig& config : {with_heads("sequential"), with_heads("parallel"), latent}) {
    const auto owner = started(config, DType::f64);
    Decoder& model = *owner;
    model.require_gradients();
    backward(loss_of(model));
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      TensorDict directions;
      double slope = 0;
      for (const auto& [name, parameter] : model.parameters()) {
        ASSERT_TRUE(grad(parameter).defined()) << name;
        directions.add(name, random_tensor(parameter.shape(),
                                           100 * seed + static_cast<uint64_t>(directions.size())));
        slope += sum(grad(parameter) * directions.at(name)).item();
      }
      const double h = 1e-6;
      const double numeric =
          (moved_loss(model, directions, h) - moved_loss(model, directions, -h)) / (2 * h);
      EXPECT_NEAR(slope, numeric, 1e-6 * std::abs(numeric)) << config.mtp.kind;
    }
  }
}

DecoderConfig deepseek_with_head() {
  DecoderConfig c = start_of("deepseek_v3");
  c.vocab = 20;
  c.width = 16;
  c.layers = 2;
  c.heads = 2;
  c.hidden = 24;
  c.context = 32;
  c.latent = {.kv_rank = 8, .q_rank = 6, .nope_dim = 4, .rope_dim = 4, .value_dim = 6};
  c.moe.experts = 4;
  c.moe.hidden = 8;
  c.moe.shared = 1;
  c.moe.dense_first = 1;
  c.mtp.depth = 1;
  return c;
}

// The names of the published files of DeepSeek V3, whose head is layer 61 of 61.
TEST(MultiToken, DeepseekV3KeepsItsHeadUnderThePublishedNames) {
  const TemporaryFolder work;
  const auto model_owner = started(deepseek_with_head());
  const Decoder& model = *model_owner;
  save_pretrained(model, work / "hf");
  const nlohmann::json config = parse_json_file(work / "hf/config.json");
  EXPECT_EQ(config["model_type"], "deepseek_v3");
  EXPECT_EQ(config["num_hidden_layers"], 2);
  EXPECT_EQ(config["num_nextn_predict_layers"], 1);
  const SafetensorsSet files(work / "hf");
  for (const char* name :
       {"enorm.weight", "hnorm.weight", "eh_proj.weight", "shared_head.norm.weight",
        "shared_head.head.weight", "embed_tokens.weight", "input_layernorm.weight",
        "self_attn.kv_b_proj.weight", "mlp.gate.e_score_correction_bias",
        "mlp.experts.3.down_proj.weight", "mlp.shared_experts.up_proj.weight"}) {
    EXPECT_THAT(files.names(), ::testing::Contains(std::string("model.layers.2.") + name));
  }
  EXPECT_TRUE(same_bits(files.tensor("model.layers.2.embed_tokens.weight"),
                        files.tensor("model.embed_tokens.weight")));
  const Pretrained back = load_pretrained(work / "hf");
  EXPECT_EQ(back.model->config().mtp.depth, 1);
  for (const auto& [name, value] : model.parameters()) {
    EXPECT_TRUE(same_bits(value, back.model->parameters().at(name))) << name;
  }
  write_folder(open_model(work / "hf"), work / "again", {.dtype = DType::f32});
  EXPECT_EQ(SafetensorsSet(work / "again").names(), files.names());
}

void write_without(const std::filesystem::path& from, const std::filesystem::path& to,
                   const std::string& beginning, const TensorDict& instead = {}) {
  const SafetensorsSet files(from);
  TensorDict kept;
  for (const std::string& name : files.names()) {
    if (instead.contains(name)) {
      kept.add(name, instead.at(name));
    } else if (beginning.empty() || !name.starts_with(beginning)) {
      kept.add(name, files.tensor(name));
    }
  }
  std::filesystem::create_directories(to);
  write_safetensors_set(to, kept, 5'000'000'000, {});
  std::filesystem::copy(from / "config.json", to / "config.json");
}

TEST(MultiToken, AFolderThatOnlyNamesItsHeadIsAModelWithoutOne) {
  const TemporaryFolder work;
  const auto model_owner = started(deepseek_with_head());
  const Decoder& model = *model_owner;
  save_pretrained(model, work / "hf");
  write_without(work / "hf", work / "bare", "model.layers.2.");
  const Pretrained bare = load_pretrained(work / "bare");
  EXPECT_EQ(bare.model->config().mtp.depth, 0);
  EXPECT_TRUE(same_bits(bare.model->logits(text({3, 1, 4})), model.logits(text({3, 1, 4}))));
  write_without(work / "hf", work / "half", "model.layers.2.eh_proj");
  EXPECT_THAT(message_of(ErrorKind::format, [&] { load_pretrained(work / "half"); }),
              HasSubstr("missing: model.layers.2.eh_proj.weight [16, 32]"));
  TensorDict other;
  other.add("model.layers.2.embed_tokens.weight", zeros({20, 16}, DType::f32));
  write_without(work / "hf", work / "other", "", other);
  EXPECT_THAT(
      message_of(ErrorKind::format, [&] { load_pretrained(work / "other"); }),
      HasSubstr("differs: model.layers.2.embed_tokens.weight is not the tensor it repeats"));
}

TEST(MultiToken, OtherFamiliesAreSavedInOurFormatAndExportedWithoutHeadsWhereThatIsAsked) {
  const TemporaryFolder work;
  DecoderConfig config = with_heads("parallel");
  const StoredModel there = saved(config, work / "own");
  EXPECT_EQ(there.model_type, "ingot");
  EXPECT_EQ(there.config.mtp, (MultiTokenConfig{2, "parallel"}));
  const StoredModel without = without_heads(there);
  EXPECT_EQ(without.model_type, "llama");
  write_folder(without, work / "llama", {.dtype = DType::f32});
  EXPECT_FALSE(parse_json_file(work / "llama/config.json").contains("decoder"));
  EXPECT_TRUE(same_bits(load_pretrained(work / "llama").model->logits(text({3, 1, 4})),
                        load_pretrained(work / "own").model->logits(text({3, 1, 4}))));
  DecoderConfig v3 = deepseek_with_head();
  v3.rope.layout = "interleaved";
  v3.norm_eps = 1e-6;
  const StoredModel deepseek = saved(v3, work / "v3");
  const std::string message =
      message_of(ErrorKind::config, [&] { write_gguf(deepseek, work / "x.gguf", GgmlType::f32); });
  EXPECT_THAT(message, HasSubstr("mtp.depth is 1, would be 0"));
  EXPECT_THAT(message, HasSubstr("--drop-mtp leaves its further heads out"));
  write_gguf(without_heads(deepseek), work / "x.gguf", GgmlType::f32);
  EXPECT_LT(normwise_error(load_stored(open_model(work / "x.gguf")).model->logits(text({3, 1, 4})),
                           load_stored(deepseek).model->logits(text({3, 1, 4}))),
            1e-6);
}

}  // namespace
}  // namespace ingot::testing
