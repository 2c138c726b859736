
#include "ingot/base/files.h"
#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "ingot/io/safetensors_shards.h"
#include "ingot/models/bert.h"
#include "ingot/models/llama_layout.h"
#include "ingot/models/pretrained.h"
#include "ingot/models/published_config.h"

namespace ingot {
namespace {

BertConfig read_bert_config(const nlohmann::json& json, const std::string& file) {
  const ConfigKeys keys{json, file};
  const std::string type = json_field<std::string>(json, "model_type", file);
  check(type == "bert", ErrorKind::config, file, ": model_type is '", type, "', not bert");
  refuse_if(keys.flag("is_decoder", false), "is_decoder", file);
  const std::string places = keys.text("position_embedding_type", "absolute");
  refuse_if(places != "absolute", "position_embedding_type: " + places, file);
  BertConfig c;
  c.vocab = keys.size("vocab_size", c.vocab);
  c.width = keys.size("hidden_size", c.width);
  c.layers = keys.layers("num_hidden_layers", c.layers);
  c.heads = keys.size("num_attention_heads", c.heads);
  c.hidden = keys.size("intermediate_size", c.hidden);
  c.context = keys.size("max_position_embeddings", c.context);
  c.token_types = keys.size("type_vocab_size", c.token_types);
  c.norm_eps = keys.number("layer_norm_eps", c.norm_eps);
  c.activation = activation_from(keys.text("hidden_act", "gelu"), false);
  c.padding_id = keys.integer("pad_token_id", c.padding_id, -1);
  c.tied = keys.flag("tie_word_embeddings", true);
  check(c.padding_id < c.vocab, ErrorKind::config, file,
        ": pad_token_id is outside the vocabulary: pad_token_id is ", c.padding_id,
        ", vocab_size is ", c.vocab);
  return c;
}

const char* class_of(const BertConfig& c) {
  if (c.labels > 0) {
    return "BertForSequenceClassification";
  }
  return c.mlm ? "BertForMaskedLM" : "BertModel";
}

// The classes' names, where the file has not as many.
void write_labels(const BertConfig& c, nlohmann::json& out) {
  const auto known = out.find("id2label");
  if (known != out.end() && known->is_object() && static_cast<int64_t>(known->size()) == c.labels) {
    return;
  }
  out["id2label"] = nlohmann::json::object();
  out["label2id"] = nlohmann::json::object();
  for (int64_t i = 0; i < c.labels; ++i) {
    out["id2label"][std::to_string(i)] = concat("LABEL_", i);
    out["label2id"][concat("LABEL_", i)] = i;
  }
}

void write_bert_config(const BertConfig& c, nlohmann::json& out) {
  out["architectures"] = {class_of(c)};
  if (c.labels > 0) {
    write_labels(c, out);
  }
  out["model_type"] = "bert";
  out["vocab_size"] = c.vocab;
  out["hidden_size"] = c.width;
  out["num_hidden_layers"] = c.layers;
  out["num_attention_heads"] = c.heads;
  out["intermediate_size"] = c.hidden;
  out["max_position_embeddings"] = c.context;
  out["type_vocab_size"] = c.token_types;
  out["layer_norm_eps"] = c.norm_eps;
  activation_to(c.activation, "hidden_act", out);
  out["pad_token_id"] = nullptr;
  if (c.padding_id >= 0) {
    out["pad_token_id"] = c.padding_id;
  }
  out["tie_word_embeddings"] = c.tied;
}

NameMap published_bert_names(const BertConfig& c) {
  NameMap map;
  const auto both = [&](const std::string& theirs, const std::string& ours) {
    map.pairs.push_back({theirs + ".weight", {ours + ".weight"}});
    map.pairs.push_back({theirs + ".bias", {ours + ".bias"}});
  };
  const auto table = [&](const std::string& theirs, const std::string& ours) {
    map.pairs.push_back({"bert.embeddings." + theirs + ".weight", {ours + ".weight"}});
  };
  table("word_embeddings", "words");
  table("position_embeddings", "places");
  table("token_type_embeddings", "token_types");
  both("bert.embeddings.LayerNorm", "embedding_norm");
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    const std::string theirs = concat("bert.encoder.layer.", layer, ".");
    const std::string ours = concat("layers.", layer, ".");
    both(theirs + "attention.self.query", ours + "attention.wq");
    both(theirs + "attention.self.key", ours + "attention.wk");
    both(theirs + "attention.self.value", ours + "attention.wv");
    both(theirs + "attention.output.dense", ours + "attention.wo");
    both(theirs + "attention.output.LayerNorm", ours + "attention_norm");
    both(theirs + "intermediate.dense", ours + "mlp.up");
    both(theirs + "output.dense", ours + "mlp.down");
    both(theirs + "output.LayerNorm", ours + "mlp_norm");
  }
  map.ignored = {"cls.seq_relationship.**", "bert.embeddings.position_ids",
                 "cls.predictions.decoder.bias"};  // the same bias again
  if (c.mlm) {
    both("cls.predictions.transform.dense", "head_dense");
    both("cls.predictions.transform.LayerNorm", "head_norm");
    map.pairs.push_back({"cls.predictions.bias", {"head_bias"}});
  } else {
    map.ignored.emplace_back("cls.predictions.**");
  }
  if (c.mlm && !c.tied) {
    map.pairs.push_back({"cls.predictions.decoder.weight", {"head.weight"}});
  } else if (c.mlm) {
    map.tied.push_back({"cls.predictions.decoder.weight", {"words.weight"}});
  }
  if (c.labels > 0) {
    both("bert.pooler.dense", "pooler");
    both("classifier", "classifier");
  } else {
    map.ignored.emplace_back("bert.pooler.**");
    map.ignored.emplace_back("classifier.**");
  }
  return map;
}

// The heads are what the files hold.
void take_heads(const TensorDict& tensors, BertConfig& c) {
  c.mlm = tensors.contains("cls.predictions.transform.dense.weight");
  if (tensors.contains("classifier.weight")) {
    const Tensor& weight = tensors.at("classifier.weight");
    c.labels = weight.rank() == 2 ? weight.size(0) : 1;
  }
}

// BertModel's files are without the prefix that those of the classes around it have.
std::string without_prefix(const std::string& name) {
  constexpr std::string_view prefix = "bert.";
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

}  // namespace

std::string bert_spelled(const std::string& published) {
  std::string out = published;
  for (const char* inside : {"embeddings.", "encoder.", "pooler."}) {
    if (published.starts_with(inside)) {
      out = "bert." + published;
    }
  }
  for (const auto& [old, now] :
       {std::pair<std::string_view, std::string_view>{".gamma", ".weight"}, {".beta", ".bias"}}) {
    if (out.ends_with(old)) {
      out.replace(out.size() - old.size(), old.size(), now);
    }
  }
  return out;
}

NameMap bert_names(const BertConfig& config) { return published_bert_names(config); }

PublishedBert read_bert(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "config.json";
  const nlohmann::json json = parse_json_file(file);
  PublishedBert out;
  out.config = read_bert_config(json, file.string());
  const SafetensorsSet stored(folder);
  check(out.config.layers <= static_cast<int64_t>(stored.names().size()), ErrorKind::config,
        file.string(), ": more layers than tensors: ", out.config.layers,
        " layers, the files hold ", stored.names().size(), " tensors");
  out.tensors = stored.tensors().renamed(bert_spelled);
  take_heads(out.tensors, out.config);
  out.json = json.dump(2);
  return out;
}

PretrainedBert load_bert(const std::filesystem::path& folder, std::optional<DType> dtype) {
  PretrainedBert out;
  try {
    const PublishedBert published = read_bert(folder);
    const BertConfig& config = published.config;
    const Bert planned(config, DType::f32, meta_device);
    const TensorDict ours =
        from_published(published_bert_names(config), published.tensors, planned.parameters());
    out.config = published.json;
    out.model = std::make_unique<Bert>(config, dtype.value_or(ours.at("words.weight").dtype()));
    out.model->load(ours);
  } catch (Error& error) {
    error.within(concat("while loading ", folder.string()));
    throw;
  }
  return out;
}

void save_bert(const Bert& model, const std::filesystem::path& folder,
               const std::string& base_config) {
  make_directories(folder);
  const TensorDict published =
      to_published(published_bert_names(model.config()), model.parameters());
  const bool bare = !model.config().mlm && model.config().labels == 0;
  write_safetensors_set(folder, bare ? published.renamed(without_prefix) : published,
                        SaveOptions().shard_bytes, {{"format", "pt"}});
  nlohmann::json config = parse_json(base_config, "base_config");
  write_bert_config(model.config(), config);
  config[config.contains("dtype") ? "dtype" : "torch_dtype"] =
      published_dtype(model.words.weight.dtype());
  write_file(folder / "config.json", config.dump(2) + "\n");
}

}  // namespace ingot
