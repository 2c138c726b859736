#include "ingot/data/example.h"

#include <xxhash.h>

#include "ingot/base/error.h"
#include "ingot/data/layout.h"

namespace ingot {

std::string RowPlace::text() const { return concat(file, ":", line); }

std::string_view name(ExampleKind kind) {
  switch (kind) {
    case ExampleKind::text: return "text";
    case ExampleKind::chat: return "chat";
    case ExampleKind::pair: return "pair";
    case ExampleKind::label: return "label";
    case ExampleKind::ranked: return "ranked";
  }
  return "";
}

Example with_answer(const Example& example, size_t answer) {
  check(answer < example.answers.size(), ErrorKind::argument, example.place.text(), ": no answer ",
        answer, ": it has ", example.answers.size());
  Example out;
  out.kind = ExampleKind::chat;
  out.place = example.place;
  out.id = example.id;
  out.plain = example.plain;
  out.conversation = example.conversation;
  for (Message& message : out.conversation.messages) {
    message.train = false;
  }
  for (Message message : example.answers[answer]) {
    message.train = message.train.value_or(role_of(message) == "assistant");
    out.conversation.messages.push_back(std::move(message));
  }
  return out;
}

namespace {

void add(std::string& all, const std::vector<Message>& messages) {
  for (const Message& message : messages) {
    all += json_of(dict_of(message.fields));
    all += message.train ? (*message.train ? '+' : '-') : ' ';
  }
}

}  // namespace

uint64_t content_hash(const Example& example) {
  std::string all(name(example.kind));
  all += example.plain ? '!' : ' ';
  all += example.wanted ? '+' : '-';
  all += example.text;
  add(all, example.conversation.messages);
  for (const auto& answer : example.answers) {
    all += '|';
    add(all, answer);
  }
  return XXH3_64bits(all.data(), all.size());
}

}  // namespace ingot
