#include "ingot/text/chat_template.h"

#include <algorithm>
#include <array>

#include "ingot/base/error.h"
#include "ingot/base/files.h"
#include "ingot/base/hash.h"
#include "ingot/text/jinja_json.h"
#include "ingot/text/jinja_text.h"

namespace ingot {
namespace {

using jinja::Items;
using jinja::Mapping;
using jinja::Value;
using Sources = std::vector<std::pair<std::string, std::string>>;  // names and templates

constexpr std::array<std::string_view, 7> token_keys = {
    "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"};
constexpr std::string_view more_tokens = "additional_special_tokens";

// A token as its text: it stands as a text or as {"content": text, …}.
std::optional<std::string> token_text(const Value& token) {
  if (token.mapping() != nullptr) {
    const Value* content = token.mapping()->find("content");
    return content == nullptr ? std::nullopt : token_text(*content);
  }
  return token.text() == nullptr ? std::nullopt : std::optional(*token.text());
}

void add_tokens(const Value& file, Mapping& tokens) {
  if (file.mapping() == nullptr) {
    return;
  }
  for (const std::string_view key : token_keys) {
    const Value* found = file.mapping()->find(key);
    const std::optional<std::string> text = found == nullptr ? std::nullopt : token_text(*found);
    if (text && tokens.find(key) == nullptr) {
      tokens.set(key, *text);
    }
  }
  const Value* more = file.mapping()->find(more_tokens);
  if (more == nullptr || more->list() == nullptr || tokens.find(more_tokens) != nullptr) {
    return;
  }
  Items all;
  for (const Value& one : *more->list()) {
    if (const std::optional<std::string> text = token_text(one)) {
      all.emplace_back(*text);
    }
  }
  tokens.set(more_tokens, list_of(std::move(all)));
}

std::optional<Value> read_object(const std::filesystem::path& path) {
  if (!file_exists(path)) {
    return std::nullopt;
  }
  Value value = jinja::parse_json_value(read_file(path), path.string());
  check(value.mapping() != nullptr, ErrorKind::format, path.string(),
        ": not an object: ", jinja::type_name(value), "; is this the right file?");
  return value;
}

// `chat_template` of a configuration: a text, or a list of {"name": …, "template": …}.
Sources sources_in(const Value& file, const std::string& name) {
  const Value* found = file.mapping()->find("chat_template");
  if (found == nullptr || found->is<jinja::None>()) {
    return {};
  }
  if (found->text() != nullptr) {
    return {{"default", *found->text()}};
  }
  check(found->list() != nullptr, ErrorKind::format, name, ": chat_template: a ",
        jinja::type_name(*found), "; it is a text or a list of named templates");
  Sources out;
  for (const Value& one : *found->list()) {
    const Value* label = one.mapping() == nullptr ? nullptr : one.mapping()->find("name");
    const Value* source = one.mapping() == nullptr ? nullptr : one.mapping()->find("template");
    check(label != nullptr && label->text() != nullptr && source != nullptr &&
              source->text() != nullptr,
          ErrorKind::format, name, ": chat_template[", out.size(),
          "]: expected {\"name\": text, \"template\": text}; write both");
    out.emplace_back(*label->text(), *source->text());
  }
  return out;
}

Sources sources_in_files(const std::filesystem::path& folder) {
  Sources out;
  if (file_exists(folder / "chat_template.jinja")) {
    out.emplace_back("default", read_file(folder / "chat_template.jinja"));
  }
  const std::filesystem::path more = folder / "additional_chat_templates";
  if (!is_folder(more)) {
    return out;
  }
  for (const std::string& name : list_folder(more)) {
    if (name.ends_with(".jinja")) {
      out.emplace_back(name.substr(0, name.size() - 6), read_file(more / name));
    }
  }
  return out;
}

// `eos_token_id` of generation_config.json: a number or a list of them.
Items stop_ids(const std::filesystem::path& folder) {
  const std::optional<Value> generation = read_object(folder / "generation_config.json");
  const Value* ids = generation ? generation->mapping()->find("eos_token_id") : nullptr;
  if (ids == nullptr) {
    return {};
  }
  return ids->list() != nullptr ? *ids->list() : Items{*ids};
}

// The text of an added token: in tokenizer_config.json by its id, in tokenizer.json in a list.
std::optional<std::string> added_token(int64_t id, const Value* by_id, const Value* all) {
  if (by_id != nullptr && by_id->mapping() != nullptr) {
    const Value* found = by_id->mapping()->find(std::to_string(id));
    return found == nullptr ? std::nullopt : token_text(*found);
  }
  for (size_t i = 0; all != nullptr && all->list() != nullptr && i < all->list()->size(); ++i) {
    const Value& token = (*all->list())[i];
    const Value* own = token.mapping() == nullptr ? nullptr : token.mapping()->find("id");
    if (own != nullptr && own->integer() == id) {
      return token_text(token);
    }
  }
  return std::nullopt;
}

std::vector<std::string> stop_texts(const std::filesystem::path& folder,
                                    const std::optional<Value>& config, const std::string& eos) {
  std::vector<std::string> out;
  if (!eos.empty()) {
    out.push_back(eos);
  }
  const Items ids = stop_ids(folder);
  if (ids.empty()) {
    return out;
  }
  const Value* by_id = config ? config->mapping()->find("added_tokens_decoder") : nullptr;
  const std::optional<Value> tokenizer =
      by_id == nullptr ? read_object(folder / "tokenizer.json") : std::nullopt;
  const Value* all = tokenizer ? tokenizer->mapping()->find("added_tokens") : nullptr;
  for (const Value& id : ids) {
    const std::optional<int64_t> number = id.integer();
    const std::optional<std::string> text =
        number ? added_token(*number, by_id, all) : std::nullopt;
    if (text && !text->empty() && std::find(out.begin(), out.end(), *text) == out.end()) {
      out.push_back(*text);
    }
  }
  return out;
}

// Texts that did not come through a JSON reader may hold anything.
void check_texts(const Value& value, const std::string& where) {
  if (const std::string* text = value.text()) {
    jinja::check_utf8(*text, where);
  } else if (const Items* items = value.list()) {
    for (const Value& item : *items) {
      check_texts(item, where);
    }
  } else if (const Mapping* mapping = value.mapping()) {
    for (const auto& [key, held] : mapping->items()) {
      check_texts(key, where);
      check_texts(held, where);
    }
  }
}

}  // namespace

ChatTemplate::ChatTemplate(std::string_view source, Mapping tokens, std::string name,
                           const std::vector<std::string>& further_stops)
    : tokens_(std::move(tokens)) {
  templates_.emplace_back("default", jinja::Template(source, std::move(name)));
  sources_.emplace_back("default", source);
  if (const std::string eos = token("eos_token"); !eos.empty()) {
    stops_.push_back(eos);
  }
  for (const std::string& stop : further_stops) {
    if (!stop.empty() && std::find(stops_.begin(), stops_.end(), stop) == stops_.end()) {
      stops_.push_back(stop);
    }
  }
}

std::optional<ChatTemplate> ChatTemplate::find(const std::filesystem::path& folder) {
  check(is_folder(folder), ErrorKind::io, folder.string(),
        ": no such folder; name a model folder with tokenizer_config.json");
  ChatTemplate out;
  const std::optional<Value> config = read_object(folder / "tokenizer_config.json");
  for (const auto& file : {config, read_object(folder / "special_tokens_map.json")}) {
    if (file) {
      add_tokens(*file, out.tokens_);
    }
  }
  out.stops_ = stop_texts(folder, config, out.token("eos_token"));
  std::string file = "chat_template.jinja";
  Sources sources = sources_in_files(folder);
  if (sources.empty()) {
    file = "chat_template.json";
    const std::optional<Value> processor = read_object(folder / file);
    sources = processor ? sources_in(*processor, (folder / file).string()) : Sources();
  }
  if (sources.empty() && config) {
    file = "tokenizer_config.json";
    sources = sources_in(*config, (folder / file).string());
  }
  if (sources.empty()) {
    return std::nullopt;
  }
  for (auto& [name, source] : sources) {
    const std::string label = name == "default" ? file : concat(file, " (", name, ")");
    out.templates_.emplace_back(name, jinja::Template(source, (folder / label).string()));
  }
  out.sources_ = std::move(sources);
  return out;
}

std::string ChatTemplate::hash() const {
  std::string all;
  for (const auto& [name, source] : sources_) {
    all += concat(name, '\0', source, '\0');
  }
  for (const auto& [name, value] : tokens_.items()) {
    all += concat(name.text() != nullptr ? *name.text() : "", '\0',
                  value.text() != nullptr ? *value.text() : "", '\0');
  }
  return hash_hex(all);
}

ChatTemplate ChatTemplate::load(const std::filesystem::path& folder) {
  std::optional<ChatTemplate> out = find(folder);
  check(out, ErrorKind::format, folder.string(),
        ": no chat template: neither chat_template.jinja, chat_template.json nor "
        "tokenizer_config.json holds one; a base model has none, add chat_template.jinja");
  return *std::move(out);
}

std::vector<std::string> ChatTemplate::names() const {
  std::vector<std::string> out;
  for (const auto& [name, held] : templates_) {
    out.push_back(name);
  }
  return out;
}

std::string ChatTemplate::token(std::string_view name) const {
  const Value* found = tokens_.find(name);
  return found == nullptr || found->text() == nullptr ? "" : *found->text();
}

const jinja::Template& ChatTemplate::choose(const Value& tools, const std::string& which) const {
  const auto find = [this](std::string_view name) {
    return std::find_if(templates_.begin(), templates_.end(),
                        [name](const auto& one) { return one.first == name; });
  };
  auto found = find(which.empty() ? (tools.is<jinja::None>() ? "default" : "tool_use") : which);
  if (found == templates_.end() && which.empty()) {
    found = find("default");
  }
  if (found == templates_.end()) {
    std::string known;
    for (const std::string& name : names()) {
      known += (known.empty() ? "" : ", ") + name;
    }
    throw Error(ErrorKind::config, concat("chat template '", which.empty() ? "default" : which,
                                          "': the model has none of this name; it has ", known));
  }
  return found->second;
}

std::string ChatTemplate::apply(const Conversation& conversation,
                                const ApplyOptions& options) const {
  return apply(conversation.messages, conversation.tools, options);
}

std::string ChatTemplate::apply(std::span<const Message> messages, const Value& tools,
                                const ApplyOptions& options) const {
  Items all;
  for (const Message& message : messages) {
    all.push_back(dict_of(message.fields));
    check_texts(all.back(), concat("messages[", all.size() - 1, "]"));
  }
  check_texts(tools, "tools");
  Mapping variables = tokens_;
  variables.set("messages", list_of(std::move(all)));
  variables.set("tools", tools);
  variables.set("documents", Value());
  variables.set("add_generation_prompt", options.add_generation_prompt);
  for (const auto& [name, value] : options.extra.items()) {
    variables.set(name, value);
    check_texts(value, "extra variables");
  }
  return choose(tools, options.which).render(variables, options.render);
}

}  // namespace ingot
