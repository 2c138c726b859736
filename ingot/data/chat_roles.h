#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ingot/data/layout.h"

namespace ingot {

// The role that a name of ShareGPT, OpenAssistant or OpenAI stands for: "human" is the user, "gpt"
// the assistant. Throws RowError(role) that begins with `place` and names the nearest known one.
std::string known_role(std::string_view role, const std::string& place);

// Checks a conversation: known roles in an order that a conversation has, and every text says
// something (an assistant that calls tools need not). Throws RowError that begins with `place` and
// names the message.
void check_messages(const std::vector<Message>& messages, RoleOrder order,
                    const std::string& place);

}  // namespace ingot
