#include "ingot/cli/sample.h"

#include "ingot/base/json_library.h"

namespace ingot {

Tokens byte_tokens(std::string_view text) {
  Tokens out;
  for (const char letter : text) {
    out.push_back(static_cast<uint8_t>(letter));
  }
  return out;
}

std::string byte_text(std::span<const int64_t> tokens) {
  std::string out;
  for (const int64_t token : tokens) {
    if (token >= 0 && token < 256) {
      out += static_cast<char>(token);
    }
  }
  return out;
}

bool reads_bytes(const std::string& config) {
  const nlohmann::json read = nlohmann::json::parse(config, nullptr, false);
  const auto ours = read.is_object() ? read.find("ingot") : read.end();
  return read.is_object() && ours != read.end() && ours->is_object() &&
         ours->value("tokens", nlohmann::json()) == "bytes";
}

std::string sample_text(const Decoder& model, const TextCodec& codec, const SampleConfig& config,
                        uint64_t seed, const ChatTemplate* chat) {
  std::string prompt = config.prompt.empty() ? "\n" : config.prompt;
  EncodeOptions reading{.add_special = true};
  if (chat != nullptr && !config.prompt.empty()) {
    ApplyOptions apply;
    apply.add_generation_prompt = true;
    prompt = chat->apply({{make_message("user", config.prompt)}, {}}, apply);
    reading = {.add_special = false, .parse_special = true};
  }
  GenerateConfig settings;
  settings.max_tokens = config.tokens;
  settings.seed = static_cast<int64_t>(seed);
  settings.sampling.temperature = config.temperature;
  settings.stop_tokens = codec.stops();
  return prompt + codec.text(generate(model, {codec.prompt(prompt, reading)}, settings)[0]);
}

}  // namespace ingot
