#include "ingot/text/byte_alphabet.h"

#include <algorithm>
#include <array>

#include "ingot/text/utf8.h"

namespace ingot {
namespace {

constexpr bool prints(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr std::array<char32_t, 256> symbols = [] {
  std::array<char32_t, 256> out{};
  char32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    out[static_cast<size_t>(byte)] = prints(byte) ? static_cast<char32_t>(byte) : next++;
  }
  return out;
}();

constexpr char32_t symbol_codes = 0x144;

constexpr std::array<int16_t, symbol_codes> bytes = [] {
  std::array<int16_t, symbol_codes> out{};
  for (int16_t& byte : out) {
    byte = -1;
  }
  for (size_t byte = 0; byte < 256; ++byte) {
    out[symbols[byte]] = static_cast<int16_t>(byte);
  }
  return out;
}();

}  // namespace

char32_t byte_symbol(uint8_t byte) { return symbols[byte]; }

std::optional<uint8_t> symbol_byte(char32_t symbol) {
  if (symbol >= symbol_codes || bytes[symbol] < 0) {
    return std::nullopt;
  }
  return static_cast<uint8_t>(bytes[symbol]);
}

std::string bytes_by_symbol() {
  std::string out;
  for (int byte = 0; byte < 256; ++byte) {
    out += static_cast<char>(byte);
  }
  std::sort(out.begin(), out.end(), [](char a, char b) {
    return symbols[static_cast<uint8_t>(a)] < symbols[static_cast<uint8_t>(b)];
  });
  return out;
}

std::string to_symbols(std::string_view text) {
  std::string out;
  for (const char byte : text) {
    append_utf8(out, symbols[static_cast<uint8_t>(byte)]);
  }
  return out;
}

std::optional<std::string> from_symbols(std::string_view text) {
  if (!is_valid_utf8(text)) {
    return std::nullopt;
  }
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = utf8_char(text.data() + at);
    const std::optional<uint8_t> byte = symbol_byte(c.code);
    if (!byte) {
      return std::nullopt;
    }
    out += static_cast<char>(*byte);
    at += c.bytes;
  }
  return out;
}

}  // namespace ingot
