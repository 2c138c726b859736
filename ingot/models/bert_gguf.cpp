#include "ingot/models/bert_gguf.h"

#include <map>

#include "ingot/base/files.h"
#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "ingot/models/gguf_architecture.h"
#include "ingot/models/gguf_vocabulary_keys.h"
#include "ingot/quant/ggml_codec.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"

namespace ingot {
namespace {

constexpr int64_t mean_pooling = 1;

struct Pair {
  std::string theirs, ours;
};

std::vector<Pair> pairs_of(const BertConfig& c) {
  std::vector<Pair> out = {{"token_embd.weight", "words.weight"},
                           {"position_embd.weight", "places.weight"},
                           {"token_types.weight", "token_types.weight"}};
  const auto both = [&](const std::string& theirs, const std::string& ours) {
    out.push_back({theirs + ".weight", ours + ".weight"});
    out.push_back({theirs + ".bias", ours + ".bias"});
  };
  both("token_embd_norm", "embedding_norm");
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    const std::string theirs = concat("blk.", layer, ".");
    const std::string ours = concat("layers.", layer, ".");
    both(theirs + "attn_q", ours + "attention.wq");
    both(theirs + "attn_k", ours + "attention.wk");
    both(theirs + "attn_v", ours + "attention.wv");
    both(theirs + "attn_output", ours + "attention.wo");
    both(theirs + "attn_output_norm", ours + "attention_norm");
    both(theirs + "ffn_up", ours + "mlp.up");
    both(theirs + "ffn_down", ours + "mlp.down");
    both(theirs + "layer_output_norm", ours + "mlp_norm");
  }
  return out;
}

void write_keys(const BertConfig& c, GgufMetadata& out) {
  out.set_u32("bert.vocab_size", c.vocab);
  out.set_u32("bert.context_length", c.context);
  out.set_u32("bert.embedding_length", c.width);
  out.set_u32("bert.feed_forward_length", c.hidden);
  out.set_u32("bert.block_count", c.layers);
  out.set_u32("bert.attention.head_count", c.heads);
  out.set_f32("bert.attention.layer_norm_epsilon", c.norm_eps);
  out.set_bool("bert.attention.causal", false);
  out.set_u32("bert.pooling_type", mean_pooling);
}

BertConfig read_keys(const GgufKeys& keys) {
  BertConfig c;
  c.mlm = false;
  c.vocab = keys.rows("token_embd.weight");
  c.token_types = keys.rows("token_types.weight");
  c.width = keys.size("embedding_length");
  c.layers = keys.size("block_count");
  c.heads = keys.size("attention.head_count");
  c.hidden = keys.size("feed_forward_length");
  c.context = keys.size("context_length");
  c.norm_eps = keys.number_or("attention.layer_norm_epsilon", 1e-12);
  check(c.layers <= keys.tensors() && c.heads > 0, ErrorKind::format, keys.file, ": bert with ",
        c.layers, " layers of ", c.heads, " heads in ", keys.tensors(), " tensors");
  return c;
}

// WordPiece as llama.cpp has it: ▁ before what begins a word, nothing where ## stood.
bool put_word_pieces(const std::filesystem::path& folder, const BertConfig& c, GgufMetadata& out) {
  const auto file = folder / "tokenizer.json";
  const nlohmann::json json = file_exists(file) ? parse_json_file(file) : nlohmann::json();
  if (!json.is_object() || !json.contains("model") || !json["model"].is_object() ||
      json["model"].value("type", nlohmann::json()) != "WordPiece") {
    return false;
  }
  GgufVocabulary words;
  words.model = "bert";
  words.pre = "default";
  words.tokens.resize(static_cast<size_t>(c.vocab));
  words.types.assign(words.tokens.size(), static_cast<int32_t>(GgufTokenType::unused));
  for (size_t i = 0; i < words.tokens.size(); ++i) {
    words.tokens[i] = concat("[PAD", i, "]");
  }
  const auto place = [&](const std::string& token, const nlohmann::json& id) -> size_t {
    const bool inside = id.is_number_integer() && id >= 0 && id < c.vocab;
    check(inside, ErrorKind::config, file.string(), ": the token '", token,
          "' is outside the model's vocabulary of ", c.vocab, ": ", id.dump());
    return id.get<size_t>();
  };
  for (const auto& [token, id] : json["model"]["vocab"].items()) {
    const size_t at = place(token, id);
    words.tokens[at] = token.starts_with("##") ? token.substr(2) : "▁" + token;
    words.types[at] = static_cast<int32_t>(GgufTokenType::normal);
  }
  std::map<std::string, int64_t> special;
  for (const auto& token : json.value("added_tokens", nlohmann::json::array())) {
    const auto content = json_field<std::string>(token, "content", file.string());
    const size_t at = place(content, token.value("id", nlohmann::json()));
    words.tokens[at] = content;
    words.types[at] = static_cast<int32_t>(GgufTokenType::control);
    special[content] = static_cast<int64_t>(at);
  }
  const auto id = [&](const char* name) {
    return special.contains(name) ? std::optional(special[name]) : std::nullopt;
  };
  words.bos = id("[CLS]");
  words.eos = words.separator = id("[SEP]");
  words.unknown = id("[UNK]");
  words.pad = id("[PAD]");
  gguf_vocabulary_to(words, out);
  out.set_u32("tokenizer.ggml.token_type_count", c.token_types);
  if (id("[MASK]")) {
    out.set_u32("tokenizer.ggml.mask_token_id", *id("[MASK]"));
  }
  return true;
}

}  // namespace

