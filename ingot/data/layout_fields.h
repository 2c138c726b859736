#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ingot/data/example.h"
#include "ingot/data/row_fault.h"

// What readers of layouts ask of a row.
namespace ingot::fields {

using jinja::Mapping;
using jinja::Value;

// The member under the first of these keys that the row has and that is not null.
const Value* find(const Mapping& row, std::initializer_list<std::string_view> keys);

// That member as a text; "" where it is absent. A number is its decimal. Throws
// RowError(conversation).
std::string text(const Mapping& row, std::initializer_list<std::string_view> keys,
                 const std::string& place);
// The same of what must be there and say something: throws RowError(empty) or RowError(layout).
std::string said(const Mapping& row, std::initializer_list<std::string_view> keys,
                 const std::string& place);

// One number, or a list of them. Throws RowError(conversation) naming the key.
double number(const Value& value, std::string_view key, const std::string& place);
std::vector<double> numbers(const Value& value, std::string_view key, const std::string& place);

// OpenAI's messages with tools, from a list of them or from ShareGPT's turns, told by their keys.
// Roles are brought to OpenAI's names. `row` gives "system" and "tools" where they stand beside.
Conversation conversation(const Value& turns, const Mapping& row, const std::string& place);

// What a row's answer is: a text becomes one message of the assistant, a turn or a list of turns
// stays what it is.
std::vector<Message> answer(const Value& value, std::string_view key, const std::string& place);

// The conversation that HH spells "\n\nHuman: …\n\nAssistant: …"; nothing where it is no such text.
std::optional<std::vector<Message>> hh_messages(std::string_view text);

}  // namespace ingot::fields
