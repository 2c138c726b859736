#include "ingot/cli/loaded_model.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "ingot/base/files.h"
#include "ingot/cli/adapter_model.h"
#include "ingot/cli/model_source.h"

namespace ingot {
namespace {

// A character that no text of a message holds (the last of Unicode's private ones), put within the
// spelling of a special token so that it is not found.
constexpr std::string_view mark = "\U0010FFFD";

std::vector<std::string> special_spellings(const Tokenizer& tokenizer) {
  std::vector<std::string> out;
  for (const AddedToken& token : tokenizer.spec().added) {
    if (token.special && !token.content.empty()) {
      out.push_back(token.content);
    }
  }
  return out;
}

// The text with a mark behind the first character of every special token spelled in it.
std::string marked(std::string text, const std::vector<std::string>& specials) {
  for (size_t at = 0; (at = text.find(mark, at)) != std::string::npos;) {
    text.erase(at, mark.size());
  }
  for (const std::string& special : specials) {
    const size_t first = utf8_char(special.data()).bytes;
    for (size_t at = 0; (at = text.find(special, at)) != std::string::npos; at += first) {
      text.insert(at + first, mark);
    }
  }
  return text;
}

// All texts within a value.
jinja::Value marked(const jinja::Value& value, const std::vector<std::string>& specials) {
  if (const std::string* text = value.text()) {
    return {marked(*text, specials)};
  }
  if (const jinja::Items* items = value.list()) {
    jinja::Items out;
    for (const jinja::Value& item : *items) {
      out.push_back(marked(item, specials));
    }
    return list_of(std::move(out));
  }
  if (const jinja::Mapping* mapping = value.mapping()) {
    jinja::Mapping out;
    for (const auto& [key, held] : mapping->items()) {
      out.set(key, marked(held, specials));
    }
    return dict_of(std::move(out));
  }
  return value;
}

Conversation marked(const Conversation& conversation, const Tokenizer& tokenizer) {
  const std::vector<std::string> specials = special_spellings(tokenizer);
  Conversation out = conversation;
  for (Message& message : out.messages) {
    jinja::Mapping fields;
    for (const auto& [key, value] : message.fields.items()) {
      fields.set(key, marked(value, specials));
    }
    message.fields = std::move(fields);
  }
  out.tools = marked(conversation.tools, specials);
  return out;
}

}  // namespace

void add_model_options(CLI::App& verb, ModelArguments& arguments) {
  verb.add_option("model", arguments.path,
                  "folder with config.json and model.safetensors, or a GGUF file")
      ->required();
  verb.add_option("--dtype", arguments.dtype, "compute in this type (default: the file's)")
      ->check(CLI::IsMember({"f32", "bf16", "f16"}));
  verb.add_option("--lora", arguments.adapters,
                  "folder of an adapter in PEFT's layout, or FOLDER=WEIGHT; any number of times");
  verb.add_flag("--int8", arguments.int8,
                "keep the weights of linear maps in 8 bits: half the memory");
  verb.add_option("--kv", arguments.kv,
                  "keep keys and values in the model's type (model) or in 8 bits with a scale for "
                  "each token and head (int8)")
      ->check(CLI::IsMember({"model", "int8"}));
}

const TextCodec& LoadedModel::text() const {
  check(codec, ErrorKind::config, name,
        ": it holds no tokenizer and does not say that this model reads bytes; put tokenizer.json "
        "into the folder, or give token ids with --ids");
  return *codec;
}

std::vector<int64_t> LoadedModel::stops() const {
  std::vector<int64_t> out = codec ? codec->stops() : std::vector<int64_t>();
  const Tokenizer* tokenizer = codec ? codec->tokenizer() : nullptr;
  if (chat && tokenizer != nullptr) {
    for (const std::string& stop : chat->stops()) {
      const auto id = tokenizer->id_of(stop);
      if (id && std::find(out.begin(), out.end(), *id) == out.end()) {
        out.push_back(*id);
      }
    }
  }
  return out;
}

LoadedModel load_model(const ModelArguments& arguments) {
  std::optional<DType> dtype;
  if (!arguments.dtype.empty()) {
    dtype = dtype_named(arguments.dtype);
  }
  LoadedModel out;
  const std::filesystem::path path = std::filesystem::path(arguments.path).lexically_normal();
  out.name =
      path.has_filename() ? path.filename().string() : path.parent_path().filename().string();
  if (is_folder(arguments.path)) {
    Pretrained folder = load_pretrained(arguments.path, dtype);
    if (arguments.text) {
      out.codec = codec_of(arguments.path, folder.config, folder.model->config().vocab);
      out.chat = ChatTemplate::find(arguments.path);
    }
    out.model = std::move(folder.model);
  } else {
    const StoredModel file = open_model(arguments.path);
    if (arguments.text) {
      out.codec = codec_of(file, arguments.path);
      out.chat = stored_chat_template(file, arguments.path);
    }
    out.model = load_stored(file, dtype).model;
  }
  std::vector<AdapterChoice> choices;
  for (const std::string& text : arguments.adapters) {
    choices.push_back(adapter_choice(text));
  }
  if (!choices.empty()) {
    out.adapters = put_on(*out.model, choices, base_hash(arguments.path));
  }
  if (arguments.int8) {
    out.model->to_int8();
  }
  return out;
}

Tokens chat_tokens(const LoadedModel& loaded, const Conversation& conversation,
                   const jinja::Mapping& extra) {
  check(loaded.chat, ErrorKind::config, loaded.name,
        ": it has no chat template and so was not trained to converse; give a plain prompt, or add "
        "chat_template.jinja to its folder");
  const Tokenizer* tokenizer = loaded.text().tokenizer();
  ApplyOptions options;
  options.add_generation_prompt = true;
  options.extra = extra;
  Tokens out;
  if (tokenizer == nullptr) {
    return loaded.text().prompt(loaded.chat->apply(conversation, options));
  }
  const std::string text = loaded.chat->apply(marked(conversation, *tokenizer), options);
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(mark, at), text.size());
    for (const TokenId id :
         tokenizer->encode(std::string_view(text).substr(at, end - at), {.parse_special = true})) {
      out.push_back(id);
    }
    at = end + mark.size();
  }
  return out;
}

Truncate truncate_named(const std::string& name) {
  return name == "left" ? Truncate::left : name == "right" ? Truncate::right : Truncate::refuse;
}

Tokens fitted(Tokens tokens, Truncate truncate, int64_t context, int64_t room,
              const std::string& prompt) {
  const auto size = static_cast<int64_t>(tokens.size());
  if (size <= context) {
    return tokens;
  }
  check(truncate != Truncate::refuse, ErrorKind::config, prompt,
        " is longer than the model's context: ", size, " tokens, context ", context,
        "; shorten it, or give --truncate left or right");
  const int64_t kept = context - std::min(room, context / 2);
  if (truncate == Truncate::left) {
    tokens.erase(tokens.begin(), tokens.end() - kept);
  } else {
    tokens.resize(static_cast<size_t>(kept));
  }
  return tokens;
}

}  // namespace ingot
