#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ingot/text/byte_automaton.h"

namespace ingot {

// Reads a regular expression into the steps of a ByteAutomaton: Thompson 1968, "Regular expression
// search algorithm".
class RegexParser {
 public:
  RegexParser(std::string_view pattern, ByteAutomaton& automaton)
      : pattern_(pattern), automaton_(automaton) {}

  void parse();  // sets begin_ and end_

 private:
  // Steps that begin at one place and end at one that leads nowhere yet.
  struct Part {
    int32_t begin, end;
  };
  using Codes = std::vector<std::pair<char32_t, char32_t>>;  // ranges, both ends within

  Part alternatives();
  Part sequence();
  Part repeated();
  Part atom();
  Part group();
  std::pair<int64_t, int64_t> repeats();
  Part repeat(size_t from, size_t to, Part first, std::pair<int64_t, int64_t> times);

  Codes bracket();
  Codes escape();
  char32_t bracket_char(Codes& whole);
  char32_t hexadecimal(int digits);
  Part characters(Codes codes);
  Part utf8_bytes(char32_t low, char32_t high);

  int32_t add(ByteAutomaton::Step step);
  int32_t joint() { return add({}); }
  Part bytes(const std::vector<std::pair<uint8_t, uint8_t>>& ranges);
  void lead(int32_t from, int32_t to);
  Part either(const std::vector<Part>& parts);

  bool done() const { return at_ >= pattern_.size(); }
  char peek() const { return done() ? '\0' : pattern_[at_]; }
  bool take(char wanted);
  char32_t character();
  [[noreturn]] void refuse(const std::string& what) const;

  std::string_view pattern_;
  ByteAutomaton& automaton_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace ingot
