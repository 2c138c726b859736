#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ingot {

// Ends a text before the first of some strings, while the text arrives in parts: what may yet
// become a stop string is held back until it is known not to. Parts of whole characters stay that
// where the stop strings are whole characters too.
class StopText {
 public:
  // Empty strings are ignored.
  explicit StopText(std::vector<std::string> stops = {});

  // What is certain to stand before any stop string. After one was found, nothing.
  std::string add(std::string_view part);
  std::string finish();  // what was held back
  // The string that ended the text; empty while none has.
  const std::string& found() const { return found_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  std::string found_;
};

}  // namespace ingot
