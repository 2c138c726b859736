#include "ingot/models/deepseek_v3.h"

#include "ingot/base/json_library.h"
#include "ingot/models/deepseek_layout.h"
#include "ingot/models/published_config.h"

namespace ingot {
namespace {

DecoderConfig deepseek_v3_start() {
  DecoderConfig c;
  c.architecture = "deepseek_v3";
  c.moe.experts = 8;
  c.moe.score = "sigmoid";
  c.moe.group_score = "best_two";
  c.moe.correction = true;
  return c;
}

DecoderConfig read_deepseek_v3(const nlohmann::json& json, const std::string& file) {
  DecoderConfig c = deepseek_v3_start();
  read_usual(json, file,
             {.vocab = 129280,
              .width = 7168,
              .hidden = 18432,
              .layers = 61,
              .heads = 128,
              .kv_heads = 128,
              .context = 4096},
             c);
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
  const ConfigKeys keys{json, file};
  const std::string score = keys.text("scoring_func", "sigmoid");
  check(score == "sigmoid", ErrorKind::config, file, ": scoring_func '", score,
        "' is not known; known is sigmoid");
  c.moe.renormalise = keys.flag("norm_topk_prob", true);
  c.rope.layout = keys.flag("rope_interleave", true) ? "interleaved" : "half_split";
  c.mtp.depth = keys.integer("num_nextn_predict_layers", 0, 0);
  return complete(c);
}

void write_deepseek_v3(const DecoderConfig& c, nlohmann::json& out) {
  write_deepseek(c, "deepseek_v3", "DeepseekV3ForCausalLM", out);
  out["topk_method"] = "noaux_tc";
  out["scoring_func"] = "sigmoid";
  out["norm_topk_prob"] = *c.moe.renormalise;
  out["rope_interleave"] = c.rope.layout == "interleaved";
  if (c.mtp.depth > 0 || out.contains("num_nextn_predict_layers")) {
    out["num_nextn_predict_layers"] = c.mtp.depth;
  }
}

// A head counts as a layer after the last, and repeats the tables that it shares.
void add_head(const DecoderConfig& c, int64_t k, NameMap& map) {
  const std::string theirs = concat("model.layers.", c.layers + k, ".");
  const std::string ours = concat("mtp.", k, ".");
  for (const auto& [their, our] : {std::pair{"enorm", "embedding_norm"},
                                   {"hnorm", "hidden_norm"},
                                   {"eh_proj", "join"},
                                   {"shared_head.norm", "norm"}}) {
    map.pairs.push_back({concat(theirs, their, ".weight"), {concat(ours, our, ".weight")}});
  }
  add_layer(theirs, ours + "layer.", deepseek_parts(c, c.layers + k), map);
  map.repeated.push_back({theirs + "embed_tokens.weight", {"embedding.weight"}});
  map.repeated.push_back(
      {theirs + "shared_head.head.weight", {*c.tied ? "embedding.weight" : "head.weight"}});
}

NameMap deepseek_v3_names(const DecoderConfig& c) {
  NameMap map = deepseek_names(c);
  for (int64_t k = 0; k < c.mtp.depth; ++k) {
    add_head(c, k, map);
  }
  return map;
}

}  // namespace

Architecture deepseek_v3_architecture() {
  return {"deepseek_v3",     read_deepseek_v3, write_deepseek_v3,
          deepseek_v3_names, llama_spelled,    deepseek_v3_start};
}

}  // namespace ingot
