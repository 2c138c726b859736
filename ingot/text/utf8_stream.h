#pragma once

#include <string>
#include <string_view>

#include "ingot/text/utf8.h"

namespace ingot {

// Bytes that arrive in parts, given out in whole characters: the start of one waits for the rest of
// it. U+FFFD stands where bytes make no character, as in with_replacements().
class Utf8Stream {
 public:
  std::string add(std::string_view bytes);
  std::string finish();  // what still waits

 private:
  std::string waiting_;
};

}  // namespace ingot
