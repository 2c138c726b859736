#include "ingot/models/own_format.h"

#include "ingot/base/config_json.h"
#include "ingot/base/json_library.h"
#include "ingot/models/decoder.h"

namespace ingot {
namespace {

DecoderConfig read_own(const nlohmann::json& json, const std::string& file) {
  check(json.contains("decoder"), ErrorKind::format, file, ": no key 'decoder'");
  DecoderConfig config;
  apply_settings(fields_of(config), json_settings(json["decoder"], file));
  return complete(config);
}

void write_own(const DecoderConfig& config, nlohmann::json& out) {
  DecoderConfig copy = config;
  out["architectures"] = {"IngotDecoder"};
  out["model_type"] = "ingot";
  out["decoder"] = write_json(fields_of(copy));
}

NameMap own_names(const DecoderConfig& config) {
  NameMap map;
  for (const auto& [name, parameter] : Decoder(config, DType::f32, meta_device).parameters()) {
    map.pairs.push_back({name, {name}});
  }
  return map;
}

std::string own_spelled(const std::string& published) { return published; }

}  // namespace

Architecture own_architecture() { return {"ingot", read_own, write_own, own_names, own_spelled}; }

}  // namespace ingot
