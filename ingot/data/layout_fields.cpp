#include "ingot/data/layout_fields.h"

#include <fmt/format.h>

#include "ingot/data/chat_roles.h"
#include "ingot/text/jinja_json.h"
#include "ingot/text/jinja_text.h"

namespace ingot::fields {
namespace {

using jinja::Items;

std::string spelled(std::initializer_list<std::string_view> keys) {
  std::string out;
  for (const std::string_view key : keys) {
    out += concat(out.empty() ? "" : " or ", "\"", key, "\"");
  }
  return out;
}

// ShareGPT's call: {"name": …, "arguments": {…}} as a text, or a list of such.
Value tool_calls_of(const Value& value, const std::string& place) {
  Value parsed = value;
  if (value.text() != nullptr) {
    try {
      parsed = jinja::parse_json_value(*value.text(), place);
    } catch (const Error& error) {
      throw RowError(
          RowFault::conversation,
          concat(place, ": the call is not JSON; write {\"name\": …, \"arguments\": {…}}"));
    }
  }
  const Items calls = parsed.list() != nullptr ? *parsed.list() : Items{parsed};
  Items out;
  for (const Value& call : calls) {
    const bool good = call.mapping() != nullptr && call.mapping()->find("name") != nullptr;
    check_row(good, RowFault::conversation, place,
              ": a call without a name; write {\"name\": …, \"arguments\": {…}}");
    Mapping wrapped;
    wrapped.set("type", "function");
    wrapped.set("function", call);
    out.push_back(dict_of(std::move(wrapped)));
  }
  return list_of(std::move(out));
}

// One of ShareGPT's turns as OpenAI's message, its other members kept.
Value turn_of(const Value& turn, const std::string& place) {
  const Mapping* given = turn.mapping();
  check_row(given != nullptr, RowFault::conversation, place,
            ": not an object: ", jinja::type_name(turn), "; write {\"from\": …, \"value\": …}");
  const Value* from = find(*given, {"from", "role"});
  check_row(from != nullptr && from->text() != nullptr, RowFault::conversation, place,
            ": no role; add \"from\": \"human\" or another");
  const Value* said = find(*given, {"value", "content", "text"});
  Mapping out;
  out.set("role", known_role(*from->text(), place));
  if (*from->text() == "function_call" || *from->text() == "tool_call") {
    check_row(said != nullptr, RowFault::conversation, place, ": a call without \"value\"");
    out.set("content", "");
    out.set("tool_calls", tool_calls_of(*said, place));
  } else if (said != nullptr) {
    out.set("content", *said);
  }
  for (const auto& [key, value] : given->items()) {
    const std::string& word = *key.text();
    if (word != "from" && word != "role" && word != "value" && word != "content" &&
        word != "text") {
      out.set(key, value);
    }
  }
  return dict_of(std::move(out));
}

// Tools as a list; ShareGPT's files hold them as a text.
Value tools_of(const Mapping& row, const std::string& place) {
  const Value* tools = find(row, {"tools"});
  if (tools == nullptr || tools->text() == nullptr) {
    return tools == nullptr ? Value() : *tools;
  }
  if (jinja::stripped(*tools->text()).empty()) {
    return {};
  }
  try {
    Value parsed = jinja::parse_json_value(*tools->text(), place);
    const Items* list = parsed.list();
    return list != nullptr && list->empty() ? Value() : parsed;
  } catch (const Error&) {
    throw RowError(RowFault::conversation,
                   concat(place, ": tools: a text that is not JSON; write a list"));
  }
}

}  // namespace

const Value* find(const Mapping& row, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    const Value* value = row.find(key);
    if (value != nullptr && !value->is<jinja::None>()) {
      return value;
    }
  }
  return nullptr;
}

