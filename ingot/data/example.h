#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ingot/text/chat_message.h"

namespace ingot {

// Where a row stands in its file.
struct RowPlace {
  std::string file;
  int64_t line = 0;          // counted from 1
  std::string text() const;  // "chats.jsonl:7"
};

enum class ExampleKind : uint8_t {
  text,    // a document
  chat,    // a conversation
  pair,    // a prompt, a chosen and a rejected answer
  label,   // a prompt, an answer, and whether it is wanted
  ranked,  // a prompt and answers, best first
};
std::string_view name(ExampleKind kind);

// What a row of training data says, whatever it looked like in its file.
struct Example {
  ExampleKind kind = ExampleKind::text;
  RowPlace place;
  std::string id;  // empty where the row has none

  std::string text;                           // text
  Conversation conversation;                  // chat: all of it; pair, label, ranked: the prompt
  std::vector<std::vector<Message>> answers;  // pair: chosen, rejected; label: one; ranked: all
  // Prompt and answer are texts that are joined as they are: no template is put around them.
  bool plain = false;
  bool wanted = true;          // label
  std::vector<double> scores;  // of the answers, where the row has them
};

// The prompt of an example with one of its answers, as a chat of which that answer alone is learnt.
Example with_answer(const Example& example, size_t answer);

// Everything that is said, for finding equal examples: XXH3-64 of kind, texts and messages.
uint64_t content_hash(const Example& example);

}  // namespace ingot
