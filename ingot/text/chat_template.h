#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ingot/text/chat_message.h"
#include "ingot/text/jinja_template.h"

namespace ingot {

struct ApplyOptions {
  bool add_generation_prompt = false;  // ends where the assistant begins to write
  jinja::Mapping extra;                // further variables, such as enable_thinking
  std::string which;                   // a named template; empty: as the conversation needs
  jinja::RenderOptions render;
};

// A model's chat template with its special tokens: it turns a conversation into the text that the
// model was trained on.
class ChatTemplate {
 public:
  // One template; `tokens` holds bos_token, eos_token and other special tokens. Generation stops at
  // eos_token and at `further_stops`.
  ChatTemplate(std::string_view source, jinja::Mapping tokens, std::string name,
               const std::vector<std::string>& further_stops = {});

  // The template of a model folder, in the order of transformers: chat_template.jinja (and named
  // ones in additional_chat_templates/*.jinja), or `chat_template` of chat_template.json or
  // tokenizer_config.json, a text or a list of named templates. Special tokens are those of
  // tokenizer_config.json, and where they are absent those of special_tokens_map.json. Throws
  // Error(io) or Error(format) that name the file and the key.
  static ChatTemplate load(const std::filesystem::path& folder);
  // The same; nothing where the folder holds none.
  static std::optional<ChatTemplate> find(const std::filesystem::path& folder);

  // The names of the templates; "default" is the one used unless another is asked for.
  // Conversations with tools use "tool_use" where there is one.
  std::vector<std::string> names() const;
  const jinja::Mapping& tokens() const { return tokens_; }
  // The templates as they were read, by name, for writing them beside a model.
  const std::vector<std::pair<std::string, std::string>>& sources() const { return sources_; }
  std::string hash() const;                        // XXH3-128 of sources and tokens
  std::string token(std::string_view name) const;  // "bos_token"; "" where there is none
  // The texts at which generation stops: eos_token, and the tokens that `eos_token_id` of
  // generation_config.json names.
  const std::vector<std::string>& stops() const { return stops_; }

  // The text of the conversation. The template sees messages, tools (none without), documents
  // (none), add_generation_prompt, the special tokens and the extra variables. Throws Error(format)
  // with the template's file and line, also where the template refuses the conversation.
  std::string apply(const Conversation& conversation, const ApplyOptions& options = {}) const;
  // The same of the messages alone, with the tools of `conversation`.
  std::string apply(std::span<const Message> messages, const jinja::Value& tools,
                    const ApplyOptions& options) const;

 private:
  ChatTemplate() = default;
  const jinja::Template& choose(const jinja::Value& tools, const std::string& which) const;

  std::vector<std::pair<std::string, jinja::Template>> templates_;
  std::vector<std::pair<std::string, std::string>> sources_;
  jinja::Mapping tokens_;
  std::vector<std::string> stops_;
};

}  // namespace ingot
