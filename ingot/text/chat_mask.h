#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ingot/text/chat_template.h"

namespace ingot {

// What training learns of a conversation, found by rendering its beginnings with and without each
// turn, never from words of the template:
//
//   before_i = render(turns 0 … i−1, with the generation prompt)   what the model sees when it
//   writes after_i  = render(turns 0 … i)                                 the same and what it
//   should write
//
// after_i must begin with before_i; the rest of after_i is learnt, up to and with the last stop
// text in it (what follows, such as a line end, the model never writes). A turn of another role
// than assistant is learnt whole: before_i is then rendered without the generation prompt.
//
// Some templates render an earlier turn otherwise than a last one (reasoning dropped, another end).
// What the model would see at the time of that turn then is no beginning of the whole text, and one
// text cannot serve both turns: the conversation becomes several texts, each a beginning of it, and
// each turn is learnt in exactly one, as it is seen at inference.

struct Span {
  size_t begin = 0, end = 0;  // bytes
};

struct TrainingText {
  std::string text;
  std::vector<Span> learnt;   // in order, apart from one another, none empty
  std::vector<size_t> turns;  // whose they are: indices of messages
};

enum class Rewrites : uint8_t {
  split,   // several texts
  refuse,  // an error
};

struct MaskOptions {
  std::vector<std::string> roles = {"assistant"};  // learnt, unless a message says otherwise
  std::vector<std::string> stops;                  // texts that end a turn; empty: eos_token
  Rewrites rewrites = Rewrites::split;
  ApplyOptions apply;  // add_generation_prompt is not used
};

// Throws Error(format) that names the turn: where nothing is learnt, where a turn does not continue
// the generation prompt, where the template refuses a beginning of the conversation.
std::vector<TrainingText> training_texts(const ChatTemplate& chat, const Conversation& conversation,
                                         const MaskOptions& options = {});

// Which tokens of a text are learnt: those that begin within a learnt span. `bytes[i]` is how many
// bytes of the text token i stands for; 0 for a token that was added and stands for none, which is
// not learnt. Throws Error(argument) unless the lengths add up to the text.
struct TokenMask {
  std::vector<uint8_t> learnt;  // 1 or 0
  // Tokens that begin before a span and end within it: the tokenizer joins the prompt's end with
  // the answer's start, so that the ids of the prompt differ from those at inference.
  std::vector<size_t> straddling;
};
TokenMask token_mask(const TrainingText& text, std::span<const int64_t> bytes);

// The text with what is learnt between markers, for people to read: «learnt» plainly, green on a
// terminal.
enum class Colours : uint8_t { none, terminal };
std::string shown(const TrainingText& text, Colours colours);

}  // namespace ingot
