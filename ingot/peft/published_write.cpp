#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "ingot/autograd/record.h"
#include "ingot/base/files.h"
#include "ingot/base/json_library.h"
#include "ingot/io/safetensors.h"
#include "ingot/ops/index.h"
#include "ingot/ops/shape.h"
#include "ingot/peft/bottleneck.h"
#include "ingot/peft/dora.h"
#include "ingot/peft/ia3.h"
#include "ingot/peft/published.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

// Adapters written as PEFT's folders.
namespace ingot::peft {
namespace {

using Json = nlohmann::ordered_json;

// What a published map's tensors are made of: an adapter for each part, null where it has none.
struct Joined {
  const PublishedMap* published;
  std::vector<const Adapters::Entry*> parts;

  bool any() const {
    return std::ranges::any_of(parts, [](const auto* part) { return part != nullptr; });
  }
  bool all() const {
    return std::ranges::all_of(parts, [](const auto* part) { return part != nullptr; });
  }
};

std::vector<Joined> joined_of(const Adapters& adapters, const PublishedMaps& maps) {
  std::map<std::string, const Adapters::Entry*> by_path;
  for (const Adapters::Entry& entry : adapters.entries()) {
    by_path[entry.path] = &entry;
  }
  std::vector<Joined> out;
  size_t written = 0;
  for (const PublishedMap& map : maps) {
    Joined one{&map, {}};
    for (const std::string& ours : map.ours) {
      const auto at = by_path.find(ours);
      one.parts.push_back(at == by_path.end() ? nullptr : at->second);
      written += at == by_path.end() ? 0 : 1;
    }
    if (one.any()) {
      out.push_back(std::move(one));
    }
  }
  check(written == adapters.entries().size(), ErrorKind::config,
        "save_adapter: the published model has no name for ", adapters.entries().size() - written,
        " of the adapted maps");
  return out;
}

Tensor in_published_order(const Tensor& rows, const std::vector<int64_t>& counts,
                          const PublishedMap& published) {
  if (counts.size() == 1) {
    return rows;
  }
  const std::vector<int64_t> order = joined_rows(counts, published.alternating);
  return index_select(rows, 0, tensor_of(order, {static_cast<int64_t>(order.size())}));
}

class Writer {
 public:
  Writer(const PeftConfig& config, TensorDict& tensors) : config_(config), tensors_(tensors) {}

  std::map<std::string, int64_t> ranks;  // by module, where they differ from the config's
  std::map<std::string, double> alphas;

  void write(const Joined& one) {
    if (config_.low_rank()) {
      low_rank(one);
    } else if (config_.kind == "ia3") {
      factors(one);
    } else {
      bottleneck(one);
    }
  }

 private:
  static void check_whole(const Joined& one, const char* why) {
    check(one.all(), ErrorKind::config, "save_adapter: ", one.published->module,
          " joins maps of which some have no adapter, and ", why,
          " cannot say so; give all of them one");
  }
  void add(const Joined& one, const char* part, const Tensor& tensor) {
    tensors_.add(concat("base_model.model.", one.published->module, ".", part),
                 contiguous(detach(tensor)));
  }

  void low_rank(const Joined& one) {
    std::vector<LowRankPair> pairs;
    std::vector<int64_t> rows;
    const Lora* first = nullptr;
    for (const Adapters::Entry* part : one.parts) {
      check(part != nullptr || config_.kind == "lora", ErrorKind::config,
            "save_adapter: ", one.published->module,
            " joins maps of which some have no adapter, and dora cannot say so; give all of them "
            "one");
      first = first == nullptr && part != nullptr ? &lora_of(*part) : first;
    }
    for (size_t i = 0; i < one.parts.size(); ++i) {
      pairs.push_back(one.parts[i] != nullptr ? exported(lora_of(*one.parts[i])) : LowRankPair{});
      if (one.parts[i] == nullptr) {
        const int64_t out = rows_without(one, i);
        pairs.back() = {zeros({0, first->a.size(1)}, first->a.dtype()),
                        zeros({out, 0}, first->b.dtype())};
      }
      rows.push_back(pairs.back().b.size(0));
    }
    const LowRankPair pair = joined(pairs);
    add(one, "lora_A.weight", pair.a);
    add(one, "lora_B.weight", in_published_order(pair.b, rows, *one.published));
    if (config_.kind == "dora") {
      TensorList magnitudes;
      for (const Adapters::Entry* part : one.parts) {
        magnitudes.push_back(dynamic_cast<const Dora&>(*part->adapter).magnitude);
      }
      add(one, "lora_magnitude_vector",
          in_published_order(concat(magnitudes, int64_t{0}), rows, *one.published));
    }
    note_scaling(one, *first, pair.a.size(0));
  }

  // alpha such that PEFT's factor for this rank is the adapter's.
  void note_scaling(const Joined& one, const Lora& lora, int64_t rank) {
    const double r = static_cast<double>(rank);
    const double alpha = lora.scaling() * (config_.rslora ? std::sqrt(r) : r);
    if (rank != config_.rank) {
      ranks[one.published->module] = rank;
    }
    if (std::abs(alpha - config_.alpha) > 1e-12 * config_.alpha) {
      alphas[one.published->module] = alpha;
    }
  }