ExportResult write_bert_gguf(const std::filesystem::path& folder, const std::filesystem::path& path,
                             GgmlType type) {
  check(quant::codec_of(type).encode != nullptr, ErrorKind::config, name(type),
        ": Ingot reads this type and does not write it");
  const PretrainedBert loaded = load_bert(folder, DType::f32);
  const BertConfig& c = loaded.model->config();
  check(c.activation == "gelu" || c.activation == "gelu_tanh", ErrorKind::config, folder.string(),
        ": llama.cpp's bert has the activation gelu alone: got ", c.activation);
  const TensorDict ours = loaded.model->parameters();
  const std::vector<Pair> pairs = pairs_of(c);
  ExportResult result;
  GgufHeader header;
  header.metadata.set("general.architecture", "bert");
  header.metadata.set("general.name", folder.lexically_normal().stem().string());
  write_keys(c, header.metadata);
  if (!put_word_pieces(folder, c, header.metadata)) {
    header.metadata.set("tokenizer.ggml.model", "no_vocab");
    result.lacks.emplace_back("no tokenizer: the folder has no tokenizer.json of WordPiece");
  }
  if (c.mlm || c.labels > 0) {
    result.lacks.emplace_back("no head: llama.cpp's bert gives embeddings, means over tokens");
  }
  result.differs.emplace_back(
      "llama.cpp takes all tokens for the first sentence's, and GELU in its tanh form");
  for (const Pair& pair : pairs) {
    const Shape shape = ours.at(pair.ours).shape();
    const bool table = pair.theirs == "position_embd.weight" || pair.theirs == "token_types.weight";
    header.tensors.push_back(
        {pair.theirs, table ? GgmlType::f32 : stored_type(pair.theirs, shape, type, false), shape});
  }
  GgufWriter writer(path, std::move(header));
  for (size_t i = 0; i < pairs.size(); ++i) {
    const GgufTensor& tensor = writer.header().tensors[i];
    const Tensor values = dense(ours.at(pairs[i].ours));
    std::vector<std::byte> bytes(static_cast<size_t>(tensor.end - tensor.begin));
    quant::encode_values(tensor.type, values.values<float>(), bytes);
    writer.write(bytes);
    ++result.tensors;
    result.bytes += tensor.end - tensor.begin;
    if (tensor.type != type && tensor.shape.rank() > 1) {
      result.otherwise.push_back(concat(tensor.name, " ", tensor.shape, " is ", name(tensor.type)));
    }
  }
  writer.commit();
  return result;
}

PretrainedBert load_bert_gguf(const std::filesystem::path& path, std::optional<DType> dtype) {
  const GgufFile file(path);
  const std::string where = file.name();
  const BertConfig c = read_keys({file.header(), where, "bert.",
                                  [&](const GgufTensor& tensor) { return file.bytes(tensor); }});
  PretrainedBert out;
  out.config = "{}";
  const Bert planned(c, DType::f32, meta_device);
  const TensorDict shapes = planned.parameters();
  std::string problems;
  for (const Pair& pair : pairs_of(c)) {
    const Shape wanted = shapes.at(pair.ours).shape();
    if (!file.contains(pair.theirs)) {
      problems += concat("\n  missing: ", pair.theirs, " ", wanted);
    } else if (file.tensor(pair.theirs).shape != wanted) {
      problems += concat("\n  shape: ", pair.theirs, " is ", file.tensor(pair.theirs).shape,
                         ", the metadata says ", wanted);
    }
  }
  check(problems.empty(), ErrorKind::format, where,
        ": the tensors do not fit the metadata:", problems);
  TensorDict values;
  for (const Pair& pair : pairs_of(c)) {
    const GgufTensor& tensor = file.tensor(pair.theirs);
    Tensor one = empty(tensor.shape, DType::f32);
    quant::decode_values(tensor.type, file.bytes(tensor), one.mutable_values<float>());
    values.add(pair.ours, one);
  }
  out.model = std::make_unique<Bert>(c, dtype.value_or(DType::f32));
  out.model->load(values);
  return out;
}

bool is_bert_folder(const std::filesystem::path& path) {
  const auto file = path / "config.json";
  if (!is_folder(path) || !file_exists(file)) {
    return false;
  }
  const nlohmann::json json = parse_json_file(file);
  return json.is_object() && json.value("model_type", nlohmann::json()) == "bert";
}

bool is_bert_gguf(const std::filesystem::path& path) {
  return GgufFile(path).metadata().text_or("general.architecture", "", path.string()) == "bert";
}

}  // namespace ingot
