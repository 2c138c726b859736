#include <algorithm>

#include "ingot/data/layout.h"
#include "ingot/text/jinja_budget.h"
#include "ingot/text/jinja_print.h"

namespace ingot {
namespace {

using jinja::Items;
using jinja::Mapping;
using jinja::Value;

Value list_of_messages(const std::vector<Message>& messages) {
  Items out;
  for (const Message& message : messages) {
    Mapping fields = message.fields;
    if (message.train) {
      fields.set("train", *message.train);
    }
    out.push_back(dict_of(std::move(fields)));
  }
  return list_of(std::move(out));
}

[[noreturn]] void refuse(const Example& example, Layout layout, std::string_view why) {
  throw RowError(RowFault::layout, concat(example.place.text(), ": the layout ", name(layout),
                                          " cannot say ", why, "; write messages instead"));
}

// The content of a message that is nothing but a text.
std::string plain_content(const Example& example, Layout layout, const Message& message) {
  const Value* content = message.fields.find("content");
  if (content == nullptr || content->text() == nullptr || message.fields.items().size() > 2 ||
      message.train) {
    refuse(example, layout, concat("all of a message of ", role_of(message)));
  }
  return *content->text();
}

void put_alpaca(const Example& example, Mapping& row) {
  std::vector<Message> messages = example.conversation.messages;
  if (!example.conversation.tools.is<jinja::None>()) {
    refuse(example, Layout::alpaca, "tools");
  }
  std::string system;
  if (!messages.empty() && role_of(messages.front()) == "system") {
    system = plain_content(example, Layout::alpaca, messages.front());
    messages.erase(messages.begin());
  }
  Items history;
  for (size_t i = 0; i + 2 < messages.size(); i += 2) {
    history.push_back(
        jinja::list_of({Value(plain_content(example, Layout::alpaca, messages[i])),
                        Value(plain_content(example, Layout::alpaca, messages[i + 1]))}));
  }
  for (size_t i = 0; i < messages.size(); ++i) {
    if (role_of(messages[i]) != (i % 2 == 0 ? "user" : "assistant") || messages.size() % 2 != 0) {
      refuse(example, Layout::alpaca, "a conversation that is not user and assistant in turns");
    }
  }
  if (messages.empty()) {
    refuse(example, Layout::alpaca, "a conversation without a question");
  }
  row.set("instruction", plain_content(example, Layout::alpaca, messages[messages.size() - 2]));
  row.set("input", "");
  row.set("output", plain_content(example, Layout::alpaca, messages.back()));
  if (!system.empty()) {
    row.set("system", system);
  }
  if (!history.empty()) {
    row.set("history", list_of(std::move(history)));
  }
}

// Messages as ShareGPT's turns.
void put_sharegpt(const Example& example, Mapping& row) {
  Items turns;
  for (const Message& message : example.conversation.messages) {
    const std::string_view role = role_of(message);
    const Value* calls = message.fields.find("tool_calls");
    Mapping turn;
    if (calls != nullptr && calls->list() != nullptr && !calls->list()->empty()) {
      Items named;
      for (const Value& call : *calls->list()) {
        const Value* function =
            call.mapping() == nullptr ? nullptr : call.mapping()->find("function");
        named.push_back(function != nullptr ? *function : call);
      }
      turn.set("from", "function_call");
      turn.set("value", json_of(named.size() == 1 ? named.front() : list_of(named)));
    } else {
      turn.set("from", role == "user"        ? "human"
                       : role == "assistant" ? "gpt"
                       : role == "tool"      ? "observation"
                                             : role);
      turn.set("value", plain_content(example, Layout::sharegpt, message));
    }
    turns.push_back(dict_of(std::move(turn)));
  }
  row.set("conversations", list_of(std::move(turns)));
  if (!example.conversation.tools.is<jinja::None>()) {
    row.set("tools", example.conversation.tools);
  }
}

void put_completion(const Example& example, Mapping& row) {
  const std::vector<Message>& messages = example.conversation.messages;
  if (messages.empty() || role_of(messages.back()) != "assistant") {
    refuse(example, Layout::completion, "a conversation that does not end with an answer");
  }
  if (example.plain) {
    row.set("prompt", plain_content(example, Layout::completion, messages.front()));
    row.set("completion", plain_content(example, Layout::completion, messages.back()));
    return;
  }
  row.set("prompt", list_of_messages({messages.begin(), messages.end() - 1}));
  row.set("completion", list_of_messages({messages.back()}));
}

Value answer_value(const Example& example, Layout layout, size_t i) {
  return example.plain ? Value(plain_content(example, layout, example.answers[i].front()))
                       : list_of_messages(example.answers[i]);
}

Value prompt_value(const Example& example, Layout layout) {
  return example.plain
             ? Value(plain_content(example, layout, example.conversation.messages.front()))
             : list_of_messages(example.conversation.messages);
}

void put_answers(const Example& example, Layout layout, Mapping& row) {
  if (layout == Layout::label && !example.plain) {
    std::vector<Message> all = example.conversation.messages;
    all.insert(all.end(), example.answers[0].begin(), example.answers[0].end());
    row.set("messages", list_of_messages(all));
    row.set("label", example.wanted);
    return;
  }
  row.set("prompt", prompt_value(example, layout));
  if (layout == Layout::label) {
    row.set("completion", answer_value(example, layout, 0));
    row.set("label", example.wanted);
  } else if (layout == Layout::preference) {
    row.set("chosen", answer_value(example, layout, 0));
    row.set("rejected", answer_value(example, layout, 1));
    if (example.scores.size() == 2) {
      row.set("score_chosen", example.scores[0]);
      row.set("score_rejected", example.scores[1]);
    }
  } else {
    Items answers;
    for (size_t i = 0; i < example.answers.size(); ++i) {
      answers.push_back(answer_value(example, layout, i));
    }
    row.set("responses", list_of(std::move(answers)));
    if (!example.scores.empty()) {
      Items scores;
      for (const double score : example.scores) {
        scores.push_back(score);
      }
      row.set("scores", list_of(std::move(scores)));
    }
  }
}

ExampleKind kind_of(Layout layout) {
  switch (layout) {
    case Layout::text: return ExampleKind::text;
    case Layout::preference: return ExampleKind::pair;
    case Layout::label: return ExampleKind::label;
    case Layout::ranked: return ExampleKind::ranked;
    default: return ExampleKind::chat;
  }
}

// Answers told apart become what a layout of another kind can say of them.
Example as_kind(const Example& example, ExampleKind kind, Layout layout) {
  if (example.kind == kind) {
    return example;
  }
  Example out = example;
  out.kind = kind;
  if (kind == ExampleKind::chat && !example.answers.empty()) {  // the best answer
    out.answers.clear();
    out.scores.clear();
    out.conversation.messages.insert(out.conversation.messages.end(), example.answers[0].begin(),
                                     example.answers[0].end());
    return out;
  }
  if (kind == ExampleKind::ranked && example.kind == ExampleKind::pair) {
    return out;
  }
  if (kind == ExampleKind::pair && example.kind == ExampleKind::ranked) {  // best and worst
    out.answers = {example.answers.front(), example.answers.back()};
    if (!example.scores.empty()) {
      out.scores = {example.scores.front(), example.scores.back()};
    }
    return out;
  }
  refuse(example, layout, concat("a ", name(example.kind)));
}

}  // namespace

std::string json_of(const Value& value) {
  jinja::Budget budget{jinja::Limits{}};
  return jinja::json_text(value, {}, budget);
}

jinja::Value row_of(const Example& given, Layout layout) {
  const Example example = as_kind(given, kind_of(layout), layout);
  Mapping row;
  if (!example.id.empty()) {
    row.set("id", example.id);
  }
  if (example.plain && layout != Layout::completion && example.kind == ExampleKind::chat) {
    refuse(example, layout, "texts that are joined as they are");
  }
  switch (layout) {
    case Layout::text: row.set("text", example.text); break;
    case Layout::completion: put_completion(example, row); break;
    case Layout::alpaca: put_alpaca(example, row); break;
    case Layout::sharegpt: put_sharegpt(example, row); break;
    case Layout::messages:
      row.set("messages", list_of_messages(example.conversation.messages));
      if (!example.conversation.tools.is<jinja::None>()) {
        row.set("tools", example.conversation.tools);
      }
      break;
    case Layout::tree: refuse(example, layout, "one conversation");
    case Layout::preference:
    case Layout::label:
    case Layout::ranked: put_answers(example, layout, row); break;
    case Layout::generated: refuse(example, layout, "what no model wrote");
  }
  return dict_of(std::move(row));
}

}  // namespace ingot
