#include "ingot/models/published_config.h"

#include <array>
#include <utility>

#include "ingot/base/json.h"
#include "ingot/base/json_library.h"

namespace ingot {
namespace {

struct ActivationName {
  std::string_view theirs, plain, gated;
};

// The first of several words for one function is the one written.
constexpr std::array<ActivationName, 11> activations = {{
    {"gelu_pytorch_tanh", "", "geglu_tanh"},
    {"gelu_new", "gelu_tanh", "geglu_tanh"},
    {"gelu_pytorch_tanh", "gelu_tanh", ""},
    {"gelu_fast", "gelu_tanh", "geglu_tanh"},
    {"gelu", "gelu", "geglu"},
    {"gelu_python", "gelu", "geglu"},
    {"relu", "relu", "reglu"},
    {"silu", "silu", "swiglu"},
    {"swish", "silu", "swiglu"},
    {"relu2", "relu_squared", ""},
    {"sigmoid", "", "glu"},
}};

bool is_null(const nlohmann::json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_null();
}

}  // namespace

bool ConfigKeys::has(const char* key) const { return json.contains(key); }

int64_t ConfigKeys::integer(const char* key, int64_t missing) const {
  return json_field_or<int64_t>(json, key, missing, file);
}

int64_t ConfigKeys::integer(const char* key, int64_t missing, int64_t of_null) const {
  return is_null(json, key) ? of_null : integer(key, missing);
}

int64_t ConfigKeys::size(const char* key, int64_t missing) const {
  const int64_t value = integer(key, missing);
  constexpr int64_t largest = int64_t{1} << 30;
  check(value >= 1 && value <= largest, ErrorKind::config, file, ": ", key, ": out of range: got ",
        value, ", allowed is 1 to ", largest);
  return value;
}

int64_t ConfigKeys::layers(const char* key, int64_t missing) const {
  const int64_t value = integer(key, missing);
  check(value >= 0 && value <= 10000, ErrorKind::config, file, ": ", key, ": out of range: got ",
        value, ", allowed is 0 to 10000");
  return value;
}

double ConfigKeys::number(const char* key, double missing) const {
  return json_field_or<double>(json, key, missing, file);
}

double ConfigKeys::number(const char* key, double missing, double of_null) const {
  return is_null(json, key) ? of_null : number(key, missing);
}

bool ConfigKeys::flag(const char* key, bool missing) const {
  return json_field_or<bool>(json, key, missing, file);
}

std::string ConfigKeys::text(const char* key, const std::string& missing) const {
  return json_field_or<std::string>(json, key, missing, file);
}

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

void activation_to(std::string_view ours, const char* key, nlohmann::json& config) {
  const std::optional<std::string> theirs = activation_to(ours);
  check(theirs, ErrorKind::config, key, ": no published word for the activation ", ours);
  for (const ActivationName& entry : activations) {
    const bool same = entry.plain == ours || entry.gated == ours;
    if (same && config.contains(key) && config[key] == entry.theirs) {
      return;
    }
  }
  config[key] = *theirs;
}

std::optional<std::vector<int64_t>> windowed_layers_from(const nlohmann::json& config,
                                                         int64_t layers, const std::string& file) {
  const auto types = json_field_or<std::vector<std::string>>(config, "layer_types", {}, file);
  if (!config.contains("layer_types") || is_null(config, "layer_types")) {
    return std::nullopt;
  }
  check(static_cast<int64_t>(types.size()) == layers, ErrorKind::config, file,
        ": layer_types does not list every layer: it has ", types.size(),
        " entries, num_hidden_layers is ", layers);
  std::vector<int64_t> out;
  for (size_t layer = 0; layer < types.size(); ++layer) {
    const std::string& type = types[layer];
    check(type == "full_attention" || type == "sliding_attention", ErrorKind::config, file,
          ": layer_types: '", type, "' of layer ", layer,
          " is not known; known are full_attention, sliding_attention");
    if (type == "sliding_attention") {
      out.push_back(static_cast<int64_t>(layer));
    }
  }
  return out;
}

void windowed_layers_to(const DecoderConfig& c, nlohmann::json& config) {
  if (c.window == 0 && !config.contains("layer_types")) {
    return;
  }
  nlohmann::json types = nlohmann::json::array();
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    types.push_back(is_windowed(c, layer) ? "sliding_attention" : "full_attention");
  }
  config["layer_types"] = std::move(types);
}

void refuse_if(bool on, std::string_view key, const std::string& file) {
  check(!on, ErrorKind::config, file, ": '", key, "' is on, which Ingot does not compute");
}

}  // namespace ingot
