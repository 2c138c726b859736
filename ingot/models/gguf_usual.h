#pragma once

#include "ingot/models/gguf_architecture.h"

namespace ingot {

// What most architectures of GGUF files share: sizes, rotary positions, RMS norms, gated layers.

// Sizes, norm_eps, rope and whether the head is tied, into a config whose kinds are set.
void read_usual_keys(const GgufKeys& keys, DecoderConfig& config);
void write_usual_keys(const DecoderConfig& config, const std::string& prefix, GgufMetadata& out);

// rope.freq_base, rope.scaling.*, and the divisors of llama3 in rope_freqs.weight.
// What has no key stays as in `rope`.
nn::RotaryConfig read_rotary(const GgufKeys& keys, int64_t head_dim, nn::RotaryConfig rope);
void write_rotary(const DecoderConfig& config, const std::string& prefix, GgufMetadata& out);
// The tensor with llama3's divisors, where the config has them.
void add_rotary_constants(const DecoderConfig& config, std::vector<GgufPair>& pairs);

struct UsualNames {
  bool interleaved = false;  // queries and keys
  float norm_added = 0;      // to the gains of norms
  bool mlp = true;           // gate, up and down of every layer
};
std::vector<GgufPair> usual_pairs(const DecoderConfig& config, const UsualNames& options);
// Routers, and the experts' maps stacked, for every layer.
void add_experts(const DecoderConfig& config, std::vector<GgufPair>& pairs);

}  // namespace ingot
