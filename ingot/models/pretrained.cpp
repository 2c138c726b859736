#include "ingot/models/pretrained.h"

#include <nlohmann/json.hpp>

#include "ingot/base/files.h"
#include "ingot/base/json.h"
#include "ingot/io/safetensors_shards.h"
#include "ingot/models/architecture.h"

namespace ingot {
namespace {

const char* published_dtype(DType dtype) {
  switch (dtype) {
    case DType::f16: return "float16";
    case DType::bf16: return "bfloat16";
    case DType::f64: return "float64";
    default: return "float32";
  }
}

nlohmann::json config_of(const Decoder& model, const SaveOptions& options) {
  nlohmann::json config = parse_json(options.base_config, "base_config");
  architecture_of(model.config()).write(model.config(), config);
  config["torch_dtype"] = published_dtype(model.dtype());
  config.erase("dtype");
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

Pretrained load_pretrained(const std::filesystem::path& folder, std::optional<DType> dtype) {
  const std::filesystem::path file = folder / "config.json";
  const nlohmann::json config = parse_json_file(file);
  const auto& architecture =
      architecture_named(json_field<std::string>(config, "model_type", file.string()));
  const DecoderConfig shape = architecture.read(config, file.string());
  const SafetensorsSet stored(folder);
  const TensorDict published = stored.tensors().renamed(architecture.spelled);
  const NameMap names = architecture.names(shape);
  const Decoder planned(shape, DType::f32, meta_device);
  Pretrained out;
  out.config = config.dump(2);
  try {
    const TensorDict ours = from_published(names, published, planned.parameters());
    const DType type = dtype.value_or(ours.at("embedding.weight").dtype());
    out.model = std::make_unique<Decoder>(shape, type);
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
