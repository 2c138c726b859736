#pragma once

#include "ingot/models/gguf_architecture.h"

namespace ingot {

// What most architectures of GGUF files share: sizes, rotary positions, RMS norms, gated layers.

// Vocabulary, width, layers, heads, hidden, context, norm_eps and whether the head is tied.
void read_sizes(const GgufKeys& keys, DecoderConfig& config);
void write_sizes(const DecoderConfig& config, const std::string& prefix, GgufMetadata& out);

// These, the size of heads, the window, rope and biases, into a config whose kinds are set.
void read_usual_keys(const GgufKeys& keys, DecoderConfig& config);
void write_usual_keys(const DecoderConfig& config, const std::string& prefix, GgufMetadata& out);

// attention.sliding_window, and attention.sliding_window_pattern where layers differ in it.
void read_window(const GgufKeys& keys, DecoderConfig& config);
void write_window(const DecoderConfig& config, const std::string& prefix, GgufMetadata& out);

// rope.freq_base, rope.scaling.*, and the divisors of llama3 in rope_freqs.weight.
// What has no key stays as in `rope`.
nn::RotaryConfig read_rotary(const GgufKeys& keys, int64_t head_dim, nn::RotaryConfig rope);
void write_rotary(const DecoderConfig& config, const std::string& prefix, GgufMetadata& out);
// The tensor with llama3's divisors, where the config has them.
void add_rotary_constants(const DecoderConfig& config, std::vector<GgufPair>& pairs);

struct UsualNames {
  bool interleaved = false;  // queries and keys
  float norm_added = 0;      // to the gains of norms
  bool attention = true;     // queries, keys, values and the output map
};
// Layers with experts are without gate, up and down: see add_experts.
std::vector<GgufPair> usual_pairs(const DecoderConfig& config, const UsualNames& options);
// expert_count: as many as some router has rows. Throws Error(format).
int64_t read_expert_count(const GgufKeys& keys);
// Routers with their corrections, the experts' maps stacked, and shared experts, for every layer
// that has them.
void add_experts(const DecoderConfig& config, std::vector<GgufPair>& pairs);

}  // namespace ingot
