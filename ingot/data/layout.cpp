#include "ingot/data/layout.h"

#include <algorithm>
#include <array>

#include "ingot/data/chat_roles.h"
#include "ingot/data/layout_fields.h"
#include "ingot/data/layout_preference.h"
#include "ingot/text/jinja_text.h"

namespace ingot {
namespace {

using fields::Mapping;
using fields::Value;
using jinja::Items;

constexpr std::array<std::string_view, layouts> names = {
    "text", "completion", "alpaca", "sharegpt", "messages",
    "tree", "preference", "label",  "ranked",   "generated"};

bool is_tree(const Mapping& row) {
  const Value* prompt = fields::find(row, {"prompt"});
  return prompt != nullptr && prompt->mapping() != nullptr &&
         prompt->mapping()->find("replies") != nullptr;
}

Example of_text(const Mapping& row, const RowPlace& place) {
  Example out;
  out.kind = ExampleKind::text;
  out.text = fields::said(row, {"text", "content"}, place.text());
  return out;
}

Example of_completion(const Mapping& row, const RowPlace& place) {
  Example out;
  out.kind = ExampleKind::chat;
  const std::string where = place.text();
  const Value* prompt = fields::find(row, {"prompt"});
  const Value* completion = fields::find(row, {"completion", "response", "output", "answer"});
  check_row(completion != nullptr, RowFault::layout, where,
            ": no \"completion\" or \"response\"; add it, or leave the row out");
  out.plain = prompt != nullptr && prompt->text() != nullptr && completion->text() != nullptr;
  if (out.plain) {
    out.conversation.messages = {
        make_message("user", *prompt->text()),
        make_message("assistant",
                     fields::said(row, {"completion", "response", "output", "answer"}, where))};
    return out;
  }
  check_row(prompt != nullptr, RowFault::layout, where, ": no \"prompt\"; add it");
  out.conversation =
      prompt->text() != nullptr
          ? fields::conversation(
                jinja::list_of({dict_of(make_message("user", *prompt->text()).fields)}), row, where)
          : fields::conversation(*prompt, row, where);
  for (Message& message : fields::answer(*completion, "completion", where)) {
    out.conversation.messages.push_back(std::move(message));
  }
  return out;
}

Message instruction_of(const Mapping& row, const std::string& instruction,
                       const std::string& where) {
  const std::string input = fields::text(row, {"input"}, where);
  return make_message(
      "user", jinja::stripped(input).empty() ? instruction : concat(instruction, "\n\n", input));
}

// System, earlier exchanges, and the instruction with its input.
std::vector<Message> alpaca_prompt(const Mapping& row, const Mapping& instance,
                                   const std::string& where) {
  std::vector<Message> out;
  if (const std::string system = fields::text(row, {"system"}, where);
      !jinja::stripped(system).empty()) {
    out.push_back(make_message("system", system));
  }
  const Value* history = fields::find(row, {"history"});
  const Items none;
  const Items& exchanges =
      history != nullptr && history->list() != nullptr ? *history->list() : none;
  for (const Value& exchange : exchanges) {
    const Items* both = exchange.list();
    const bool good = both != nullptr && both->size() == 2 && (*both)[0].text() != nullptr &&
                      (*both)[1].text() != nullptr;
    check_row(good, RowFault::conversation, where,
              ": history: not pairs of texts; write [[\"question\", \"answer\"], …]");
    out.push_back(make_message("user", *(*both)[0].text()));
    out.push_back(make_message("assistant", *(*both)[1].text()));
  }
  out.push_back(instruction_of(instance, fields::said(row, {"instruction"}, where), where));
  return out;
}

std::vector<Example> of_alpaca(const Mapping& row, const RowPlace& place) {
  const std::string where = place.text();
  const Value* instances = fields::find(row, {"instances"});
  const Items one = {dict_of(row)};
  const Items& all =
      instances != nullptr && instances->list() != nullptr ? *instances->list() : one;
  std::vector<Example> out;
  for (const Value& instance : all) {
    const Mapping* given = instance.mapping();
    check_row(given != nullptr, RowFault::conversation, where,
              ": instances: not objects: ", jinja::type_name(instance),
              "; write {\"input\": …, \"output\": …}");
    Example example;
    example.kind = ExampleKind::chat;
    example.conversation.messages = alpaca_prompt(row, *given, where);
    example.conversation.messages.push_back(
        make_message("assistant", fields::said(*given, {"output", "response"}, where)));
    out.push_back(std::move(example));
  }
  return out;
}

Example of_conversation(const Mapping& row, const RowPlace& place) {
  Example out;
  out.kind = ExampleKind::chat;
  const Value* turns = fields::find(row, {"messages", "conversations", "conversation"});
  check_row(turns != nullptr, RowFault::layout, place.text(),
            ": no \"messages\" or \"conversations\"; add it, or leave the row out");
  out.conversation = fields::conversation(*turns, row, place.text());
  return out;
}

bool is_generated(const Mapping& row) {
  const Value* input = fields::find(row, {"input"});
  return input != nullptr && input->mapping() != nullptr &&
         fields::find(row, {"output"}) != nullptr;
}

Example of_generated(const Mapping& row, const RowPlace& place) {
  const std::string where = place.text();
  check_row(is_generated(row), RowFault::layout, where,
            ": no row of `ingot generate --out`: no object \"input\" with an \"output\"");
  const std::string finish = fields::text(row, {"finish"}, where);
  check_row(finish.empty() || finish == "stop", RowFault::cut, where,
            ": the answer ends before its end (finish: ", finish,
            "); generate it with more --tokens, or leave it out by data.policy = \"drop\"");
  const Mapping& input = *fields::find(row, {"input"})->mapping();
  const Message answer = make_message("assistant", fields::said(row, {"output"}, where));
  Example out;
  out.kind = ExampleKind::chat;
  const Value* prompt = fields::find(input, {"prompt"});
  out.plain = fields::find(input, {"messages"}) == nullptr;
  if (out.plain) {
    check_row(prompt != nullptr && prompt->text() != nullptr, RowFault::conversation, where,
              ": input: no \"prompt\" that is a text, and no \"messages\"");
    out.conversation.messages = {make_message("user", *prompt->text()), answer};
    return out;
  }
  out = of_conversation(input, place);
  drop_answer(out.conversation.messages);
  out.conversation.messages.push_back(answer);
  return out;
}

// Every path from the root to a leaf.
void walk(const Mapping& node, std::vector<Message>& path, const RowPlace& place,
          std::vector<Example>& out) {
  const std::string where = place.text();
  path.push_back(make_message(known_role(fields::said(node, {"role"}, where), where),
                              fields::said(node, {"text"}, where)));
  const Value* replies = fields::find(node, {"replies"});
  const bool leaf = replies == nullptr || replies->list() == nullptr || replies->list()->empty();
  for (size_t i = 0; !leaf && i < replies->list()->size(); ++i) {
    const Mapping* reply = (*replies->list())[i].mapping();
    check_row(reply != nullptr, RowFault::conversation, where, ": replies: not objects");
    walk(*reply, path, place, out);
  }
  // A thread that ends with a question has nothing that could be learnt of its end.
  std::vector<Message> thread = path;
  if (role_of(thread.back()) != "assistant") {
    thread.pop_back();
  }
  if (leaf && !thread.empty()) {
    Example example;
    example.kind = ExampleKind::chat;
    example.conversation.messages = std::move(thread);
    out.push_back(std::move(example));
  }
  path.pop_back();
}

std::vector<Example> of_tree(const Mapping& row, const RowPlace& place) {
  check_row(is_tree(row), RowFault::layout, place.text(),
            ": no tree: no \"prompt\" with \"replies\"");
  std::vector<Example> out;
  std::vector<Message> path;
  walk(*fields::find(row, {"prompt"})->mapping(), path, place, out);
  return out;
}

std::vector<Example> read(const Mapping& row, Layout layout, const RowPlace& place) {
  switch (layout) {
    case Layout::text: return {of_text(row, place)};
    case Layout::completion: return {of_completion(row, place)};
    case Layout::alpaca: return of_alpaca(row, place);
    case Layout::sharegpt:
    case Layout::messages: return {of_conversation(row, place)};
    case Layout::tree: return of_tree(row, place);
    case Layout::preference: return {preference_example(row, place)};
    case Layout::label: return {label_example(row, place)};
    case Layout::ranked: return {ranked_example(row, place)};
    case Layout::generated: return {of_generated(row, place)};
  }
  return {};
}

std::string id_of(const Mapping& row, const RowPlace& place) {
  const Value* id = fields::find(row, {"id", "uid", "message_tree_id"});
  return id == nullptr || (id->text() == nullptr && !id->integer()) ? ""
         : id->text() != nullptr                                    ? *id->text()
                                 : fields::text(row, {"id", "uid"}, place.text());
}

std::string keys_of(const Mapping& row) {
  std::string out;
  for (const auto& [key, value] : row.items()) {
    out += concat(out.empty() ? "" : ", ", *key.text());
  }
  return out;
}

}  // namespace

std::string_view name(Layout layout) { return names[static_cast<size_t>(layout)]; }

std::optional<Layout> layout_named(std::string_view word) {
  const auto found = std::find(names.begin(), names.end(), word);
  return found == names.end() ? std::nullopt
                              : std::optional(static_cast<Layout>(found - names.begin()));
}

std::optional<Layout> layout_of(const jinja::Mapping& row) {
  const auto has = [&](std::initializer_list<std::string_view> keys) {
    return fields::find(row, keys) != nullptr;
  };
  const bool answered = has({"completion", "response", "output", "answer"});
  if (is_generated(row)) {
    return Layout::generated;
  }
  if (has({"chosen"}) || has({"rejected"})) {
    return Layout::preference;
  }
  if (has({"responses", "completions"})) {
    return Layout::ranked;
  }
  const Value* label = fields::find(row, {"label"});
  if (label != nullptr && (has({"messages"}) || has({"completion", "response"}))) {
    return Layout::label;
  }
  if (has({"messages"})) {
    return Layout::messages;
  }
  if (has({"conversations", "conversation"})) {
    return Layout::sharegpt;
  }
  if (has({"instruction"})) {
    return Layout::alpaca;
  }
  if (is_tree(row)) {
    return Layout::tree;
  }
  if (has({"prompt"}) && answered) {
    return Layout::completion;
  }
  return has({"text", "content"}) ? std::optional(Layout::text) : std::nullopt;
}

std::vector<Example> examples_of(const jinja::Value& row, Layout layout, const RowPlace& place,
                                 const LayoutOptions& options) {
  const Mapping* mapping = row.mapping();
  check_row(mapping != nullptr, RowFault::layout, place.text(),
            ": a row is no object: ", jinja::type_name(row));
  // A row of another layout is named as that, not by the first key that it lacks.
  const auto own = layout_of(*mapping);
  const bool chats = own && (*own == Layout::messages || *own == Layout::sharegpt) &&
                     (layout == Layout::messages || layout == Layout::sharegpt);
  check_row(own == layout || chats, RowFault::layout, place.text(), ": the row is ",
            own ? concat("of the layout ", name(*own)) : std::string("of no known layout"),
            ", expected is ", name(layout), ": its keys are ", keys_of(*mapping),
            "; put rows of another layout into another file, or set data.layout");
  std::vector<Example> out = read(*mapping, layout, place);
  const std::string id = id_of(*mapping, place);
  for (size_t i = 0; i < out.size(); ++i) {
    Example& example = out[i];
    example.place = place;
    example.id = out.size() == 1 || id.empty() ? id : concat(id, "/", i);
    if (example.kind == ExampleKind::text || example.plain) {
      continue;
    }
    std::vector<Message> all = example.conversation.messages;
    check_row(!all.empty(), RowFault::empty, place.text(), ": the conversation is empty");
    if (example.answers.empty()) {
      check_messages(all, options.order, place.text());
    }
    for (const auto& answer : example.answers) {
      std::vector<Message> whole = all;
      whole.insert(whole.end(), answer.begin(), answer.end());
      check_messages(whole, options.order, place.text());
    }
  }
  return out;
}

}  // namespace ingot
