#include "ingot/peft/adapters.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ingot/autograd/record.h"
#include "ingot/base/edit_distance.h"
#include "ingot/ops/elementwise.h"
#include "ingot/peft/bottleneck.h"
#include "ingot/peft/dora.h"
#include "ingot/peft/ia3.h"
#include "ingot/tensor/copy.h"

namespace ingot::peft {
namespace {

using Maps = std::vector<std::pair<std::string, nn::Linear*>>;

std::string last_part(const std::string& path) { return path.substr(path.rfind('.') + 1); }

[[noreturn]] void refuse_target(const std::string& target, const Maps& maps) {
  std::vector<std::string> words;
  for (const auto& [path, map] : maps) {
    words.push_back(path);
    words.push_back(last_part(path));
  }
  throw Error(ErrorKind::config,
              concat("peft.targets: '", target, "' matches none of the ", maps.size(),
                     " linear maps; the nearest is '", nearest_word(target, words), "'"));
}

// Targets that a recipe names must each mean something; of the defaults one is enough.
void check_targets(const std::vector<std::string>& targets, bool named, const Maps& maps) {
  bool any = false;
  for (const std::string& target : targets) {
    const bool meant = std::ranges::any_of(
        maps, [&](const auto& entry) { return is_target(target, entry.first); });
    if (named && !meant) {
      refuse_target(target, maps);
    }
    any = any || meant;
  }
  if (!any) {
    refuse_target(targets.front(), maps);
  }
}

// "layers.*.attention.wq" for a path, so that equal maps of all layers count as one.
std::string without_numbers(const std::string& path) {
  std::string out;
  for (size_t start = 0; start <= path.size();) {
    const size_t end = std::min(path.find('.', start), path.size());
    const std::string part = path.substr(start, end - start);
    const bool number = part.find_first_not_of("0123456789") == std::string::npos;
    out += (out.empty() ? "" : ".") + (number ? "*" : part);
    start = end + 1;
  }
  return out;
}

std::string listed(const std::vector<std::string>& paths) {
  std::vector<std::string> kinds;
  for (const std::string& path : paths) {
    const std::string kind = without_numbers(path);
    if (std::ranges::find(kinds, kind) == kinds.end()) {
      kinds.push_back(kind);
    }
  }
  std::string out;
  for (const std::string& kind : kinds) {
    out += (out.empty() ? "" : ", ") + kind;
  }
  return out;
}

bool all_zero(const Tensor& x) {
  const Tensor wide = dense(converted(detach(x), DType::f32));
  return std::ranges::all_of(wide.values<float>(), [](float value) { return value == 0; });
}

}  // namespace

std::vector<std::string> targets_of(const PeftConfig& config) {
  if (!config.targets.empty()) {
    return config.targets;
  }
  if (config.kind == "ia3") {
    return {"layers.**.wk", "layers.**.wv", "layers.**.down"};
  }
  if (config.kind == "bottleneck") {
    return {"layers.**.wo", "layers.**.down"};
  }
  return {"layers.**"};
}

bool is_target(const std::string& target, const std::string& path) {
  return matches(target, path) || (path.size() > target.size() && path.ends_with(target) &&
                                   path[path.size() - target.size() - 1] == '.');
}

std::string Coverage::text(const std::string& kind) const {
  const double share = 100 * static_cast<double>(trained) /
                       static_cast<double>(std::max<int64_t>(1, trained + frozen));
  return fmt::format("{} on {} of {} linear maps ({}){}; {} of {} parameters are trained, {:.2g} %",
                     kind, maps.size(), maps.size() + rest.size(), listed(maps),
                     rest.empty() ? "" : ", not on " + listed(rest), trained, trained + frozen,
                     share);
}

Adapters::Adapters(nn::Module& model, const PeftConfig& config, const Options& options)
    : name_(options.name), config_(config), state_(std::make_shared<AdapterState>()) {
  state_->randomness = options.randomness;
  const Maps maps = nn::linear_maps(model);
  check(!maps.empty(), ErrorKind::config, "peft: the model has no linear maps");
  const std::vector<std::string> targets = targets_of(config);
  check_targets(targets, !config.targets.empty(), maps);
  for (const auto& [path, map] : maps) {
    const bool wanted = std::ranges::any_of(
        targets, [&, &at = path](const std::string& target) { return is_target(target, at); });
    if (!wanted) {
      coverage_.rest.push_back(path);
      continue;
    }
    coverage_.maps.push_back(path);
    entries_.push_back({path, map, make(path, *map, options)});
    map->adapters.push_back(entries_.back().adapter);
  }
  coverage_.trained = count();
  coverage_.frozen = model.count();
  for (const auto& [path, map] : maps) {  // kept in few bits, they are no parameters
    coverage_.frozen += map->weight.defined() ? 0 : map->in_features() * map->out_features();
  }
}

Adapters::~Adapters() { take_off(); }

std::shared_ptr<Adapter> Adapters::make(const std::string& path, const nn::Linear& map,
                                        const Options& o) const {
  const AdapterSeed seed{o.seed, name_ + "/" + path};
  LoraOptions lora{config_.rank, config_.alpha, config_.rslora, config_.dropout};
  if (const auto own = o.per_map.find(path); own != o.per_map.end()) {
    lora.rank = own->second.rank;
    lora.alpha = own->second.alpha;
  }
  if (config_.kind == "lora") {
    return std::make_shared<Lora>(map, lora, seed, o.dtype, o.device, state_);
  }
  if (config_.kind == "dora") {
    return std::make_shared<Dora>(map, lora, seed, o.dtype, o.device, state_,
                                  config_.dora_whole_gradient);
  }
  if (config_.kind == "ia3") {
    const bool input = last_part(path) == "down";
    return std::make_shared<Ia3>(map, input ? Ia3::Scales::input : Ia3::Scales::output, o.dtype,
                                 o.device, state_);
  }
  check(config_.kind == "bottleneck", ErrorKind::config, "peft.kind: '", config_.kind,
        "' is none of lora, dora, ia3, bottleneck");
  return std::make_shared<Bottleneck>(map, config_.width, seed, o.dtype, o.device, state_);
}

void Adapters::visit(nn::Visitor& v) {
  for (Entry& entry : entries_) {
    v(entry.path, *entry.adapter);
  }
}

void Adapters::take_off() {
  for (const Entry& entry : entries_) {
    std::erase_if(entry.map->adapters, [&](const auto& one) { return one == entry.adapter; });
  }
}

void Adapters::merge() {
  const NoGrad quiet;
  for (const Entry& entry : entries_) {
    nn::Linear& map = *entry.map;
    check(map.weight.defined(), ErrorKind::config, entry.path,
          ": its weight is kept in few bits and cannot take an adapter in; load the base in f32 or "
          "bf16 to merge");
    const DType wide = accumulator(map.weight.dtype());
    const auto merged = entry.adapter->merged({converted(detach(map.weight), wide), map.bias});
    copy_into(map.weight, merged.weight);
    if (map.bias.defined()) {
      copy_into(map.bias, merged.bias);
    }
  }
  take_off();
  entries_.clear();
}

void Adapters::check_learning(int64_t steps) const {
  std::vector<std::string> still;
  for (const Entry& entry : entries_) {
    const auto* lora = dynamic_cast<const Lora*>(entry.adapter.get());
    if (lora != nullptr && all_zero(lora->b)) {
      still.push_back(entry.path);
    }
  }
  check(still.empty(), ErrorKind::numeric, "peft: after ", steps, " steps B is still 0 in ",
        still.size(), " of ", entries_.size(), " adapters: ", listed(still),
        "; nothing reaches them: raise the learning rate, or see what their outputs are used for");
}

}  // namespace ingot::peft
