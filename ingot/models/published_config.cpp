#include "ingot/models/published_config.h"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "ingot/base/json.h"

namespace ingot {
namespace {

struct ActivationName {
  std::string_view theirs, plain, gated;
};

// The first of several words for one function is the one written.
constexpr std::array<ActivationName, 8> activations = {{
    {"gelu_new", "gelu_tanh", "geglu_tanh"},
    {"gelu_pytorch_tanh", "gelu_tanh", "geglu_tanh"},
    {"gelu", "gelu", "geglu"},
    {"relu", "relu", "reglu"},
    {"silu", "silu", "swiglu"},
    {"swish", "silu", "swiglu"},
    {"relu2", "relu_squared", ""},
    {"sigmoid", "", "glu"},
}};

}  // namespace

std::string activation_from(std::string_view theirs, bool gated) {
  std::string all;
  for (const ActivationName& entry : activations) {
    const std::string_view ours = gated ? entry.gated : entry.plain;
    if (entry.theirs == theirs && !ours.empty()) {
      return std::string(ours);
    }
    if (!ours.empty()) {
      all += (all.empty() ? "" : ", ") + std::string(entry.theirs);
    }
  }
  throw Error(ErrorKind::config,
              concat("config.json: activation '", theirs, "' is not known; known are ", all));
}

std::optional<std::string> activation_to(std::string_view ours) {
  for (const ActivationName& entry : activations) {
    if (entry.plain == ours || entry.gated == ours) {
      return std::string(entry.theirs);
    }
  }
  return std::nullopt;
}

nn::RotaryConfig rotary_from(const nlohmann::json& config, const std::string& file) {
  nn::RotaryConfig rope;
  const auto parameters = config.find("rope_parameters");
  const bool newer = parameters != config.end() && parameters->is_object();
  const nlohmann::json nothing = nlohmann::json::object();
  const auto scaling = config.find("rope_scaling");
  const nlohmann::json& s = newer                                             ? *parameters
                            : scaling != config.end() && scaling->is_object() ? *scaling
                                                                              : nothing;
  rope.base = json_field_or<double>(
      s, "rope_theta", json_field_or<double>(config, "rope_theta", 10000.0, file), file);
  rope.fraction = json_field_or<double>(config, "partial_rotary_factor", 1.0, file);
  const std::string kind = json_field_or<std::string>(
      s, "rope_type", json_field_or<std::string>(s, "type", "default", file), file);
  rope.scaling = kind == "default" ? "none" : kind;
  const bool known = rope.scaling == "none" || kind == "linear" || kind == "dynamic" ||
                     kind == "llama3" || kind == "yarn";
  check(known, ErrorKind::config, file, ": rope_scaling of type '", kind,
        "' is not known; known are default, linear, dynamic, llama3, yarn");
  rope.factor = json_field_or<double>(s, "factor", 1.0, file);
  rope.original_context = json_field_or<int64_t>(s, "original_max_position_embeddings", 0, file);
  rope.low_frequency = json_field_or<double>(s, "low_freq_factor", rope.low_frequency, file);
  rope.high_frequency = json_field_or<double>(s, "high_freq_factor", rope.high_frequency, file);
  rope.beta_fast = json_field_or<double>(s, "beta_fast", rope.beta_fast, file);
  rope.beta_slow = json_field_or<double>(s, "beta_slow", rope.beta_slow, file);
  rope.attention_factor = json_field_or<double>(s, "attention_factor", 0.0, file);
  rope.mscale = json_field_or<double>(s, "mscale", 0.0, file);
  rope.mscale_all_dim = json_field_or<double>(s, "mscale_all_dim", 0.0, file);
  return rope;
}

void rotary_to(const nn::RotaryConfig& rope, nlohmann::json& config) {
  nlohmann::json scaling = nullptr;
  if (rope.scaling != "none") {
    scaling = {{"rope_type", rope.scaling}, {"factor", rope.factor}};
    if (rope.original_context > 0) {
      scaling["original_max_position_embeddings"] = rope.original_context;
    }
  }
  if (rope.scaling == "llama3") {
    scaling["low_freq_factor"] = rope.low_frequency;
    scaling["high_freq_factor"] = rope.high_frequency;
  } else if (rope.scaling == "yarn") {
    scaling["beta_fast"] = rope.beta_fast;
    scaling["beta_slow"] = rope.beta_slow;
    for (const auto& [key, value] :
         {std::pair{"attention_factor", rope.attention_factor}, std::pair{"mscale", rope.mscale},
          std::pair{"mscale_all_dim", rope.mscale_all_dim}}) {
      if (value > 0) {
        scaling[key] = value;
      }
    }
  }
  config.erase("rope_parameters");
  config["rope_theta"] = rope.base;
  config["rope_scaling"] = std::move(scaling);
  if (rope.fraction != 1) {
    config["partial_rotary_factor"] = rope.fraction;
  }
}

void refuse_if(bool on, std::string_view key, const std::string& file) {
  check(!on, ErrorKind::config, file, ": '", key, "' is on, which Ingot does not compute");
}

}  // namespace ingot
