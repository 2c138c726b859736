#include "ingot/models/pretrained.h"

#include <algorithm>
#include <cmath>

#include "ingot/base/describe.h"
#include "ingot/base/files.h"
#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "ingot/base/log.h"
#include "ingot/io/safetensors_shards.h"
#include "ingot/models/architecture.h"
#include "ingot/models/packed_weights.h"

namespace ingot {
namespace {

// The embedding may have more rows than the vocabulary, to divide evenly: they are kept, as tokens
// that no text has.
void take_rows(DecoderConfig& config, const NameMap& names, const TensorDict& published,
               const std::string& file) {
  for (const NamePair& pair : names.pairs) {
    if (pair.ours.front() != "embedding.weight" || !published.contains(pair.theirs)) {
      continue;
    }
    const Tensor& table = published.at(pair.theirs);
    const int64_t rows = table.rank() == 2 ? table.size(0) : config.vocab;
    check(rows >= config.vocab, ErrorKind::config, file,
          ": vocab_size is larger than the embedding: ", "vocab_size is ", config.vocab, ", ",
          pair.theirs, " is ", table.shape(), ", so tokens ", rows, " to ", config.vocab - 1,
          " have no row; correct vocab_size or take the files that ", "belong to it");
    if (rows > config.vocab) {
      log_info(file, ": ", pair.theirs, " has ", rows, " rows for a vocabulary of ", config.vocab,
               ": the ", rows - config.vocab, " rows of padding are kept, and count as tokens");
      config.vocab = rows;
    }
  }
}

// Whether a pair is of a head that predicts further tokens.
bool is_of_a_head(const NamePair& pair) { return pair.ours.front().starts_with("mtp."); }

// Programs that leave out such heads leave their number in config.json.
void leave_out_absent_heads(DecoderConfig& config, const NameMap& names,
                            const TensorDict& published, const std::string& file) {
  const auto is_there = [&](const NamePair& pair) {
    return is_of_a_head(pair) && published.contains(pair.theirs);
  };
  if (config.mtp.depth > 0 && std::ranges::none_of(names.pairs, is_there)) {
    log_info(file, ": names ", config.mtp.depth,
             " heads for further tokens, of which the files hold nothing: the model has none");
    config.mtp = {};
  }
}

nlohmann::json config_of(const Decoder& model, const SaveOptions& options) {
  nlohmann::json config = parse_json(options.base_config, "base_config");
  architecture_of(model.config()).write(plainest(model.config()), config);
  // The word that version 5 writes, where the file that is continued has it.
  config[config.contains("dtype") ? "dtype" : "torch_dtype"] = published_dtype(model.dtype());
  if (options.bos_token) {
    config["bos_token_id"] = *options.bos_token;
  }
  if (options.eos_token) {
    config["eos_token_id"] = *options.eos_token;
  }
  return config;
}

// What other programs stop at and start from when they generate.
nlohmann::json generation_config_of(const nlohmann::json& config) {
  nlohmann::json out = {{"_from_model_config", true}};
  for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id"}) {
    if (config.contains(key) && !config[key].is_null()) {
      out[key] = config[key];
    }
  }
  return out;
}

}  // namespace

const char* published_dtype(DType dtype) {
  switch (dtype) {
    case DType::f16: return "float16";
    case DType::bf16: return "bfloat16";
    case DType::f64: return "float64";
    default: return "float32";
  }
}

namespace {

// Of all layers together, which are no more than the files' tensors.
int64_t experts_of(const DecoderConfig& config) {
  int64_t layers = 0;
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    layers += has_experts(config.moe, layer) ? 1 : 0;
  }
  return layers * config.moe.experts;
}

}  // namespace

void check_sizes(DecoderConfig& config, const std::string& file, int64_t tensors) {
  constexpr int64_t largest = int64_t{1} << 30;
  const Fields fields = fields_of(config);
  try {
    for (const Field& field : fields.all()) {
      const auto value = field.checked(field.get());
      const auto* whole = value ? std::get_if<int64_t>(&*value) : nullptr;
      check(whole == nullptr || *whole <= largest, ErrorKind::config, field.path,
            ": larger than any model: got ", text_of(value));
      const auto* number = value ? std::get_if<double>(&*value) : nullptr;
      check(number == nullptr || std::isfinite(*number), ErrorKind::config, field.path,
            ": no model has an infinite one: got ", text_of(value));
    }
  } catch (Error& error) {
    error.within(file);
    throw;
  }
  check(config.layers <= tensors, ErrorKind::config, file,
        ": more layers than tensors: ", config.layers, " layers, the files hold ", tensors,
        " tensors");
  constexpr int64_t most_experts = int64_t{1} << 17;  // five times those of the largest model
  const int64_t experts = experts_of(config);
  check(experts <= most_experts, ErrorKind::config, file,
        ": more experts than any model: ", experts, " in ", config.layers, " layers");
}

PublishedFolder read_published(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "config.json";
  nlohmann::json config = parse_json_file(file);
  const auto& architecture =
      architecture_named(json_field<std::string>(config, "model_type", file.string()));
  const SafetensorsSet stored(folder);
  PublishedFolder out;
  out.architecture = &architecture;
  out.config = architecture.read(config, file.string());
  const auto tensors = static_cast<int64_t>(stored.names().size());
  check_sizes(out.config, file.string(), tensors);
  const int64_t experts = experts_of(out.config);
  check(experts <= tensors, ErrorKind::config, file.string(),
        ": more experts than tensors: ", experts, " in all layers, the files hold ", tensors,
        " tensors");
  out.tensors = stored.tensors();
  if (const auto packed = packed_format(config, file.string())) {
    out.tensors = unpacked(out.tensors, *packed, folder.string());
    config.erase("quantization_config");
  }
  out.json = config.dump(2);
  out.tensors = out.tensors.renamed(architecture.spelled);
  leave_out_absent_heads(out.config, architecture.names(out.config), out.tensors, file.string());
  take_rows(out.config, architecture.names(out.config), out.tensors, file.string());
  return out;
}

TensorDict PublishedFolder::weights(const DecoderConfig& shape) const {
  const Decoder planned(shape, DType::f32, meta_device);
  return from_published(architecture->names(shape), tensors, planned.parameters());
}

Pretrained load_pretrained(const std::filesystem::path& folder, std::optional<DType> dtype) {
  Pretrained out;
  try {
    const PublishedFolder published = read_published(folder);
    const TensorDict ours = published.weights(published.config);
    const DType type = dtype.value_or(ours.at("embedding.weight").dtype());
    out.config = published.json;
    out.model = std::make_unique<Decoder>(published.config, type);
    out.model->load(ours);
  } catch (Error& error) {
    error.within(concat("while loading ", folder.string()));
    throw;
  }
  return out;
}

void save_pretrained(const Decoder& model, const std::filesystem::path& folder,
                     const SaveOptions& options) {
  make_directories(folder);
  const NameMap names = architecture_of(model.config()).names(model.config());
  write_safetensors_set(folder, to_published(names, model.parameters()), options.shard_bytes,
                        {{"format", "pt"}});
  const nlohmann::json config = config_of(model, options);
  write_file(folder / "generation_config.json", generation_config_of(config).dump(2) + "\n");
  write_file(folder / "config.json", config.dump(2) + "\n");
}

}  // namespace ingot
