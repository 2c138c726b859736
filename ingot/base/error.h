#pragma once

#include <cstdint>
#include <source_location>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace ingot {

// What went wrong, coarse enough to choose an exit code: see exit_code() in cli/.
enum class ErrorKind : uint8_t {
  argument,  // a caller passed a value outside its documented range
  shape,     // shapes that do not fit together
  dtype,     // an element type the operation does not take
  device,    // a device that is absent, or two devices in one operation
  io,        // the operating system refused a file operation
  format,    // bytes that are not what they claim to be
  config,    // a recipe or command line that cannot be used
  comm,      // ranks that disagree or do not answer
  numeric,   // a value that is not finite where it must be
  internal,  // a defect of Ingot
};

std::string_view name(ErrorKind kind);

// The only exception Ingot throws. The message has the form
//   <subject>: <what is wrong>: <both sides' values, named>; <what to do>
// in lower case without a full stop.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message,
        std::source_location where = std::source_location::current());

  ErrorKind kind() const { return kind_; }
  const std::source_location& where() const { return where_; }
  const char* what() const noexcept override { return message_.c_str(); }

  // Adds what was being done, while the error travels up: "while loading step-2000".
  Error& within(std::string_view context);

 private:
  ErrorKind kind_;
  std::source_location where_;
  std::string message_;
};

// The parts streamed one after the other: concat("a is ", 3) = "a is 3".
template <class... Parts>
std::string concat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

// A truth value that remembers where it was written down; implicit on purpose.
struct Condition {
  template <class Value>
    requires std::is_constructible_v<bool, Value>
  Condition(const Value& value, std::source_location here = std::source_location::current())
      : holds(static_cast<bool>(value)), where(here) {}

  bool holds;
  std::source_location where;
};

// Throws Error(kind, concat(parts...)) unless `condition` holds. Parts are formatted on failure
// only.
template <class... Parts>
void check(Condition condition, ErrorKind kind, const Parts&... parts) {
  if (!condition.holds) [[unlikely]] {
    throw Error(kind, concat(parts...), condition.where);
  }
}

}  // namespace ingot
