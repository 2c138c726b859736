#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ingot {

// GPT-2's alphabet of bytes (openai/gpt-2, src/encoder.py, bytes_to_unicode): every byte has a
// printable character, itself where it is printable in Latin-1 and otherwise, in ascending order,
// one from U+0100 on. A space is 'Ġ', a line feed 'Ċ'.

char32_t byte_symbol(uint8_t byte);
std::optional<uint8_t> symbol_byte(char32_t symbol);

// All bytes in the order of their characters: '!' is first. Byte-level vocabularies start so.
std::string bytes_by_symbol();

std::string to_symbols(std::string_view bytes);
// The bytes that a text of such characters spells; nothing where it has others or is not UTF-8.
std::optional<std::string> from_symbols(std::string_view symbols);

}  // namespace ingot
