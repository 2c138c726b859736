#include "ingot/text/chat_message.h"

#include "ingot/base/error.h"
#include "ingot/text/jinja_json.h"

namespace ingot {
namespace {

using jinja::Items;
using jinja::Mapping;
using jinja::Value;

template <class... Parts>
void expect(bool holds, const std::string& name, const Parts&... parts) {
  check(holds, ErrorKind::format, name, ": ", parts...);
}

// A tool call with its arguments as an object.
Value tool_call_from(const Value& call, const std::string& name) {
  expect(call.mapping() != nullptr, name, "not an object: ", jinja::type_name(call),
         "; write {\"function\": {\"name\": …, \"arguments\": {…}}}");
  const Value* function = call.mapping()->find("function");
  const Mapping* inner = function != nullptr ? function->mapping() : call.mapping();
  expect(inner != nullptr, name,
         "function: not an object; write {\"name\": …, \"arguments\": {…}}");
  const Value* arguments = inner->find("arguments");
  if (arguments == nullptr || arguments->text() == nullptr) {
    return call;
  }
  Value parsed = *arguments;
  try {
    parsed = jinja::parse_json_value(*arguments->text(), name);
  } catch (const Error&) {
    return call;  // a text that is no JSON is passed on as it is
  }
  if (parsed.mapping() == nullptr) {
    return call;
  }
  Mapping changed = *inner;
  changed.set("arguments", std::move(parsed));
  if (function == nullptr) {
    return dict_of(std::move(changed));
  }
  Mapping outer = *call.mapping();
  outer.set("function", dict_of(std::move(changed)));
  return dict_of(std::move(outer));
}

Value tool_calls_from(const Value& calls, const std::string& name) {
  if (calls.is<jinja::None>()) {
    return calls;
  }
  expect(calls.list() != nullptr, name, "tool_calls: not a list: ", jinja::type_name(calls),
         "; write a list of calls");
  Items out;
  for (const Value& call : *calls.list()) {
    out.push_back(tool_call_from(call, concat(name, ": tool_calls[", out.size(), "]")));
  }
  return list_of(std::move(out));
}

void check_content(const Value& content, const std::string& name) {
  const Items* parts = content.list();
  const bool fits = content.text() != nullptr || content.is<jinja::None>() || parts != nullptr;
  expect(fits, name, "content: a ", jinja::type_name(content),
         "; it is a text, a list of parts, or null");
  for (size_t i = 0; parts != nullptr && i < parts->size(); ++i) {
    const Mapping* part = (*parts)[i].mapping();
    const Value* type = part == nullptr ? nullptr : part->find("type");
    expect((*parts)[i].text() != nullptr || (type != nullptr && type->text() != nullptr), name,
           "content[", i, "]: no part; write {\"type\": \"text\", \"text\": …}");
  }
}

std::optional<bool> train_flag(const std::string& key, const Value& value,
                               const std::string& name) {
  if (key == "train") {
    expect(value.is<bool>(), name, "train: a ", jinja::type_name(value), "; it is true or false");
    return *value.as<bool>();
  }
  const int64_t* number = value.as<int64_t>();
  expect(number != nullptr && (*number == 0 || *number == 1), name,
         "weight: neither 0 nor 1; other weights are not supported");
  return *number == 1;
}

Message message_from(const Value& object, const std::string& name) {
  expect(object.mapping() != nullptr, name, "not an object: ", jinja::type_name(object),
         "; write {\"role\": …, \"content\": …}");
  Message message;
  for (const auto& [key_value, value] : object.mapping()->items()) {
    const std::string& key = *key_value.text();
    if (key == "train" || key == "weight") {
      message.train = train_flag(key, value, name);
    } else {
      message.fields.set(key, key == "tool_calls" ? tool_calls_from(value, name) : value);
    }
  }
  const Value* role = message.fields.find("role");
  expect(role != nullptr, name, "no role; add \"role\": \"user\" or another");
  expect(role->text() != nullptr && !role->text()->empty(), name,
         "role: not a text of letters; "
         "write such as \"user\"");
  const Value* content = message.fields.find("content");
  const bool says_otherwise = message.fields.find("tool_calls") != nullptr;
  expect(content != nullptr || says_otherwise, name,
         "no content; add \"content\": …, or tool_calls");
  if (content != nullptr) {
    check_content(*content, name);
  }
  return message;
}

}  // namespace

void drop_answer(std::vector<Message>& messages) {
  while (!messages.empty() && role_of(messages.back()) == "assistant") {
    messages.pop_back();
  }
}

Message make_message(std::string_view role, std::string_view content) {
  Message message;
  message.fields.set("role", role);
  message.fields.set("content", content);
  return message;
}

std::string_view role_of(const Message& message) {
  const Value* role = message.fields.find("role");
  return role == nullptr || role->text() == nullptr ? std::string_view() : *role->text();
}

Conversation conversation_from(const Value& object, const std::string& name) {
  expect(object.mapping() != nullptr, name, "not an object: ", jinja::type_name(object),
         "; write {\"messages\": […]}");
  const Value* messages = object.mapping()->find("messages");
  expect(messages != nullptr, name,
         "no messages; add \"messages\": [{\"role\": …, \"content\": …}]");
  expect(messages->list() != nullptr, name, "messages: not a list: ", jinja::type_name(*messages),
         "; write a list of messages");
  expect(!messages->list()->empty(), name, "messages: empty; a conversation has at least one");
  Conversation out;
  for (const Value& message : *messages->list()) {
    out.messages.push_back(
        message_from(message, concat(name, ": messages[", out.messages.size(), "]")));
  }
  if (const Value* tools = object.mapping()->find("tools")) {
    expect(tools->is<jinja::None>() || tools->list() != nullptr, name,
           "tools: not a list: ", jinja::type_name(*tools), "; write a list of tools");
    out.tools = *tools;
  }
  return out;
}

Conversation parse_conversation(std::string_view json, const std::string& name) {
  return conversation_from(jinja::parse_json_value(json, name), name);
}

}  // namespace ingot
