#include "ingot/models/deepseek_v2.h"

#include "ingot/base/json_library.h"
#include "ingot/models/deepseek_layout.h"
#include "ingot/models/published_config.h"

namespace ingot {
namespace {

DecoderConfig deepseek_v2_start() {
  DecoderConfig c;
  c.architecture = "deepseek_v2";
  c.rope.layout = "interleaved";
  c.moe.experts = 8;
  c.moe.renormalise = false;
  return c;
}

// "greedy" chooses among all experts, whatever n_group says.
void read_groups(const nlohmann::json& json, const std::string& file, MoeConfig& m) {
  const std::string method = ConfigKeys{json, file}.text("topk_method", "greedy");
  check(method == "greedy" || method == "group_limited_greedy", ErrorKind::config, file,
        ": topk_method '", method, "' is not known; known are greedy, group_limited_greedy");
  if (method == "greedy") {
    m.groups = 1;
    m.groups_kept = 1;
  }
  m.group_score = "best";
}

DecoderConfig read_deepseek_v2(const nlohmann::json& json, const std::string& file) {
  DecoderConfig c = deepseek_v2_start();
  read_usual(json, file,
             {.vocab = 32000,
              .width = 4096,
              .hidden = 11008,
              .layers = 32,
              .heads = 32,
              .kv_heads = 32,
              .context = 2048},
             c);
  c.rope.layout = "interleaved";
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
  refuse_if(ConfigKeys{json, file}.flag("mlp_bias", false), "mlp_bias", file);
  return complete(c);
}

void write_deepseek_v2(const DecoderConfig& c, nlohmann::json& out) {
  write_deepseek(c, "deepseek_v2", "DeepseekV2ForCausalLM", out);
  out["topk_method"] = c.moe.groups > 1 ? "group_limited_greedy" : "greedy";
  out["norm_topk_prob"] = false;
  out["scoring_func"] = "softmax";
}

}  // namespace

Architecture deepseek_v2_architecture() {
  return {"deepseek_v2",  read_deepseek_v2, write_deepseek_v2,
          deepseek_names, llama_spelled,    deepseek_v2_start};
}

}  // namespace ingot
