#include "ingot/models/deepseek_v2.h"

#include <nlohmann/json.hpp>

#include "ingot/base/json.h"
#include "ingot/models/deepseek_layout.h"
#include "ingot/models/published_config.h"

namespace ingot {
namespace {

// "greedy" chooses among all experts, whatever n_group says.
void read_groups(const nlohmann::json& json, const std::string& file, MoeConfig& m) {
  const auto method = json_field_or<std::string>(json, "topk_method", "greedy", file);
  check(method == "greedy" || method == "group_limited_greedy", ErrorKind::config, file,
        ": topk_method '", method, "' is not known; known are greedy, group_limited_greedy");
  if (method == "greedy") {
    m.groups = 1;
    m.groups_kept = 1;
  }
  m.score = "softmax";
  m.renormalise = false;
  m.group_score = "best";
  m.correction = false;
}

DecoderConfig read(const nlohmann::json& json, const std::string& file) {
  DecoderConfig c = read_llama_words(json, file,
                                     {.vocab = 32000,
                                      .width = 4096,
                                      .layers = 32,
                                      .heads = 32,
                                      .kv_heads = 32,
                                      .hidden = 11008,
                                      .context = 2048,
                                      .norm_eps = 1e-6,
                                      .rope_base = 10000});
  c.architecture = "deepseek_v2";
  read_deepseek(json, file,
                {.experts = 64,
                 .shared = 2,
                 .top_k = 6,
                 .expert_hidden = 1407,
                 .dense_first = 0,
                 .groups = 1,
                 .groups_kept = 1,
                 .scale = 1},
                c);
  read_groups(json, file, c.moe);
  c.rope.layout = "interleaved";
  refuse_if(json_field_or<bool>(json, "mlp_bias", false, file), "mlp_bias", file);
  return completed(c, file);
}

void write(const DecoderConfig& c, nlohmann::json& out) {
  write_deepseek(c, out);
  out["architectures"] = {"DeepseekV2ForCausalLM"};
  out["model_type"] = "deepseek_v2";
  out["topk_method"] = c.moe.groups > 1 ? "group_limited_greedy" : "greedy";
  out["norm_topk_prob"] = false;
  out["scoring_func"] = "softmax";
}

std::string misfit(const DecoderConfig& c) {
  const MoeConfig& m = c.moe;
  if (const std::string other = unlike_deepseek(c); !other.empty()) {
    return other;
  }
  if (*m.score != "softmax" || *m.renormalise || *m.group_score != "best" || *m.correction ||
      c.rope.layout != "interleaved") {
    return "deepseek_v2 has softmax weights that are not renormalised, and rotates interleaved";
  }
  return "";
}

std::string spelled(const std::string& published) { return published; }

}  // namespace

Architecture deepseek_v2_architecture() {
  return {"deepseek_v2", read, write, misfit, deepseek_names, spelled};
}

}  // namespace ingot
