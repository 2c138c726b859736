#include "ingot/data/fim.h"

#include <algorithm>

#include "ingot/base/error.h"
#include "ingot/text/utf8.h"

namespace ingot {
namespace {

size_t byte_at(std::string_view text, int64_t character) {
  size_t byte = 0;
  for (; character > 0; --character) {
    byte += utf8_char(text.data() + byte).bytes;
  }
  return byte;
}

}  // namespace

std::vector<FimPart> fim_parts(std::string_view text, int64_t begin, int64_t end, FimOrder order) {
  const int64_t characters = utf8_length(text);
  check(begin >= 0 && begin <= end && end <= characters, ErrorKind::argument, "fim: the middle ",
        begin, " to ", end, " does not lie in a text of ", characters, " characters");
  const size_t first = byte_at(text, begin);
  const size_t second = first + byte_at(text.substr(first), end - begin);
  const std::string prefix(text.substr(0, first));
  const std::string middle(text.substr(first, second - first));
  const std::string suffix(text.substr(second));
  switch (order) {
    case FimOrder::psm:
      return {{FimSentinel::prefix, prefix},
              {FimSentinel::suffix, suffix},
              {FimSentinel::middle, middle}};
    case FimOrder::spm:
      return {{FimSentinel::suffix, suffix},
              {FimSentinel::prefix, prefix},
              {FimSentinel::middle, middle}};
    case FimOrder::spm_v2:
      return {{FimSentinel::prefix, ""},
              {FimSentinel::suffix, suffix},
              {FimSentinel::middle, prefix + middle}};
  }
  return {};
}

std::pair<int64_t, int64_t> fim_cuts(int64_t characters, const RandomKey& key) {
  const Philox random(key);
  const auto places = static_cast<uint64_t>(characters) + 1;
  const auto a = static_cast<int64_t>(random.bits(0) % places);
  const auto b = static_cast<int64_t>(random.bits(1) % places);
  return {std::min(a, b), std::max(a, b)};
}

}  // namespace ingot