  void factors(const Joined& one) {
    check_whole(one, "ia3");
    TensorList parts;
    std::vector<int64_t> rows;
    for (const Adapters::Entry* part : one.parts) {
      parts.push_back(dynamic_cast<const Ia3&>(*part->adapter).factors);
      rows.push_back(parts.back().size(0));
    }
    const auto& first = dynamic_cast<const Ia3&>(*one.parts[0]->adapter);
    if (first.scales() == Ia3::Scales::input) {
      check(parts.size() == 1, ErrorKind::config, "save_adapter: ", one.published->module,
            " joins maps whose inputs are scaled apart");
      add(one, "ia3_l", reshape(parts[0], {1, rows[0]}));
      return;
    }
    const Tensor all = in_published_order(concat(parts, int64_t{0}), rows, *one.published);
    add(one, "ia3_l", reshape(all, {all.size(0), 1}));
  }

  void bottleneck(const Joined& one) {
    check(one.parts.size() == 1, ErrorKind::config, "save_adapter: ", one.published->module,
          " joins several maps");
    const auto& b = dynamic_cast<const Bottleneck&>(*one.parts[0]->adapter);
    add(one, "down.weight", b.down);
    add(one, "down.bias", b.down_bias);
    add(one, "up.weight", b.up);
    add(one, "up.bias", b.up_bias);
  }

  static const Lora& lora_of(const Adapters::Entry& entry) {
    return dynamic_cast<const Lora&>(*entry.adapter);
  }
  static int64_t rows_without(const Joined& one, size_t part) { return one.published->rows[part]; }

  const PeftConfig& config_;
  TensorDict& tensors_;
};

std::string last_part(const std::string& module) { return module.substr(module.rfind('.') + 1); }

// Last parts of names where they mean the adapted modules and no others, else whole names.
std::vector<std::string> target_modules(const std::vector<Joined>& used,
                                        const PublishedMaps& maps) {
  std::set<std::string> adapted;
  for (const Joined& one : used) {
    adapted.insert(one.published->module);
  }
  std::set<std::string> partly;
  for (const PublishedMap& map : maps) {
    if (!adapted.contains(map.module)) {
      partly.insert(last_part(map.module));
    }
  }
  std::set<std::string> out;
  for (const std::string& module : adapted) {
    const std::string last = last_part(module);
    out.insert(partly.contains(last) ? module : last);
  }
  return {out.begin(), out.end()};
}

Json number(double value) {
  return value == std::floor(value) && std::abs(value) < 1e15 ? Json(static_cast<int64_t>(value))
                                                              : Json(value);
}

Json shared_keys(const std::string& type, const SaveAdapter& about,
                 const std::vector<std::string>& targets, bool transposed) {
  return {{"peft_type", type},           {"task_type", "CAUSAL_LM"},
          {"auto_mapping", nullptr},     {"base_model_name_or_path", about.base_name},
          {"revision", nullptr},         {"inference_mode", true},
          {"target_modules", targets},   {"modules_to_save", nullptr},
          {"fan_in_fan_out", transposed}};
}

Json config_of(const PeftConfig& config, const SaveAdapter& about, const std::vector<Joined>& used,
               const PublishedMaps& maps, const Writer& writer) {
  const std::vector<std::string> targets = target_modules(used, maps);
  const bool transposed = used.front().published->transposed;
  if (config.low_rank()) {
    Json out = shared_keys("LORA", about, targets, transposed);
    out["r"] = config.rank;
    out["lora_alpha"] = number(config.alpha);
    out["lora_dropout"] = config.dropout;
    out["use_rslora"] = config.rslora;
    out["use_dora"] = config.kind == "dora";
    out["bias"] = "none";
    out["init_lora_weights"] = true;
    out["rank_pattern"] = Json::object();
    for (const auto& [module, rank] : writer.ranks) {
      out["rank_pattern"][module] = rank;
    }
    out["alpha_pattern"] = Json::object();
    for (const auto& [module, alpha] : writer.alphas) {
      out["alpha_pattern"][module] = number(alpha);
    }
    for (const char* key : {"layers_to_transform", "layers_pattern", "layer_replication"}) {
      out[key] = nullptr;
    }
    return out;
  }
  if (config.kind == "ia3") {
    Json out = shared_keys("IA3", about, targets, transposed);
    std::set<std::string> inputs;
    for (const Joined& one : used) {
      const auto& ia3 = dynamic_cast<const Ia3&>(*one.parts[0]->adapter);
      if (ia3.scales() == Ia3::Scales::input) {
        const std::string& module = one.published->module;
        const bool whole = std::ranges::find(targets, module) != targets.end();
        inputs.insert(whole ? module : last_part(module));
      }
    }
    out["feedforward_modules"] = std::vector<std::string>(inputs.begin(), inputs.end());
    out["init_ia3_weights"] = true;
    return out;
  }
  Json out = shared_keys("INGOT_BOTTLENECK", about, targets, transposed);
  out["width"] = config.width;
  return out;
}

}  // namespace

void save_adapter(const Adapters& adapters, const PublishedMaps& maps,
                  const std::filesystem::path& folder, const SaveAdapter& about) {
  const NoGrad quiet;
  const std::vector<Joined> used = joined_of(adapters, maps);
  check(!used.empty(), ErrorKind::config, "save_adapter: there are no adapters to write");
  TensorDict tensors;
  Writer writer(adapters.config(), tensors);
  for (const Joined& one : used) {
    writer.write(one);
  }
  make_directories(folder);
  SafetensorsMetadata metadata = {{"format", "pt"}};
  if (!about.base_hash.empty()) {
    metadata["ingot.base_hash"] = about.base_hash;
  }
  write_safetensors(folder / "adapter_model.safetensors", tensors, metadata);
  write_file(folder / "adapter_config.json",
             config_of(adapters.config(), about, used, maps, writer).dump(2) + "\n");
}

}  // namespace ingot::peft
