#include "ingot/models/gguf_architecture.h"

namespace ingot {
namespace {

constexpr double latent_eps = 1e-6;  // of nn::LatentAttention

}  // namespace

std::vector<std::string> gguf_differences(const GgufArchitecture& row, const DecoderConfig& c) {
  std::vector<std::string> out;
  const DecoderConfig plain = plainest(c);
  if (plain.window > 0 && !row.windows) {
    out.push_back(concat("llama.cpp computes no window for ", row.name, ": beyond a text's first ",
                         plain.window, " tokens its results are another model's"));
  }
  if (plain.rope.scaling == "longrope") {
    out.push_back(
        concat("llama.cpp chooses between the short and the long divisors by the size of "
               "its context, not of the text: a text of up to ",
               plain.rope.original_context, " tokens needs a context no longer"));
  }
  const bool lite = c.layers == 26 || c.layers == 27;
  if (plain.latent.kv_rank > 0 && plain.latent.q_rank == 0 && !lite) {
    out.emplace_back(
        "llama.cpp loads deepseek2 without q_lora_rank only where it has 26 or 27 layers");
  }
  if (plain.latent.kv_rank > 0 && *plain.norm_eps != latent_eps) {
    out.push_back(concat("llama.cpp has one eps for all norms, ", *plain.norm_eps,
                         "; the norms of the latents have ", latent_eps));
  }
  return out;
}

}  // namespace ingot
