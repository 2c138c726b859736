#pragma once

#include <string>
#include <vector>

#include "ingot/cli/loaded_model.h"
#include "ingot/generate/generate.h"

namespace ingot {

// How tokens are drawn and where texts end, as the command line says it.
struct SamplingArguments {
  GenerateConfig config;
  std::vector<std::string> stop_texts;
  std::vector<std::string> bias;    // "ID=VALUE"
  std::vector<std::string> banned;  // words
};
void add_sampling_options(CLI::App& verb, SamplingArguments& arguments);

// The settings for a model: with its own stop tokens where none are given, the biases read, and the
// banned words as its tokens. Throws Error(config) naming the option.
GenerateConfig settings_for(const SamplingArguments& arguments, const LoadedModel& loaded);

// A word as every sequence of tokens that stands for it at the beginning of a text or behind a
// space. Sequences that spell it otherwise (as parts of longer tokens) are not found.
std::vector<Tokens> banned_sequences(const TextCodec& codec, const std::string& word);

}  // namespace ingot
