#pragma once

#include <cstdint>

#include "ingot/base/error.h"

namespace ingot::jinja {

// What one rendering may use. A template is text from outside: without limits it could run for ever
// or fill the memory. The defaults are far above what conversations of megabytes need.
struct Limits {
  int64_t steps = 20'000'000;         // expressions evaluated and statements run
  int64_t bytes = int64_t{1} << 30;   // of all texts and lists made, also those let go
  int64_t output_bytes = 64ll << 20;  // of the result
  int32_t depth = 1000;               // of expressions, blocks and macro calls in one another
};

// Counts what a rendering uses and throws Error(format) at a limit.
class Budget {
 public:
  explicit Budget(const Limits& limits) : limits_(limits) {}

  const Limits& limits() const { return limits_; }
  void step() {
    check(++steps_ <= limits_.steps, ErrorKind::format, "used up its ", limits_.steps,
          " steps: the template loops for too long; shorten the conversation, or raise the limit "
          "`steps` if the template is right");
  }
  void bytes(int64_t more) {
    check(more >= 0 && more <= limits_.bytes - bytes_, ErrorKind::format, "used up its ",
          limits_.bytes, " bytes of texts and lists: ", bytes_, " in use, ", more,
          " more wanted; build smaller values, or raise the limit `bytes`");
    bytes_ += more;
  }
  void bytes(size_t more) { bytes(static_cast<int64_t>(more)); }
  void items(size_t more) {
    bytes(more > size_t{1} << 50 ? INT64_MAX : static_cast<int64_t>(more) * 24);
  }

 private:
  Limits limits_;
  int64_t steps_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace ingot::jinja
