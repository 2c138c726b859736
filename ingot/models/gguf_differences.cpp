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
  if (plain.latent.kv_rank > 0 && *plain.norm_eps != latent_eps) {
    out.push_back(concat("llama.cpp has one eps for all norms, ", *plain.norm_eps,
                         "; the norms of the latents have ", latent_eps));
  }
  return out;
}

}  // namespace ingot
