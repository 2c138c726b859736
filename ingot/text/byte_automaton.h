#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ingot {

// A regular expression as a deterministic automaton over the bytes of UTF-8, which says after each
// byte whether a text can still become a match of the whole expression. States are made when first
// reached. Willard and Louf 2023, arXiv:2307.09702, section 3, walk a vocabulary over such one.
//
// Understood are characters, `.` (any but a line end), [classes], \d \w \s and their opposites
// (ASCII ones), \n \r \t \f \v \0, \xHH, \uHHHH, groups ( ) and (?: ), alternatives |, and the
// repeats * + ? {m} {m,} {m,n}, greedy or not: which text is found first does not matter here. ^ at
// the beginning and $ at the end change nothing. Everything else is refused: look-around,
// references, \b.
class ByteAutomaton {
 public:
  using State = int32_t;
  static constexpr State dead = -1;

  // Throws Error(format) naming `subject` and the place of what is wrong or not understood, and
  // where the expression takes more than 2^18 steps or 2^16 states, or these 2^24 steps together.
  ByteAutomaton(std::string_view pattern, std::string subject);

  State start() const { return 0; }
  State step(State from, uint8_t byte);
  State walk(State from, std::string_view bytes);  // `from` may be dead
  bool accepts(State state) const { return states_[static_cast<size_t>(state)].accepts; }
  bool is_final(State state);  // it accepts, and no byte leads on
  bool matches(std::string_view text);

 private:
  friend class RegexParser;
  // One step of the nondeterministic automaton: over bytes of a range to `to`, or without any to
  // both.
  struct Step {
    uint8_t low = 0, high = 0;
    bool reads = false;
    int32_t to = -1;
    int32_t other = -1;
  };
  struct Deterministic {
    std::vector<int32_t> steps;  // that read, and the end where it is reached; sorted
    bool accepts = false;
    std::array<State, 256> next;
  };
  State state_of(std::vector<int32_t> from);

  std::string subject_;
  std::vector<Step> steps_;
  int32_t begin_ = 0;
  int32_t end_ = 0;
  std::vector<Deterministic> states_;
  std::map<std::vector<int32_t>, State> known_;
  size_t held_ = 0;  // steps of all states
};

// A pattern that matches `text` and nothing else.
std::string automaton_quoted(std::string_view text);

}  // namespace ingot
