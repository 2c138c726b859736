#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ingot/base/range.h"
#include "ingot/models/published_names.h"
#include "ingot/nn/embedding.h"
#include "ingot/nn/transformer.h"

namespace ingot {

// The shape of an encoder (Devlin et al. 2018, arXiv:1810.04805).
struct BertConfig {
  int64_t vocab = 30522;  // V
  int64_t width = 768;    // D
  int64_t layers = 12;    // L
  int64_t heads = 12;     // H
  int64_t hidden = 3072;  // F
  int64_t context = 512;  // longest T
  int64_t token_types = 2;
  double norm_eps = 1e-12;
  std::string activation = "gelu";
  int64_t padding_id = 0;  // its embedding gets no gradient from look-ups; -1: none
  bool tied = true;        // whether the output map is the word embedding
  double dropout = 0;
  bool mlm = true;     // the head that names masked words
  int64_t labels = 0;  // classes of a classifier over the first token; 0: none

  template <class V>
  void describe(V& v) {
    v("vocab", vocab, at_least(1), "tokens of the vocabulary");
    v("width", width, at_least(1), "width of the residual stream");
    v("layers", layers, at_least(0), "transformer layers");
    v("heads", heads, at_least(1), "heads of attention; divides width");
    v("hidden", hidden, at_least(1), "width of the feed-forward layers");
    v("context", context, at_least(1), "longest sequence in tokens");
    v("token_types", token_types, at_least(1), "rows of the table that tells sentences apart");
    v("norm_eps", norm_eps, above(0), "added to the variance");
    v("activation", activation, one_of({"gelu", "gelu_tanh", "relu", "silu"}),
      "of the feed-forward layers");
    v("padding_id", padding_id, at_least(-1), "token that fills rows up; -1: none");
    v("tied", tied, "whether the output map is the word embedding");
    v("dropout", dropout, half_open(0, 1), "of the embeddings, of what layers add, of the pooler");
  }

  friend bool operator==(const BertConfig&, const BertConfig&) = default;
};

// What a forward knows of a batch besides its ids.
struct BertInfo {
  Tensor token_types;  // [B, T] i64: which of two sentences; undefined: all 0
  Tensor key_lengths;  // [B] i32: ids at and beyond are padding; undefined: none
};

// An encoder that sees both sides of every token, with a head that names hidden words: embeddings
// of words, places and sentences; L layers with norms after their residuals; logits from
// norm(act(dense x)), the word embedding and a bias.
class Bert : public nn::Module {
  BertConfig config_;  // first, because the layers are built from it

 public:
  // Weights start at 0: initialise or load them. Throws Error(config) where heads do not divide the
  // width.
  explicit Bert(const BertConfig& config, DType dtype = DType::f32, Device device = cpu_device);

  const BertConfig& config() const { return config_; }

  // ids: [B, T] i64 → [B, T, D] after the last layer. Throws Error(argument) for a sequence longer
  // than the context.
  Tensor hidden(const Tensor& ids, const BertInfo& info = {}) const;
  Tensor logits_of(const Tensor& hidden) const;                       // [..., D] → [..., V]
  Tensor logits(const Tensor& ids, const BertInfo& info = {}) const;  // [B, T, V]
  // The sum of −log p(label) over the labels that are not -100; logits exist for those places
  // alone. labels: [B, T] i64, of the token that stands there
  Tensor masked_loss(const Tensor& ids, const Tensor& labels, const BertInfo& info = {}) const;
  // W tanh(Wp h + bp) + b of the first token's h: [B, labels]. Throws Error(argument) without a
  // classifier.
  Tensor class_logits(const Tensor& ids, const BertInfo& info = {}) const;
  // The mean of hidden() over each row's tokens, padding left out: [B, D].
  Tensor sentence_embedding(const Tensor& ids, const BertInfo& info = {}) const;

  // What dropout draws from: off until `training` is set.
  const std::shared_ptr<Randomness>& randomness() const { return randomness_; }

  void visit(nn::Visitor& v) override;

  nn::Embedding words, places, token_types;
  nn::Norm embedding_norm;
  nn::Dropout dropout;
  std::vector<std::unique_ptr<nn::TransformerBlock>> layers;
  std::optional<nn::Linear> head_dense;  // of the head that names masked words, as the next two
  std::optional<nn::Norm> head_norm;
  Tensor head_bias;                              // [V]
  std::optional<nn::Linear> head;                // untied only
  std::optional<nn::Linear> pooler, classifier;  // [D, D] and [labels, D]

 private:
  std::shared_ptr<Randomness> randomness_ = std::make_shared<Randomness>();
};

// A model in the Hugging Face layout; see pretrained.h, whose rules hold here too. Its heads are
// those that the files hold: of BertForMaskedLM, BertForSequenceClassification or BertModel.
struct PretrainedBert {
  std::unique_ptr<Bert> model;
  std::string config;  // config.json as it was read
};
// Its published names, and how older files spell them (gamma and beta).
NameMap bert_names(const BertConfig& config);
std::string bert_spelled(const std::string& published);
// A folder before a model is built from it.
struct PublishedBert {
  BertConfig config;
  TensorDict tensors;  // as bert_spelled() spells them
  std::string json;    // config.json
};
PublishedBert read_bert(const std::filesystem::path& folder);

PretrainedBert load_bert(const std::filesystem::path& folder,
                         std::optional<DType> dtype = std::nullopt);
void save_bert(const Bert& model, const std::filesystem::path& folder,
               const std::string& base_config = "{}");

}  // namespace ingot
