#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ingot/text/chat_mask.h"

namespace ingot {

// Whether a model's chat template fits training: conversations of one to three exchanges, with and
// without a system message, and with tools, are rendered and looked at. Of each it is found out
//   that it renders,
//   that it holds the BOS token at most once (with `encode`: also among the ids),
//   that what is learnt of each turn ends in a stop text, which the model so learns to write,
//   that what training sees before an answer is what inference sees (with `encode`: as ids too),
//   whether one text serves all turns, or the template rewrites earlier ones (see chat_mask.h).
struct ChatFinding {
  enum class State : uint8_t { good, bad, note };
  std::string conversation;  // "2 exchanges, system"
  std::string subject;       // "turn end"
  State state = State::good;
  std::string found;  // exact texts, in quotes
};

struct ChatCheckOptions {
  MaskOptions mask;
  // The ids of a rendered text, as inference computes them; absent: only texts are compared.
  std::function<std::vector<int64_t>(std::string_view)> encode;
  std::optional<int64_t> bos_id;
};

std::vector<ChatFinding> check_chat(const ChatTemplate& chat, const ChatCheckOptions& options = {});

bool is_good(const std::vector<ChatFinding>& findings);  // none is bad

// A table, a line a finding: "✓ 1 exchange             turn end       "<|im_end|>"". Marks are
// green and red on a terminal.
std::string text_of(const std::vector<ChatFinding>& findings, Colours colours);

}  // namespace ingot
