#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "ingot/base/error.h"

namespace ingot {

// Why a row of training data cannot be used: what a policy of dropping counts by.
enum class RowFault : uint8_t {
  json,          // not JSON, or JSON with a trailing comma
  utf8,          // not UTF-8
  layout,        // not of the layout that the file's other rows have
  conversation,  // a message without role or content, or of a wrong type
  empty,         // a text that must say something says nothing
  role,          // a role that nobody knows
  order,         // roles in an order that no conversation has
  identical,     // the chosen and the rejected answer are the same
  duplicate,     // the id or the content of an earlier row
  rendering,     // the chat template refuses it
  untrained,     // no token of it would be learnt
  length,        // longer than allowed
  cut,           // an answer that ends before its end
};
inline constexpr size_t row_faults = 13;

inline std::string_view name(RowFault fault) {
  constexpr std::array<std::string_view, row_faults> names = {
      "not JSON",      "not UTF-8",        "mixed layouts",      "bad message",
      "empty text",    "unknown role",     "roles out of order", "identical answers",
      "duplicate",     "template refuses", "nothing learnt",     "too long",
      "answer cut off"};
  return names[static_cast<size_t>(fault)];
}

// An Error(format) about one row. Its message begins with file and line.
class RowError : public Error {
 public:
  RowError(RowFault fault, const std::string& message)
      : Error(ErrorKind::format, message), fault_(fault) {}
  RowFault fault() const { return fault_; }

 private:
  RowFault fault_;
};

template <class... Parts>
void check_row(Condition condition, RowFault fault, const Parts&... parts) {
  if (!condition.holds) [[unlikely]] {
    throw RowError(fault, concat(parts...));
  }
}

}  // namespace ingot
