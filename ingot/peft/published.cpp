#include "ingot/peft/published.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "ingot/autograd/record.h"
#include "ingot/base/edit_distance.h"
#include "ingot/base/files.h"
#include "ingot/base/hash.h"
#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "ingot/io/safetensors.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/index.h"
#include "ingot/ops/shape.h"
#include "ingot/peft/bottleneck.h"
#include "ingot/peft/dora.h"
#include "ingot/peft/ia3.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"

namespace ingot::peft {
namespace {

constexpr const char* config_file = "adapter_config.json";
constexpr const char* weights_file = "adapter_model.safetensors";
constexpr const char* prefix = "base_model.model.";
constexpr const char* hash_key = "ingot.base_hash";
constexpr int64_t largest_size = (int64_t{1} << 24) - 1;  // of a rank or width that a file may name

// --- rows of joined maps

Tensor in_order(const Tensor& x, const std::vector<int64_t>& order) {
  return index_select(x, 0, tensor_of(order, {static_cast<int64_t>(order.size())}));
}

std::vector<int64_t> inverse(const std::vector<int64_t>& order) {
  std::vector<int64_t> out(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    out[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  }
  return out;
}

using MapsByPath = std::map<std::string, nn::Linear*>;

MapsByPath maps_by_path(nn::Module& model) {
  MapsByPath out;
  for (const auto& [path, map] : nn::linear_maps(model)) {
    out.emplace(path, map);
  }
  return out;
}

// The rows of x of published order divided among our maps.
TensorList divided(const Tensor& x, const std::vector<int64_t>& rows, int64_t alternating) {
  const Tensor ours = rows.size() == 1 ? x : in_order(x, inverse(joined_rows(rows, alternating)));
  TensorList out;
  int64_t begin = 0;
  for (const int64_t count : rows) {
    out.push_back(slice(ours, 0, begin, begin + count));
    begin += count;
  }
  return out;
}

// --- reading

bool is_set(const nlohmann::json& config, const char* key) {
  if (!config.contains(key) || config[key].is_null()) {
    return false;
  }
  const nlohmann::json& value = config[key];
  return !((value.is_array() || value.is_object() || value.is_string()) && value.empty()) &&
         value != false;
}

// What PEFT's files may say and Ingot does not compute.
void refuse_unknown(const nlohmann::json& config, const std::string& file) {
  for (const char* key : {"modules_to_save", "layer_replication", "trainable_token_indices",
                          "target_parameters", "use_qalora", "lora_bias", "use_bdlora"}) {
    check(!is_set(config, key), ErrorKind::format, file, ": ", key,
          " is set: Ingot reads adapters of linear maps alone");
  }
  const auto bias = json_field_or<std::string>(config, "bias", "none", file);
  check(bias == "none", ErrorKind::format, file, ": bias is \"", bias,
        "\": Ingot reads adapters without trained biases (\"none\")");
}

// The tensors by module and by what they are ("lora_A"), without the prefix.
using Parts = std::map<std::string, std::map<std::string, Tensor>>;

Parts parts_of(const SafetensorsFile& file) {
  Parts out;
  for (const SafetensorsEntry& entry : file.entries()) {
    std::string name = entry.name;
    if (name.starts_with(prefix)) {
      name = name.substr(std::string_view(prefix).size());
    }
    bool found = false;
    for (const char* part : {"lora_A", "lora_B", "lora_magnitude_vector", "ia3_l", "down.weight",
                             "down.bias", "up.weight", "up.bias"}) {
      const size_t at = name.rfind(std::string(".") + part);
      const bool whole = at != std::string::npos;
      const std::string rest = whole ? name.substr(at + 1 + std::string_view(part).size()) : "x";
      if (whole && (rest.empty() || rest == ".weight")) {
        out[name.substr(0, at)][part] = file.tensor(entry.name);
        found = true;
        break;
      }
    }
    check(found, ErrorKind::format, file.name(), ": tensor ", entry.name,
          " is no part of an adapter that Ingot reads");
  }
  check(!out.empty(), ErrorKind::format, file.name(), ": holds no adapter");
  return out;
}

const PublishedMap& map_of(const std::string& module, const PublishedMaps& maps,
                           const std::string& file) {
  std::vector<std::string> names;
  for (const PublishedMap& map : maps) {
    if (map.module == module) {
      return map;
    }
    names.push_back(map.module);
  }
  throw Error(ErrorKind::format, concat(file, ": the model has no linear map ", module,
                                        "; is it an adapter of another base? The nearest is ",
                                        nearest_word(module, names)));
}

const Tensor& part_of(const Parts& parts, const std::string& module, const char* part,
                      const std::string& file) {
  const auto& all = parts.at(module);
  const auto at = all.find(part);
  check(at != all.end(), ErrorKind::format, file, ": ", module, " has no ", part);
  return at->second;
}

void check_shape(const Tensor& x, const Shape& expected, const std::string& what,
                 const AdapterFolder& folder) {
  check(x.shape() == expected, ErrorKind::config, folder.path.string(), ": ", what, " is ",
        x.shape(), ", this model needs ", expected, ": the adapter was made for another base",
        folder.base_name.empty() ? "" : " (" + folder.base_name + ")");
}

// Copies the tensors of one module into the adapters of our maps.
class Filler {
 public:
  Filler(const Parts& parts, const AdapterFolder& folder, const std::string& file)
      : parts_(parts), folder_(folder), file_(file) {}

  void fill(const PublishedMap& published, const std::vector<int64_t>& rows,
            const std::vector<Adapter*>& ours) const {
    const std::string& module = published.module;
    if (folder_.config.low_rank()) {
      fill_low_rank(published, rows, ours);
    } else if (folder_.config.kind == "ia3") {
      fill_factors(published, rows, ours);
    } else {
      check(ours.size() == 1, ErrorKind::format, file_, ": ", module,
            " joins several maps of this model");
      auto& one = dynamic_cast<Bottleneck&>(*ours[0]);
      copy(one.down, part(module, "down.weight"), module + ".down.weight");
      copy(one.down_bias, part(module, "down.bias"), module + ".down.bias");
      copy(one.up, part(module, "up.weight"), module + ".up.weight");
      copy(one.up_bias, part(module, "up.bias"), module + ".up.bias");
    }
  }

 private:
  const Tensor& part(const std::string& module, const char* name) const {
    return part_of(parts_, module, name, file_);
  }
  void copy(Tensor& to, const Tensor& from, const std::string& what) const {
    check_shape(from, to.shape(), what, folder_);
    copy_into(to, from);
  }

  void fill_low_rank(const PublishedMap& published, const std::vector<int64_t>& rows,
                     const std::vector<Adapter*>& ours) const {
    const std::string& module = published.module;
    const Tensor& a = part(module, "lora_A");
    const Tensor& b = part(module, "lora_B");
    int64_t out = 0;
    for (const int64_t count : rows) {
      out += count;
    }
    check_shape(b, {out, a.size(0)}, module + ".lora_B", folder_);
    const TensorList bs = divided(b, rows, published.alternating);
    TensorList magnitudes;
    if (folder_.config.kind == "dora") {
      const Tensor& m = part(module, "lora_magnitude_vector");
      check_shape(reshaped(dense(m), {m.elements()}), {out}, module + ".lora_magnitude_vector",
                  folder_);
      magnitudes = divided(reshaped(dense(m), {out}), rows, published.alternating);
    }
    for (size_t i = 0; i < ours.size(); ++i) {
      auto& lora = dynamic_cast<Lora&>(*ours[i]);
      copy(lora.a, a, module + ".lora_A");
      copy(lora.b, bs[i], module + ".lora_B");
      if (!magnitudes.empty()) {
        copy(dynamic_cast<Dora&>(lora).magnitude, magnitudes[i], module + ".lora_magnitude_vector");
      }
    }
  }

  void fill_factors(const PublishedMap& published, const std::vector<int64_t>& rows,
                    const std::vector<Adapter*>& ours) const {
    const Tensor& l = part(published.module, "ia3_l");
    const Tensor flat = reshaped(dense(l), {l.elements()});
    const std::string what = published.module + ".ia3_l";
    if (dynamic_cast<Ia3&>(*ours[0]).scales() == Ia3::Scales::input) {
      for (Adapter* one : ours) {
        copy(dynamic_cast<Ia3&>(*one).factors, flat, what);
      }
      return;
    }
    int64_t out = 0;
    for (const int64_t count : rows) {
      out += count;
    }
    check_shape(flat, {out}, what, folder_);
    const TensorList parts = divided(flat, rows, published.alternating);
    for (size_t i = 0; i < ours.size(); ++i) {
      copy(dynamic_cast<Ia3&>(*ours[i]).factors, parts[i], what);
    }
  }

  const Parts& parts_;
  const AdapterFolder& folder_;
  const std::string& file_;
};

// The value of "rank_pattern" or "alpha_pattern" for a module: keys are ends of its name.
double patterned(const nlohmann::json& config, const char* key, const std::string& module,
                 double otherwise) {
  if (!is_set(config, key)) {
    return otherwise;
  }
  for (const auto& [pattern, value] : config[key].items()) {
    const bool ends = module == pattern || module.ends_with("." + pattern);
    if (ends && value.is_number()) {
      const auto found = value.get<double>();
      check(found > 0 && found <= largest_size, ErrorKind::format, config_file, ": ", key, " of ",
            pattern, " is ", value.dump(), ", allowed is above 0 to ", largest_size);
      return found;
    }
  }
  return otherwise;
}

}  // namespace

std::vector<int64_t> joined_rows(const std::vector<int64_t>& rows, int64_t alternating) {
  std::vector<int64_t> order;
  for (int64_t turn = 0; turn < alternating; ++turn) {
    int64_t begin = 0;
    for (const int64_t count : rows) {
      const int64_t step = count / alternating;
      for (int64_t i = 0; i < step; ++i) {
        order.push_back(begin + turn * step + i);
      }
      begin += count;
    }
  }
  return order;
}

std::string weights_hash(const TensorDict& weights) {
  Hasher hasher;
  for (const auto& [name, tensor] : weights) {
    const std::string head = concat(name, " ", tensor.dtype(), " ", tensor.shape(), "\n");
    hasher.update(std::as_bytes(std::span(head)));
    const Tensor whole = dense(detach(tensor));
    hasher.update(
        {static_cast<const std::byte*>(whole.view().data), static_cast<size_t>(whole.bytes())});
  }
  return hasher.hex();
}

AdapterFolder read_adapter_folder(const std::filesystem::path& folder) {
  const std::string file = (folder / config_file).string();
  check(file_exists(folder / config_file), ErrorKind::io, folder.string(), ": holds no ",
        config_file, "; give the folder of an adapter in PEFT's layout");
  const nlohmann::json config = parse_json_file(file);
  check(config.is_object(), ErrorKind::format, file, ": is no JSON object");
  refuse_unknown(config, file);
  AdapterFolder out;
  out.path = folder;
  out.base_name = json_field_or<std::string>(config, "base_model_name_or_path", "", file);
  const auto type = json_field<std::string>(config, "peft_type", file);
  if (type == "LORA") {
    out.config.kind = json_field_or<bool>(config, "use_dora", false, file) ? "dora" : "lora";
    out.config.rank = json_field<int64_t>(config, "r", file);
    out.config.alpha = json_field<double>(config, "lora_alpha", file);
    out.config.rslora = json_field_or<bool>(config, "use_rslora", false, file);
    out.config.dropout = json_field_or<double>(config, "lora_dropout", 0, file);
    check(out.config.rank >= 1 && out.config.rank <= largest_size && out.config.alpha > 0,
          ErrorKind::format, file, ": r must be at least 1 and lora_alpha above 0: r is ",
          out.config.rank, ", lora_alpha is ", out.config.alpha);
    check(out.config.dropout >= 0 && out.config.dropout < 1, ErrorKind::format, file,
          ": lora_dropout must be from 0 to below 1: got ", out.config.dropout);
  } else if (type == "IA3") {
    out.config.kind = "ia3";
  } else {
    check(type == "INGOT_BOTTLENECK", ErrorKind::format, file, ": peft_type is \"", type,
          "\"; Ingot reads LORA (with DoRA and rsLoRA) and IA3");
    out.config.kind = "bottleneck";
    out.config.width = json_field<int64_t>(config, "width", file);
    check(out.config.width >= 1 && out.config.width <= largest_size, ErrorKind::format, file,
          ": width must be from 1 to ", largest_size, ": got ", out.config.width);
  }
  const SafetensorsFile weights(folder / weights_file);
  const auto hash = weights.metadata().find(hash_key);
  out.base_hash = hash == weights.metadata().end() ? "" : hash->second;
  return out;
}

std::unique_ptr<Adapters> load_adapter(nn::Module& model, const PublishedMaps& maps,
                                       const AdapterFolder& folder, Adapters::Options options,
                                       const std::string& base_hash) {
  const std::string file = (folder.path / weights_file).string();
  check(base_hash.empty() || folder.base_hash.empty() || base_hash == folder.base_hash,
        ErrorKind::config, folder.path.string(), ": the adapter was made for another base",
        folder.base_name.empty() ? "" : " (" + folder.base_name + ")", ": its base's hash is ",
        folder.base_hash, ", this model's is ", base_hash);
  const SafetensorsFile stored(folder.path / weights_file);
  const Parts parts = parts_of(stored);
  const nlohmann::json json = parse_json_file(folder.path / config_file);
  const MapsByPath by_path = maps_by_path(model);
  PeftConfig config = folder.config;
  std::vector<const PublishedMap*> used;
  for (const auto& [module, tensors] : parts) {
    const PublishedMap& map = map_of(module, maps, file);
    used.push_back(&map);
    const auto rank = static_cast<int64_t>(
        patterned(json, "rank_pattern", module, static_cast<double>(config.rank)));
    const double alpha = patterned(json, "alpha_pattern", module, config.alpha);
    for (const std::string& ours : map.ours) {
      check(by_path.contains(ours), ErrorKind::format, file, ": the model has no linear map ",
            ours);
      config.targets.push_back(ours);
      options.per_map[ours] = {rank, alpha};
    }
    if (config.low_rank()) {
      const Tensor& a = part_of(parts, module, "lora_A", file);
      check_shape(a, {rank, by_path.at(map.ours[0])->in_features()}, module + ".lora_A", folder);
    } else if (config.kind == "bottleneck") {
      check_shape(part_of(parts, module, "down.weight", file),
                  {config.width, by_path.at(map.ours[0])->out_features()}, module + ".down.weight",
                  folder);
    }
  }
  auto out = std::make_unique<Adapters>(model, config, options);
  const Filler filler(parts, folder, file);
  for (const PublishedMap* map : used) {
    std::vector<Adapter*> ours;
    for (const std::string& path : map->ours) {
      for (const Adapters::Entry& entry : out->entries()) {
        if (entry.path == path) {
          ours.push_back(entry.adapter.get());
        }
      }
    }
    filler.fill(*map, map->rows, ours);
  }
  return out;
}

}  // namespace ingot::peft
