#include "ingot/models/expert_layout.h"

#include "ingot/base/json_library.h"
#include "ingot/models/published_config.h"

namespace ingot {
namespace {

constexpr std::array<const char*, 3> usual_words = {"gate_proj", "up_proj", "down_proj"};

}  // namespace

void read_balance(const nlohmann::json& json, const std::string& file, DecoderConfig& c) {
  const ConfigKeys keys{json, file};
  const bool on = keys.flag("output_router_logits", false);
  c.moe.balance_span = "model";
  c.moe.balance = on ? keys.number("router_aux_loss_coef", 0.001) : 0.0;
}

void write_balance(const DecoderConfig& c, nlohmann::json& out) {
  out["output_router_logits"] = *c.moe.balance > 0;
  if (*c.moe.balance > 0) {
    out["router_aux_loss_coef"] = *c.moe.balance;
  }
}

LayerParts gated_parts(const std::string& theirs, const std::string& ours,
                       const std::array<const char*, 3>& words) {
  return {{theirs + "." + words[0], {ours + ".gate"}},
          {theirs + "." + words[1], {ours + ".up"}},
          {theirs + "." + words[2], {ours + ".down"}}};
}

LayerParts expert_parts(const DecoderConfig& c, int64_t layer) {
  if (!has_experts(c.moe, layer)) {
    return gated_parts("mlp", "mlp", usual_words);
  }
  LayerParts parts = {{"mlp.gate", {"moe.router"}}};
  if (*c.moe.correction) {
    parts.push_back({.theirs = "mlp.gate.e_score_correction_bias",
                     .ours = {"moe.router.correction"},
                     .whole = true});
  }
  for (int64_t e = 0; e < c.moe.experts; ++e) {
    const std::string number = std::to_string(e);
    parts = joined(std::move(parts),
                   gated_parts("mlp.experts." + number, "moe.experts." + number, usual_words));
  }
  if (c.moe.shared > 0) {
    parts = joined(std::move(parts), gated_parts("mlp.shared_experts", "moe.shared", usual_words));
  }
  return parts;
}

}  // namespace ingot
