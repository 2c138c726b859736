#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <limits>
#include <memory>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/record.h"
#include "ingot/base/files.h"
#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "ingot/io/safetensors.h"
#include "ingot/models/architecture.h"
#include "ingot/models/bert.h"
#include "ingot/models/pretrained.h"
#include "ingot/nn/router_losses.h"
#include "ingot/ops/cross_entropy.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "tests/support/paths.h"

namespace ingot::testing {
namespace {

// The batch of an expected.safetensors: ids, and what else the forward must know.
struct PublishedBatch {
  Tensor ids;     // [B, T]
  Tensor labels;  // [B, T], not shifted
  BatchInfo info;
};

Tensor row_sums(const Tensor& mask) {
  const auto values = mask.values<int64_t>();
  const auto tokens = static_cast<size_t>(mask.size(1));
  std::vector<int32_t> sums(static_cast<size_t>(mask.size(0)), 0);
  for (size_t i = 0; i < values.size(); ++i) {
    sums[i / tokens] += static_cast<int32_t>(values[i]);
  }
  return tensor_of(sums, {mask.size(0)});
}

// config.json's model_type of a folder.
std::string model_type_of(const std::filesystem::path& folder) {
  const auto config = parse_json_file(folder / "config.json");
  return json_field<std::string>(config, "model_type", "config.json");
}

PublishedBatch batch_of(const TensorDict& expected) {
  PublishedBatch batch{expected.at("input_ids"), expected.at("labels"), {}};
  if (expected.contains("position_ids")) {
    batch.info.positions = expected.at("position_ids");
  }
  if (expected.contains("attention_mask")) {
    batch.info.key_lengths = row_sums(expected.at("attention_mask"));
  } else if (batch.info.positions.defined()) {
    batch.info.documents = documents_of(batch.info.positions);
  }
  return batch;
}

// 1 for tokens and 0 for padding, [B·T]; undefined where there is none.
Tensor tokens_that_count(const PublishedBatch& batch, const TensorDict& expected) {
  return expected.contains("attention_mask")
             ? reshape(converted(expected.at("attention_mask"), DType::f32), {batch.ids.elements()})
             : Tensor();
}

double counted(const Tensor& labels) {
  const auto values = labels.values<int64_t>();
  return static_cast<double>(values.size()) -
         static_cast<double>(std::count(values.begin(), values.end(), -100));
}

// The mean over the labels that count, of logits at t against labels at t + 1, with history; and
// what the routers decided.
Tensor next_token_loss(const Decoder& model, const PublishedBatch& batch,
                       std::vector<nn::Routed>& routed) {
  const int64_t tokens = batch.ids.size(1);
  const Tensor hidden = slice(model.hidden(batch.ids, batch.info, routed), 1, 0, tokens - 1);
  const Tensor labels = contiguous(slice(batch.labels, 1, 1, tokens));
  CrossEntropyOptions options;
  options.softcap = model.config().logit_softcap;
  const Tensor total =
      linear_cross_entropy(contiguous(hidden), model.output_weight(), labels, options);
  return total / counted(labels);
}

// The gradients that backward() left, under published names.
TensorDict published_gradients(const Decoder& model) {
  TensorDict ours;
  NameMap names = architecture_of(model.config()).names(model.config());
  for (const auto& [name, parameter] : model.parameters()) {
    if (grad(parameter).defined()) {
      ours.add(name, grad(parameter));
    } else {  // a router's correction is not trained
      std::erase_if(names.pairs, [&name = name](const NamePair& p) { return p.ours[0] == name; });
    }
  }
  return to_published(names, ours);
}

double largest_gap(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape()) {
    return std::numeric_limits<double>::infinity();
  }
  const Tensor wide_a = dense(converted(a, DType::f64));
  const Tensor wide_b = dense(converted(b, DType::f64));
  double most = 0;
  for (size_t i = 0; i < wide_a.values<double>().size(); ++i) {
    const double gap = std::abs(wide_a.values<double>()[i] - wide_b.values<double>()[i]);
    most = std::isnan(gap) ? std::numeric_limits<double>::infinity() : std::max(most, gap);
  }
  return most;
}

double largest(const Tensor& x) { return largest_gap(x, zeros(x.shape(), DType::f64)); }

// The entries "grad.NAME", by the names this architecture spells them.
TensorDict expected_gradients(const TensorDict& expected, const Architecture& architecture) {
  TensorDict out;
  for (const auto& [name, value] : expected.select("grad.**")) {
    out.add(architecture.spelled(name.substr(5)), value);
  }
  return out;
}

void expect_gradients(const TensorDict& got, const TensorDict& expected) {
  EXPECT_EQ(got.size(), expected.size());
  double most = 0;
  for (const auto& [name, value] : expected) {
    most = std::max(most, largest(value));
  }
  for (const auto& [name, value] : expected) {
    ASSERT_TRUE(got.contains(name)) << name;
    const double scale = std::max(largest(value), most / 100);
    EXPECT_LE(largest_gap(got.at(name), value), 1e-4 * scale) << name;
  }
}

void expect_reproduced(const std::filesystem::path& folder) {
  const Architecture& architecture = architecture_named(model_type_of(folder));
  const Pretrained loaded = load_pretrained(folder, DType::f32);
  const TensorDict expected = SafetensorsFile(folder / "expected.safetensors").tensors();
  const PublishedBatch batch = batch_of(expected);
  const Tensor logits = loaded.model->logits(batch.ids, batch.info);
  EXPECT_LE(largest_gap(logits, expected.at("logits")), 1e-5 * largest(expected.at("logits")));
  loaded.model->require_gradients();
  std::vector<nn::Routed> routed;
  Tensor loss = next_token_loss(*loaded.model, batch, routed);
  const MoeConfig& moe = loaded.model->config().moe;
  if (expected.contains("router_loss")) {
    ASSERT_TRUE(moe.balance.has_value());
    const Tensor router_loss =
        nn::load_balancing_loss(routed, router_score(moe), tokens_that_count(batch, expected));
    EXPECT_NEAR(router_loss.item(), expected.at("router_loss").item(),
                1e-5 * expected.at("router_loss").item());
    loss = loss + router_loss * *moe.balance;
  }
  EXPECT_NEAR(loss.item(), expected.at("loss").item(), 1e-5 * expected.at("loss").item());
  backward(loss);
  expect_gradients(published_gradients(*loaded.model), expected_gradients(expected, architecture));
}

void expect_bert_reproduced(const std::filesystem::path& folder) {
  const PretrainedBert loaded = load_bert(folder, DType::f32);
  const Bert& model = *loaded.model;
  const TensorDict expected = SafetensorsFile(folder / "expected.safetensors").tensors();
  BertInfo info;
  if (expected.contains("attention_mask")) {
    info.key_lengths = row_sums(expected.at("attention_mask"));
  }
  if (expected.contains("token_type_ids")) {
    info.token_types = expected.at("token_type_ids");
  }
  const Tensor& ids = expected.at("input_ids");
  const Tensor& labels = expected.at("labels");
  EXPECT_LE(largest_gap(model.logits(ids, info), expected.at("logits")),
            1e-5 * largest(expected.at("logits")));
  loaded.model->require_gradients();
  const Tensor loss = model.masked_loss(ids, labels, info) / counted(labels);
  EXPECT_NEAR(loss.item(), expected.at("loss").item(), 1e-5 * expected.at("loss").item());
  backward(loss);
  TensorDict ours;
  for (const auto& [name, parameter] : model.parameters()) {
    ours.add(name, grad(parameter));
  }
  TensorDict wanted;
  for (const auto& [name, value] : expected.select("grad.**")) {
    wanted.add(bert_spelled(name.substr(5)), value);
  }
  expect_gradients(to_published(bert_names(model.config()), ours), wanted);
}

TEST(PublishedModels, GiveTheirLogitsLossAndEveryGradient) {
  const std::filesystem::path root = oracle_folder() / "models";
  if (!std::filesystem::is_directory(root)) {
    GTEST_SKIP() << "needs " << root << ": set INGOT_ORACLES to a folder with models/";
  }
  int tried = 0;
  for (const std::string& name : list_folder(root)) {
    if (!std::filesystem::exists(root / name / "config.json")) {
      continue;
    }
    SCOPED_TRACE(name);
    ++tried;
    const bool bert = model_type_of(root / name) == "bert";
    EXPECT_NO_THROW(bert ? expect_bert_reproduced(root / name) : expect_reproduced(root / name));
  }
  EXPECT_GT(tried, 0);
}

// Rows of a projection [heads·C, D], or a bias [heads·C], of half-split pairs (p, p + C/2), in the
// order of pairs side by side (2p, 2p + 1).
Tensor paired(const Tensor& from, int64_t head_dim) {
  Tensor to = copy_of(from);
  const int64_t width = from.elements() / from.size(0);
  for (int64_t row = 0; row < from.size(0); ++row) {
    const int64_t inside = row % head_dim;
    const int64_t source = row - inside + inside / 2 + inside % 2 * (head_dim / 2);
    std::copy_n(from.values<float>().data() + source * width, width,
                to.mutable_values<float>().data() + row * width);
  }
  return to;
}

// The same model with its rotary pairs side by side.
std::unique_ptr<Decoder> paired_twin(Decoder& model) {
  DecoderConfig config = model.config();
  config.rope.layout = "interleaved";
  auto twin = std::make_unique<Decoder>(config, DType::f32);
  TensorDict weights = twin->parameters();
  for (const auto& [name, weight] : model.parameters()) {
    const bool turned = name.find("attention.wq.") != std::string::npos ||
                        name.find("attention.wk.") != std::string::npos;
    copy_into(weights.at(name), turned ? paired(weight, config.head_dim) : weight);
  }
  return twin;
}

TEST(PublishedModels, GiveTheSameLogitsWithInterleavedRotaryPairsAndPermutedWeights) {
  const std::filesystem::path root = oracle_folder() / "models";
  if (!std::filesystem::is_directory(root)) {
    GTEST_SKIP() << "needs " << root << ": set INGOT_ORACLES to a folder with models/";
  }
  int tried = 0;
  for (const std::string& name : list_folder(root)) {
    if (!std::filesystem::exists(root / name / "config.json") ||
        model_type_of(root / name) != "llama") {
      continue;
    }
    SCOPED_TRACE(name);
    ++tried;
    const Pretrained loaded = load_pretrained(root / name, DType::f32);
    const TensorDict expected = SafetensorsFile(root / name / "expected.safetensors").tensors();
    const PublishedBatch batch = batch_of(expected);
    const auto twin = paired_twin(*loaded.model);
    EXPECT_LE(largest_gap(twin->logits(batch.ids, batch.info), expected.at("logits")),
              1e-5 * largest(expected.at("logits")));
  }
  if (tried == 0) {
    GTEST_SKIP() << "needs a llama in " << root << ": set INGOT_ORACLES to a folder with models/";
  }
}

}  // namespace
}  // namespace ingot::testing
