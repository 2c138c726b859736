#include "ingot/data/layout_preference.h"

#include <algorithm>
#include <numeric>

#include "ingot/data/layout.h"
#include "ingot/data/layout_fields.h"
#include "ingot/text/jinja_text.h"

namespace ingot {
namespace {

using fields::Mapping;
using fields::Value;

bool same(const std::vector<Message>& a, const std::vector<Message>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Message& x, const Message& y) {
    return json_of(dict_of(x.fields)) == json_of(dict_of(y.fields));
  });
}

// The prompt that stands in a row of its own: messages, turns, a text, or an instruction with
// input.
struct Prompt {
  Conversation conversation;
  bool text = false;  // it was a text
  bool there = false;
};

Prompt prompt_of(const Mapping& row, const std::string& where) {
  Prompt out;
  const Value* prompt =
      fields::find(row, {"prompt", "question", "instruction", "conversations", "messages"});
  if (prompt == nullptr) {
    return out;
  }
  out.there = true;
  if (prompt->text() == nullptr) {
    out.conversation = fields::conversation(*prompt, row, where);
    return out;
  }
  out.text = fields::find(row, {"prompt"}) != nullptr;
  std::string text = *prompt->text();
  if (const std::string input = fields::text(row, {"input"}, where);
      !jinja::stripped(input).empty()) {
    text += "\n\n" + input;
  }
  if (const auto hh = fields::hh_messages(text)) {
    out.conversation.messages = *hh;
    out.text = false;
    return out;
  }
  out.conversation = fields::conversation(
      jinja::list_of({dict_of(make_message("user", text).fields)}), row, where);
  return out;
}

std::vector<Message> answer_of(const Value& value, std::string_view key, const std::string& where) {
  if (value.text() != nullptr) {
    if (auto hh = fields::hh_messages(*value.text())) {
      return *std::move(hh);
    }
  }
  return fields::answer(value, key, where);
}

// Moves the messages that both answers begin with to the end of the prompt.
void take_common(Example& example, const std::string& where) {
  auto& chosen = example.answers[0];
  auto& rejected = example.answers[1];
  size_t common = 0;
  while (common < std::min(chosen.size(), rejected.size()) &&
         same({chosen[common]}, {rejected[common]})) {
    ++common;
  }
  check_row(common < chosen.size() && common < rejected.size(), RowFault::identical, where,
            ": chosen and rejected are the same; leave the row out");
  // The answer begins with a turn of the assistant.
  while (common > 0 && role_of(chosen[common]) != "assistant") {
    --common;
  }
  auto& messages = example.conversation.messages;
  messages.insert(messages.end(), chosen.begin(), chosen.begin() + static_cast<int64_t>(common));
  chosen.erase(chosen.begin(), chosen.begin() + static_cast<int64_t>(common));
  rejected.erase(rejected.begin(), rejected.begin() + static_cast<int64_t>(common));
}

}  // namespace

Example preference_example(const jinja::Mapping& row, const RowPlace& place) {
  const std::string where = place.text();
  Example out;
  out.kind = ExampleKind::pair;
  for (const std::string_view key : {"chosen", "rejected"}) {
    const Value* value = fields::find(row, {key});
    check_row(value != nullptr, RowFault::layout, where, ": no \"", key,
              "\"; a preference has both chosen and rejected");
    out.answers.push_back(answer_of(*value, key, where));
    if (const Value* score = fields::find(row, {concat("score_", key), concat(key, "_score")})) {
      out.scores.push_back(fields::number(*score, "score", where));
    }
  }
  check_row(!same(out.answers[0], out.answers[1]), RowFault::identical, where,
            ": chosen and rejected are the same; leave the row out");
  Prompt prompt = prompt_of(row, where);
  const bool texts = fields::find(row, {"chosen"})->text() != nullptr;
  // Whole conversations in both, with their prompt or without: the prompt is what they share.
  if (out.answers[0].size() > 1 || out.answers[1].size() > 1) {
    if (!prompt.text && prompt.there &&
        !same(prompt.conversation.messages,
              {out.answers[0].begin(),
               out.answers[0].begin() +
                   static_cast<int64_t>(
                       std::min(prompt.conversation.messages.size(), out.answers[0].size()))})) {
      out.conversation = std::move(prompt.conversation);
    }
    take_common(out, where);
    return out;
  }
  check_row(prompt.there, RowFault::layout, where,
            ": no prompt: neither \"prompt\" nor messages that both begin with; add it");
  out.plain = prompt.text && texts;
  out.conversation = std::move(prompt.conversation);
  return out;
}

Example label_example(const jinja::Mapping& row, const RowPlace& place) {
  const std::string where = place.text();
  Example out;
  out.kind = ExampleKind::label;
  const Value& label = *fields::find(row, {"label"});
  const auto truth = label.integer();
  check_row(truth && (*truth == 0 || *truth == 1), RowFault::conversation, where,
            ": label: neither true nor false: ", jinja::type_name(label));
  out.wanted = *truth == 1;
  const Value* messages = fields::find(row, {"messages"});
  if (messages != nullptr) {
    out.conversation = fields::conversation(*messages, row, where);
    auto& all = out.conversation.messages;
    check_row(!all.empty() && role_of(all.back()) == "assistant", RowFault::order, where,
              ": the last message is no answer; a labelled conversation ends with the assistant");
    out.answers = {{all.back()}};
    all.pop_back();
    return out;
  }
  Prompt prompt = prompt_of(row, where);
  check_row(prompt.there, RowFault::layout, where, ": no \"prompt\"; add it");
  const Value* answer = fields::find(row, {"completion", "response"});
  out.plain = prompt.text && answer->text() != nullptr;
  out.conversation = std::move(prompt.conversation);
  out.answers = {answer_of(*answer, "completion", where)};
  return out;
}

Example ranked_example(const jinja::Mapping& row, const RowPlace& place) {
  const std::string where = place.text();
  Example out;
  out.kind = ExampleKind::ranked;
  Prompt prompt = prompt_of(row, where);
  check_row(prompt.there, RowFault::layout, where, ": no \"prompt\"; add it");
  out.conversation = std::move(prompt.conversation);
  const Value& all = *fields::find(row, {"responses", "completions"});
  check_row(all.list() != nullptr && all.list()->size() >= 2, RowFault::layout, where,
            ": responses: not a list of two or more");
  std::vector<std::vector<Message>> answers;
  bool texts = prompt.text;
  for (const Value& answer : *all.list()) {
    texts = texts && answer.text() != nullptr;
    answers.push_back(answer_of(answer, concat("responses[", answers.size(), "]"), where));
  }
  out.plain = texts;
  const Value* ranks = fields::find(row, {"ranks", "rank"});
  const Value* scores = fields::find(row, {"scores"});
  std::vector<size_t> order(answers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const Value* given = ranks != nullptr ? ranks : scores;
  if (given != nullptr) {
    const std::vector<double> by =
        fields::numbers(*given, ranks != nullptr ? "ranks" : "scores", where);
    check_row(by.size() == answers.size(), RowFault::layout, where, ": ", answers.size(),
              " responses, ", by.size(), ranks != nullptr ? " ranks" : " scores",
              "; give one each");
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return ranks != nullptr ? by[a] < by[b] : by[a] > by[b];
    });
    for (const size_t i : order) {
      out.scores.push_back(ranks != nullptr ? -by[i] : by[i]);
    }
  }
  for (const size_t i : order) {
    out.answers.push_back(std::move(answers[i]));
  }
  return out;
}

}  // namespace ingot
