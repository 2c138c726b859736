#include <array>
#include <utility>

#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "ingot/models/published_config.h"

namespace ingot {
namespace {

using Json = nlohmann::json;

constexpr const char* original_length = "original_max_position_embeddings";

// The object that describes rotation: version 5's, for layers without a window, or the older one.
const Json& rotary_object(const Json& config) {
  static const Json nothing = Json::object();
  const auto newer = config.find("rope_parameters");
  if (newer != config.end() && newer->is_object()) {
    const auto full = newer->find("full_attention");
    return full != newer->end() && full->is_object() ? *full : *newer;
  }
  const auto older = config.find("rope_scaling");
  return older != config.end() && older->is_object() ? *older : nothing;
}

std::string scaling_named(const std::string& kind, const std::string& file) {
  if (kind == "default" || kind == "su") {  // the first name of longrope
    return kind == "su" ? "longrope" : "none";
  }
  for (const char* known : {"linear", "dynamic", "llama3", "yarn", "longrope"}) {
    if (kind == known) {
      return kind;
    }
  }
  throw Error(ErrorKind::config,
              concat(file, ": rope_scaling of type '", kind,
                     "' is not known; known are default, linear, dynamic, llama3, yarn, longrope"));
}

// Sets what the kind of scaling reads, and removes what another kind read.
void scaling_to(const nn::RotaryConfig& rope, Json& out) {
  const char* kind = out.contains("type") && !out.contains("rope_type") ? "type" : "rope_type";
  for (const char* key :
       {"factor", original_length, "low_freq_factor", "high_freq_factor", "beta_fast", "beta_slow",
        "attention_factor", "mscale", "mscale_all_dim", "short_factor", "long_factor"}) {
    out.erase(key);
  }
  out[kind] = rope.scaling == "none" ? "default" : rope.scaling;
  const auto set_if = [&](const char* key, double value) {
    if (value > 0) {
      out[key] = value;
    }
  };
  if (rope.scaling == "longrope") {
    set_if("attention_factor", rope.attention_factor);
    set_if("factor", rope.factor > 1 ? rope.factor : 0);
    out["short_factor"] = rope.short_factors;
    out["long_factor"] = rope.long_factors;
    return;  // the original length stands beside this object
  }
  if (rope.scaling != "none") {
    out["factor"] = rope.factor;
    if (rope.original_context > 0) {
      out[original_length] = rope.original_context;
    }
  }
  if (rope.scaling == "llama3") {
    out["low_freq_factor"] = rope.low_frequency;
    out["high_freq_factor"] = rope.high_frequency;
  } else if (rope.scaling == "yarn") {
    out["beta_fast"] = rope.beta_fast;
    out["beta_slow"] = rope.beta_slow;
    set_if("attention_factor", rope.attention_factor);
    set_if("mscale", rope.mscale);
    set_if("mscale_all_dim", rope.mscale_all_dim);
  }
}

}  // namespace

nn::RotaryConfig rotary_from(const Json& config, const std::string& file, double base,
                             double fraction) {
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    const auto at = config.find(key);
    check(at == config.end() || at->is_null() || at->is_object(), ErrorKind::format, file, ": ",
          key, ": wrong type: expected an object or null");
  }
  nn::RotaryConfig rope;
  const Json& object = rotary_object(config);
  const ConfigKeys s{object, file};
  const ConfigKeys all{config, file};
  rope.base = s.number("rope_theta", all.number("rope_theta", base));
  rope.fraction = s.number("partial_rotary_factor", all.number("partial_rotary_factor", fraction));
  rope.scaling = scaling_named(s.text("rope_type", s.text("type", "default")), file);
  rope.factor = s.number("factor", 1);
  rope.original_context =
      s.integer(original_length, rope.scaling == "longrope" ? all.integer(original_length, 0) : 0);
  rope.low_frequency = s.number("low_freq_factor", rope.low_frequency);
  rope.high_frequency = s.number("high_freq_factor", rope.high_frequency);
  rope.beta_fast = s.number("beta_fast", rope.beta_fast);
  rope.beta_slow = s.number("beta_slow", rope.beta_slow);
  rope.attention_factor = s.number("attention_factor", 0);
  rope.mscale = s.number("mscale", 0);
  rope.mscale_all_dim = s.number("mscale_all_dim", 0);
  rope.short_factors = json_field_or<std::vector<double>>(object, "short_factor", {}, file);
  rope.long_factors = json_field_or<std::vector<double>>(object, "long_factor", {}, file);
  refuse_if(rope.scaling == "yarn" && !s.flag("truncate", true), "rope_scaling.truncate: false",
            file);
  return rope;
}

void rotary_to(const nn::RotaryConfig& rope, Json& config) {
  const auto newer = config.find("rope_parameters");
  if (newer != config.end() && newer->is_object()) {
    const bool by_layer = newer->contains("full_attention");
    Json& object = by_layer ? (*newer)["full_attention"] : *newer;
    scaling_to(rope, object);
    object["rope_theta"] = rope.base;
    if (rope.fraction != 1 || object.contains("partial_rotary_factor")) {
      object["partial_rotary_factor"] = rope.fraction;
    }
    if (rope.scaling == "longrope" && rope.original_context > 0) {
      object[original_length] = rope.original_context;
    }
    for (const char* key : {"rope_theta", "rope_scaling"}) {
      config.erase(key);
    }
    return;
  }
  Json scaling = nullptr;
  if (rope.scaling != "none") {
    scaling = config.contains("rope_scaling") && config["rope_scaling"].is_object()
                  ? config["rope_scaling"]
                  : Json::object();
    scaling_to(rope, scaling);
  }
  config["rope_theta"] = rope.base;
  config["rope_scaling"] = std::move(scaling);
  if (rope.fraction != 1 || config.contains("partial_rotary_factor")) {
    config["partial_rotary_factor"] = rope.fraction;
  }
  if (rope.scaling == "longrope" && rope.original_context > 0) {
    config[original_length] = rope.original_context;
  }
}

}  // namespace ingot
