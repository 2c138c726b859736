#include "ingot/models/deepseek_v3.h"

#include <nlohmann/json.hpp>

#include "ingot/base/json.h"
#include "ingot/models/deepseek_layout.h"

namespace ingot {
namespace {

DecoderConfig read(const nlohmann::json& json, const std::string& file) {
  DecoderConfig c = read_llama_words(json, file,
                                     {.vocab = 129280,
                                      .width = 7168,
                                      .layers = 61,
                                      .heads = 128,
                                      .kv_heads = 128,
                                      .hidden = 18432,
                                      .context = 4096,
                                      .norm_eps = 1e-6,
                                      .rope_base = 10000});
  c.architecture = "deepseek_v3";
  read_deepseek(json, file,
                {.experts = 256,
                 .shared = 1,
                 .top_k = 8,
                 .expert_hidden = 2048,
                 .dense_first = 3,
                 .groups = 8,
                 .groups_kept = 4,
                 .scale = 2.5},
                c);
  const auto score = json_field_or<std::string>(json, "scoring_func", "sigmoid", file);
  check(score == "sigmoid", ErrorKind::config, file, ": scoring_func '", score,
        "' is not known; known is sigmoid");
  c.moe.score = "sigmoid";
  c.moe.renormalise = json_field_or<bool>(json, "norm_topk_prob", true, file);
  c.moe.group_score = "best_two";
  c.moe.correction = true;
  const bool interleaved = json_field_or<bool>(json, "rope_interleave", true, file);
  c.rope.layout = interleaved ? "interleaved" : "half_split";
  return completed(c, file);
}

void write(const DecoderConfig& c, nlohmann::json& out) {
  write_deepseek(c, out);
  out["architectures"] = {"DeepseekV3ForCausalLM"};
  out["model_type"] = "deepseek_v3";
  out["topk_method"] = "noaux_tc";
  out["scoring_func"] = "sigmoid";
  out["norm_topk_prob"] = *c.moe.renormalise;
  out["rope_interleave"] = c.rope.layout == "interleaved";
  if (out.contains("num_nextn_predict_layers")) {
    out["num_nextn_predict_layers"] = 0;
  }
}

std::string misfit(const DecoderConfig& c) {
  const MoeConfig& m = c.moe;
  if (const std::string other = unlike_deepseek(c); !other.empty()) {
    return other;
  }
  if (*m.score != "sigmoid" || !*m.correction || (m.groups > 1 && *m.group_score != "best_two")) {
    return "deepseek_v3 has sigmoid weights, a correction and groups scored by their best two";
  }
  return "";
}

NameMap names(const DecoderConfig& c) {
  NameMap map = deepseek_names(c);
  map.ignored.push_back(concat("model.layers.", c.layers, ".**"));
  return map;
}

std::string spelled(const std::string& published) { return published; }

}  // namespace

Architecture deepseek_v3_architecture() {
  return {"deepseek_v3", read, write, misfit, names, spelled};
}

}  // namespace ingot
