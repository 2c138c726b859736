#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ingot/text/jinja_value.h"

namespace ingot {

// One turn of a conversation. The fields are those of the OpenAI interface, kept as they were given
// and in their order, since templates look at any of them: role, content (a text, a list of parts,
// or none), tool_calls, tool_call_id, name, reasoning_content or thinking, …
struct Message {
  jinja::Mapping fields;
  std::optional<bool> train;  // whether training learns this turn; absent: as its role does
};

struct Conversation {
  std::vector<Message> messages;
  jinja::Value tools;  // a list of tool descriptions, or none
};

Message make_message(std::string_view role, std::string_view content);
// Removes what the assistant says at the end, so that it can be said anew.
void drop_answer(std::vector<Message>& messages);
std::string_view role_of(const Message& message);

// A conversation in OpenAI's form: {"messages": [{"role": …, "content": …}, …], "tools": […]}. In a
// message, "train": true or false, or "weight": 1 or 0 as in OpenAI's training files, says whether
// the turn is learnt; templates do not see it. A tool call's `arguments` given as a text that
// spells a JSON object, as OpenAI sends it, becomes that object, which is what templates expect.
// `name` stands for the source in messages. Throws Error(format) that names the message and the
// field.
Conversation conversation_from(const jinja::Value& object, const std::string& name);
Conversation parse_conversation(std::string_view json, const std::string& name);

}  // namespace ingot
