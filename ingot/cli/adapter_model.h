#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "ingot/models/decoder.h"
#include "ingot/models/stored_model.h"
#include "ingot/peft/published.h"

namespace ingot {

// Adapters joined to models of published architectures.

// The names of a model's linear maps as its architecture publishes them.
peft::PublishedMaps published_maps(const Decoder& model);

// What tells the weights of a model on disk from others: XXH3-128 of its tensors by name, or of the
// whole file.
std::string base_hash(const std::filesystem::path& model);

// One adapter to put onto a model, and how much of it: "PATH" or "PATH=0.5".
struct AdapterChoice {
  std::string path;
  double weight = 1;
};
// Throws Error(config) where what follows the last '=' is no number (a path may hold others).
AdapterChoice adapter_choice(const std::string& text);

// Adapters of `choices` on a model, in their order. `hash`: of the model's weights; empty:
// whichever base they were made for is accepted. The model must outlive them.
std::vector<std::unique_ptr<peft::Adapters>> put_on(Decoder& model,
                                                    const std::vector<AdapterChoice>& choices,
                                                    const std::string& hash);

// Writes a lora adapter as a GGUF file that llama.cpp takes beside its base (--lora): for each map
// NAME.lora_a [r, In] and NAME.lora_b [Out, r], in f32. `model_type` names the architecture. Throws
// Error(config) for other kinds, and for maps that GGUF files hold stacked (experts).
void write_gguf_adapter(const peft::Adapters& adapters, const Decoder& model,
                        const std::string& model_type, const std::filesystem::path& path);

}  // namespace ingot
