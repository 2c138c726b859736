#include "ingot/models/gguf_texts.h"

#include "ingot/base/json_library.h"
#include "ingot/models/gguf_vocabulary_keys.h"

namespace ingot {
namespace {

using nlohmann::json;

constexpr std::string_view whole_tokenizer = "tokenizer.huggingface.json";  // a key of the format

json parsed(const StoredModel& model, const char* name) {
  const auto at = model.texts.find(name);
  json out = at == model.texts.end() ? json() : json::parse(at->second, nullptr, false);
  return out.is_discarded() ? json() : out;
}

bool reads_bytes(const json& config) {
  const auto at = config.is_object() ? config.find("ingot") : config.end();
  return config.is_object() && at != config.end() && at->is_object() &&
         at->value("tokens", json()) == "bytes";
}

// What generation starts from and stops at, where the folder has no generation_config.json.
json generation_of(const StoredModel& model) {
  const json own = parsed(model, "generation_config.json");
  return own.is_object() ? own : json::parse(model.published, nullptr, false);
}

void put_tokens(const StoredModel& model, GgufMetadata& out, std::vector<std::string>& lacks) {
  const json config = json::parse(model.published, nullptr, false);
  std::string why = "there is no tokenizer.json";
  if (model.texts.contains("tokenizer.json")) {
    auto tokens = to_gguf(parsed(model, "tokenizer.json"), parsed(model, "tokenizer_config.json"),
                          generation_of(model), model.config.vocab, why);
    if (tokens) {
      const auto chat = model.texts.find("chat_template.jinja");
      tokens->chat_template = chat == model.texts.end() ? tokens->chat_template : chat->second;
      gguf_vocabulary_to(*tokens, out);
      if (!tokens->eos) {
        lacks.emplace_back(
            "no end token: neither tokenizer_config.json nor generation_config.json "
            "names one");
      }
      return;
    }
    why = "tokenizer.json cannot be carried over: " + why;
  } else if (reads_bytes(config)) {
    gguf_vocabulary_to(bytes_to_gguf(model.config.vocab), out);
    lacks.emplace_back(
        "no end token and no chat template: the model reads bytes, written as the 256 "
        "letters of a gpt2 tokenizer without merges");
    return;
  }
  out.set("tokenizer.ggml.model", "no_vocab");
  lacks.push_back("no tokenizer: " + why + "; programs can run the file on token ids alone");
}

}  // namespace

void take_texts(const GgufFile& file, StoredModel& out) {
  for (const auto& [key, value] : file.metadata()) {
    const auto* text = std::get_if<std::string>(&value.value);
    if (key == whole_tokenizer && text != nullptr) {
      out.texts["tokenizer.json"] = *text;
    } else if (key.starts_with(gguf_text_prefix) && text != nullptr) {
      const std::string name = key.substr(gguf_text_prefix.size());
      // Names from a file are not trusted as paths.
      if (name.find('/') == std::string::npos && !name.starts_with('.')) {
        out.texts[name] = *text;
      }
    } else if (key.starts_with("tokenizer.")) {
      out.tokenizer.set(key, value);
    }
  }
}

std::vector<std::string> put_texts(const StoredModel& model, GgufMetadata& out) {
  std::vector<std::string> lacks;
  if (model.tokenizer.contains("tokenizer.ggml.tokens")) {
    for (const auto& [key, value] : model.tokenizer) {
      out.set(key, value);
    }
  } else {
    put_tokens(model, out, lacks);
  }
  out.set(gguf_config_key, model.published);
  for (const auto& [name, text] : model.texts) {
    out.set(name == "tokenizer.json" ? std::string(whole_tokenizer)
                                     : std::string(gguf_text_prefix) + name,
            text);
  }
  return lacks;
}

}  // namespace ingot
