#include "ingot/data/chat_roles.h"

#include <algorithm>
#include <array>
#include <utility>

#include "ingot/base/edit_distance.h"
#include "ingot/text/jinja_text.h"

namespace ingot {
namespace {

using jinja::Value;

constexpr std::array<std::pair<std::string_view, std::string_view>, 21> known = {{
    {"system", "system"},
    {"developer", "developer"},
    {"user", "user"},
    {"human", "user"},
    {"prompter", "user"},
    {"assistant", "assistant"},
    {"gpt", "assistant"},
    {"chatgpt", "assistant"},
    {"bing", "assistant"},
    {"bard", "assistant"},
    {"model", "assistant"},
    {"bot", "assistant"},
    {"function_call", "assistant"},
    {"tool_call", "assistant"},
    {"tool", "tool"},
    {"observation", "tool"},
    {"function_response", "tool"},
    {"tool_response", "tool"},
    {"ipython", "tool"},
    {"function", "tool"},
    {"environment", "tool"},
}};

bool says_nothing(const Value* content) {
  if (content == nullptr || content->is<jinja::None>()) {
    return true;
  }
  if (content->text() != nullptr) {
    return jinja::stripped(*content->text()).empty();
  }
  return content->list() != nullptr && content->list()->empty();
}

// A field that is a list with something in it, or a text that says something.
bool has(const Message& message, std::string_view key) {
  const Value* value = message.fields.find(key);
  return value != nullptr && !says_nothing(value) &&
         !(value->mapping() != nullptr && value->mapping()->items().empty());
}

enum class Turn : uint8_t { start, system, user, assistant, calls, tool };

Turn turn_of(const Message& message) {
  const std::string_view role = role_of(message);
  if (role == "system" || role == "developer") {
    return Turn::system;
  }
  if (role == "user") {
    return Turn::user;
  }
  if (role == "tool") {
    return Turn::tool;
  }
  return has(message, "tool_calls") ? Turn::calls : Turn::assistant;
}

bool may_follow(Turn before, Turn now) {
  switch (now) {
    case Turn::start: return false;
    case Turn::system: return before == Turn::start || before == Turn::system;
    case Turn::user:
      return before == Turn::start || before == Turn::system || before == Turn::assistant;
    case Turn::assistant:
    case Turn::calls: return before == Turn::user || before == Turn::tool;
    // Some data sets write calls as text, so a tool may answer any turn of the assistant.
    case Turn::tool:
      return before == Turn::calls || before == Turn::tool || before == Turn::assistant;
  }
  return false;
}

}  // namespace

std::string known_role(std::string_view role, const std::string& place) {
  const std::string lower = jinja::lower(role);
  std::vector<std::string> words;
  for (const auto& [word, meaning] : known) {
    if (word == lower) {
      return std::string(meaning);
    }
    words.emplace_back(word);
  }
  throw RowError(RowFault::role,
                 concat(place, ": unknown role '", role, "'; the nearest is '",
                        nearest_word(lower, words), "'; rename it, or leave the row out"));
}

void check_messages(const std::vector<Message>& messages, RoleOrder order,
                    const std::string& place) {
  Turn before = Turn::start;
  std::string previous = "the start";
  for (size_t i = 0; i < messages.size(); ++i) {
    const Message& message = messages[i];
    const std::string_view role = role_of(message);
    const std::string here = concat(place, ": messages[", i, "]");
    check_row(known_role(role, here) == role, RowFault::role, here, ": unknown role '", role,
              "'; in messages it is '", known_role(role, here), "'");
    const Turn now = turn_of(message);
    check_row(order == RoleOrder::any || may_follow(before, now), RowFault::order, here, ": ", role,
              " cannot follow ", previous,
              "; a conversation is system, then user and assistant in turns: mend the row, or set "
              "data.order = \"any\"");
    const bool silent = says_nothing(message.fields.find("content"));
    const bool otherwise =
        has(message, "tool_calls") || has(message, "function_call") ||
        (now == Turn::assistant && (has(message, "reasoning_content") || has(message, "thinking")));
    check_row(!silent || otherwise || now == Turn::tool, RowFault::empty, here, " (", role,
              "): the content is empty; leave the row out");
    before = now;
    previous = std::string(role);
  }
}

}  // namespace ingot