std::string text(const Mapping& row, std::initializer_list<std::string_view> keys,
                 const std::string& place) {
  const Value* value = find(row, keys);
  if (value == nullptr) {
    return "";
  }
  if (const auto* integer = value->as<int64_t>()) {
    return std::to_string(*integer);
  }
  if (const auto* real = value->as<double>()) {
    return fmt::format("{}", *real);
  }
  check_row(value->text() != nullptr, RowFault::conversation, place, ": ", spelled(keys), ": a ",
            jinja::type_name(*value), "; it is a text");
  return *value->text();
}

std::string said(const Mapping& row, std::initializer_list<std::string_view> keys,
                 const std::string& place) {
  check_row(find(row, keys) != nullptr, RowFault::layout, place, ": no ", spelled(keys),
            "; add it, or leave the row out");
  std::string out = text(row, keys, place);
  check_row(!jinja::stripped(out).empty(), RowFault::empty, place, ": ", spelled(keys),
            ": the text is empty; leave the row out");
  return out;
}

double number(const Value& value, std::string_view key, const std::string& place) {
  if (const auto* real = value.as<double>()) {
    return *real;
  }
  const auto integer = value.integer();
  check_row(integer.has_value(), RowFault::conversation, place, ": ", key, ": a ",
            jinja::type_name(value), "; it is a number");
  return static_cast<double>(*integer);
}

std::vector<double> numbers(const Value& value, std::string_view key, const std::string& place) {
  check_row(value.list() != nullptr, RowFault::conversation, place, ": ", key, ": a ",
            jinja::type_name(value), "; it is a list of numbers");
  std::vector<double> out;
  for (const Value& item : *value.list()) {
    out.push_back(number(item, key, place));
  }
  return out;
}

Conversation conversation(const Value& turns, const Mapping& row, const std::string& place) {
  check_row(turns.list() != nullptr, RowFault::conversation, place,
            ": messages: not a list: ", jinja::type_name(turns), "; write a list of messages");
  Items messages;
  if (const std::string system = text(row, {"system", "system_prompt"}, place);
      !jinja::stripped(system).empty()) {
    Mapping first;
    first.set("role", "system");
    first.set("content", system);
    messages.push_back(dict_of(std::move(first)));
  }
  for (const Value& turn : *turns.list()) {
    const std::string here = concat(place, ": messages[", messages.size(), "]");
    const Mapping* given = turn.mapping();
    const bool openai = given != nullptr && given->find("from") == nullptr;
    messages.push_back(openai ? turn : turn_of(turn, here));
  }
  Mapping out;
  out.set("messages", list_of(std::move(messages)));
  if (Value tools = tools_of(row, place); !tools.is<jinja::None>()) {
    out.set("tools", std::move(tools));
  }
  try {
    return conversation_from(dict_of(std::move(out)), place);
  } catch (const RowError&) {
    throw;
  } catch (const Error& error) {
    throw RowError(RowFault::conversation, error.what());
  }
}

std::vector<Message> answer(const Value& value, std::string_view key, const std::string& place) {
  const std::string here = concat(place, ": ", key);
  if (value.text() != nullptr) {
    check_row(!jinja::stripped(*value.text()).empty(), RowFault::empty, here,
              ": the text is empty; leave the row out");
    return {make_message("assistant", *value.text())};
  }
  const Value turns = value.mapping() != nullptr ? jinja::list_of({value}) : value;
  return conversation(turns, {}, here).messages;
}

std::optional<std::vector<Message>> hh_messages(std::string_view text) {
  constexpr std::string_view human = "\n\nHuman:";
  constexpr std::string_view assistant = "\n\nAssistant:";
  if (!text.starts_with(human)) {
    return std::nullopt;
  }
  std::vector<Message> out;
  while (!text.empty()) {
    const bool user = text.starts_with(human);
    text.remove_prefix(user ? human.size() : assistant.size());
    const size_t end = std::min({text.find(human), text.find(assistant), text.size()});
    out.push_back(make_message(user ? "user" : "assistant", jinja::stripped(text.substr(0, end))));
    text.remove_prefix(end);
  }
  return out;
}

}  // namespace ingot::fields
