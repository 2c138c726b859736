#include "ingot/text/regex_parser.h"

#include <algorithm>
#include <limits>

#include "ingot/base/error.h"
#include "ingot/text/utf8.h"

namespace ingot {
namespace {

constexpr char32_t last_code = 0x10FFFF;
constexpr int deepest = 200;
constexpr size_t most_steps = size_t{1} << 18;
constexpr int64_t unbounded = std::numeric_limits<int64_t>::max();
constexpr int64_t most_repeats = 10000;

using Codes = std::vector<std::pair<char32_t, char32_t>>;

Codes digits() { return {{'0', '9'}}; }
Codes word_characters() { return {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}; }
Codes spaces() { return {{'\t', '\r'}, {' ', ' '}}; }

// Sorted, without overlaps.
Codes merged(Codes codes) {
  std::sort(codes.begin(), codes.end());
  Codes out;
  for (const auto& [low, high] : codes) {
    if (!out.empty() && low <= out.back().second + 1) {
      out.back().second = std::max(out.back().second, high);
    } else {
      out.emplace_back(low, high);
    }
  }
  return out;
}

Codes all_but(const Codes& codes) {
  Codes out;
  char32_t next = 0;
  for (const auto& [low, high] : merged(codes)) {
    if (low > next) {
      out.emplace_back(next, low - 1);
    }
    next = high + 1;
  }
  if (next <= last_code) {
    out.emplace_back(next, last_code);
  }
  return out;
}

// The ranges without the surrogates, which UTF-8 has no bytes for.
Codes encodable(const Codes& codes) {
  Codes out;
  for (const auto& [low, high] : codes) {
    if (low < 0xD800) {
      out.emplace_back(low, std::min<char32_t>(high, 0xD7FF));
    }
    if (high > 0xDFFF) {
      out.emplace_back(std::max<char32_t>(low, 0xE000), high);
    }
  }
  return out;
}

}  // namespace

void RegexParser::refuse(const std::string& what) const {
  constexpr size_t shown = 200;  // bytes: a message is a line, a pattern may be a book
  const std::string_view start = pattern_.substr(0, shown);
  throw Error(ErrorKind::format, concat(automaton_.subject_, ": the expression at ", at_ + 1,
                                        " of '", start.substr(0, valid_utf8_prefix(start)),
                                        pattern_.size() > shown ? "…" : "", "': ", what));
}

void RegexParser::parse() {
  if (!is_valid_utf8(pattern_)) {
    refuse("no valid UTF-8");
  }
  take('^');
  const Part whole = alternatives();
  if (!done()) {
    refuse("a ) that nothing opened");
  }
  automaton_.begin_ = whole.begin;
  automaton_.end_ = whole.end;
}

bool RegexParser::take(char wanted) {
  const bool there = !done() && pattern_[at_] == wanted;
  at_ += there ? 1 : 0;
  return there;
}

char32_t RegexParser::character() {
  const Utf8Char read = utf8_char(pattern_.data() + at_);
  at_ += read.bytes;
  return read.code;
}

int32_t RegexParser::add(ByteAutomaton::Step step) {
  if (automaton_.steps_.size() >= most_steps) {
    refuse("it takes more than 262144 steps; repeat less");
  }
  automaton_.steps_.push_back(step);
  return static_cast<int32_t>(automaton_.steps_.size()) - 1;
}

void RegexParser::lead(int32_t from, int32_t to) {
  ByteAutomaton::Step& step = automaton_.steps_[static_cast<size_t>(from)];
  (step.to < 0 ? step.to : step.other) = to;
}

RegexParser::Part RegexParser::bytes(const std::vector<std::pair<uint8_t, uint8_t>>& ranges) {
  const int32_t end = joint();
  int32_t next = end;
  for (auto range = ranges.rbegin(); range != ranges.rend(); ++range) {
    next = add({range->first, range->second, true, next, -1});
  }
  return {next, end};
}

// A tree of forks, so that each leads to two.
RegexParser::Part RegexParser::either(const std::vector<Part>& parts) {
  const int32_t end = joint();
  std::vector<int32_t> begins;
  for (const Part& part : parts) {
    lead(part.end, end);
    begins.push_back(part.begin);
  }
  while (begins.size() > 1) {
    std::vector<int32_t> next;
    for (size_t i = 0; i + 1 < begins.size(); i += 2) {
      const int32_t fork = joint();
      lead(fork, begins[i]);
      lead(fork, begins[i + 1]);
      next.push_back(fork);
    }
    if (begins.size() % 2 == 1) {
      next.push_back(begins.back());
    }
    begins = std::move(next);
  }
  return {begins.front(), end};
}

RegexParser::Part RegexParser::alternatives() {
  if (++depth_ > deepest) {
    refuse("groups lie more than 200 deep in one another");
  }
  std::vector<Part> parts = {sequence()};
  while (take('|')) {
    parts.push_back(sequence());
  }
  --depth_;
  return parts.size() == 1 ? parts.front() : either(parts);
}

RegexParser::Part RegexParser::sequence() {
  const int32_t nothing = joint();
  Part out{nothing, nothing};
  while (!done() && peek() != '|' && peek() != ')') {
    if (peek() == '$' && at_ + 1 == pattern_.size()) {
      ++at_;
      break;
    }
    const Part next = repeated();
    lead(out.end, next.begin);
    out.end = next.end;
  }
  return out;
}

RegexParser::Part RegexParser::repeated() {
  const size_t from = at_;
  const Part first = atom();
  const size_t to = at_;
  const auto times = repeats();
  if (times.first == 1 && times.second == 1) {
    return first;
  }
  const Part out = repeat(from, to, first, times);
  if (peek() == '*' || peek() == '+' || peek() == '?' || peek() == '{') {
    refuse("a repeat of a repeat; put a group around the first");
  }
  return out;
}

// How often what stands before is repeated; once where nothing says.
std::pair<int64_t, int64_t> RegexParser::repeats() {
  std::pair<int64_t, int64_t> out{1, 1};
  const auto number = [&] {
    int64_t value = 0;
    const size_t begin = at_;
    while (!done() && peek() >= '0' && peek() <= '9' && at_ - begin < 6) {
      value = 10 * value + (pattern_[at_++] - '0');
    }
    if (at_ == begin || value > most_repeats) {
      refuse("a number of repeats from 0 to 10000 must stand here");
    }
    return value;
  };
  if (take('*')) {
    out = {0, unbounded};
  } else if (take('+')) {
    out = {1, unbounded};
  } else if (take('?')) {
    out = {0, 1};
  } else if (take('{')) {
    out.first = out.second = number();
    if (take(',')) {
      out.second = peek() == '}' ? unbounded : number();
    }
    if (!take('}')) {
      refuse("a } must stand here");
    }
    if (out.second < out.first) {
      refuse("fewer repeats at most than at least");
    }
  } else {
    return out;
  }
  take('?');  // not greedy
  return out;
}

// The atom between two places of the pattern is read once more for each repeat.
RegexParser::Part RegexParser::repeat(size_t from, size_t to, Part first,
                                      std::pair<int64_t, int64_t> times) {
  const size_t behind = at_;
  bool used = false;
  const auto next = [&] {
    if (!std::exchange(used, true)) {
      return first;
    }
    at_ = from;
    const Part part = atom();
    if (at_ != to) {
      refuse("an atom that reads otherwise the second time");
    }
    return part;
  };
  const int32_t begin = joint();
  Part out{begin, begin};
  for (int64_t i = 0; i < times.first; ++i) {
    const Part part = next();
    lead(out.end, part.begin);
    out.end = part.end;
  }
  const int32_t end = joint();
  if (times.second == unbounded) {
    const int32_t fork = joint();
    const Part part = next();
    lead(out.end, fork);
    lead(fork, part.begin);
    lead(fork, end);
    lead(part.end, fork);
  } else {
    for (int64_t i = times.first; i < times.second; ++i) {
      const int32_t fork = joint();
      const Part part = next();
      lead(out.end, fork);
      lead(fork, part.begin);
      lead(fork, end);
      out.end = part.end;
    }
    lead(out.end, end);
  }
  at_ = behind;
  return {out.begin, end};
}

RegexParser::Part RegexParser::group() {
  if (take('?') && !take(':')) {
    refuse(
        "a group that looks around, is named or sets options; only ( ) and (?: ) are understood");
  }
  const Part inner = alternatives();
  if (!take(')')) {
    refuse("a ) must stand here");
  }
  return inner;
}

RegexParser::Part RegexParser::atom() {
  switch (peek()) {
    case '(': ++at_; return group();
    case '[': ++at_; return characters(bracket());
    case '\\': ++at_; return characters(escape());
    case '.': ++at_; return characters(all_but({{'\n', '\n'}}));
    case '*':
    case '+':
    case '?':
    case '{': refuse("a repeat of nothing; write \\ before it if the character is meant");
    case '^':
    case '$': refuse("an anchor within the expression, which always matches the whole text");
    default: break;
  }
  const char32_t code = character();
  return characters({{code, code}});
}

char32_t RegexParser::hexadecimal(int digits) {
  char32_t value = 0;
  for (int i = 0; i < digits; ++i) {
    const char digit = peek();
    const bool letter = (digit >= 'a' && digit <= 'f') || (digit >= 'A' && digit <= 'F');
    if (!letter && !(digit >= '0' && digit <= '9')) {
      refuse(concat(digits, " hexadecimal digits must stand here"));
    }
    ++at_;
    value = value * 16 + static_cast<char32_t>(letter ? (digit | 0x20) - 'a' + 10 : digit - '0');
  }
  return value;
}

// What stands behind a \.
RegexParser::Codes RegexParser::escape() {
  if (done()) {
    refuse("a \\ at the end");
  }
  const char32_t code = character();
  const auto one = [](char32_t c) { return Codes{{c, c}}; };
  switch (code) {
    case 'd': return digits();
    case 'D': return all_but(digits());
    case 'w': return word_characters();
    case 'W': return all_but(word_characters());
    case 's': return spaces();
    case 'S': return all_but(spaces());
    case 'n': return one('\n');
    case 'r': return one('\r');
    case 't': return one('\t');
    case 'f': return one('\f');
    case 'v': return one('\v');
    case '0': return one(0);
    case 'x': return one(hexadecimal(2));
    case 'u': return one(hexadecimal(4));
    default: break;
  }
  const bool letter =
      (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z') || (code >= '1' && code <= '9');
  if (letter) {
    refuse(concat("\\", utf8_of(code), " is not understood"));
  }
  return one(code);
}

// One character of a class, or a whole class behind a \ in `whole`.
char32_t RegexParser::bracket_char(Codes& whole) {
  if (done()) {
    refuse("a ] must stand here");
  }
  if (!take('\\')) {
    return character();
  }
  if (take('b')) {
    return '\b';
  }
  whole = escape();
  return whole.size() == 1 && whole[0].first == whole[0].second ? whole[0].first : last_code + 1;
}

RegexParser::Codes RegexParser::bracket() {
  const bool negated = take('^');
  Codes out;
  for (bool first = true; first || peek() != ']'; first = false) {
    Codes whole;
    const char32_t low = bracket_char(whole);
    if (low > last_code) {
      out.insert(out.end(), whole.begin(), whole.end());
      continue;
    }
    char32_t high = low;
    if (peek() == '-' && at_ + 1 < pattern_.size() && pattern_[at_ + 1] != ']') {
      ++at_;
      high = bracket_char(whole);
      if (high > last_code || high < low) {
        refuse("a range of characters that runs backwards");
      }
    }
    out.emplace_back(low, high);
  }
  ++at_;
  return negated ? all_but(out) : out;
}

RegexParser::Part RegexParser::characters(Codes codes) {
  std::vector<Part> parts;
  for (const auto& [low, high] : encodable(merged(std::move(codes)))) {
    parts.push_back(utf8_bytes(low, high));
  }
  if (parts.empty()) {
    refuse("a class without characters");
  }
  return parts.size() == 1 ? parts.front() : either(parts);
}

// The byte sequences of a range: cut where the number of bytes changes, and where the last bytes do
// not run through all their values (Ken Thompson's construction, as in Russ Cox's RE2).
RegexParser::Part RegexParser::utf8_bytes(char32_t low, char32_t high) {
  for (const char32_t limit : {0x7FU, 0x7FFU, 0xFFFFU}) {
    if (low <= limit && limit < high) {
      return either({utf8_bytes(low, limit), utf8_bytes(limit + 1, high)});
    }
  }
  for (const char32_t mask : {0x3FU, 0xFFFU, 0x3FFFFU}) {
    if (low > 0x7F && (low & ~mask) != (high & ~mask)) {
      if ((low & mask) != 0) {
        return either({utf8_bytes(low, low | mask), utf8_bytes((low | mask) + 1, high)});
      }
      if ((high & mask) != mask) {
        return either({utf8_bytes(low, (high & ~mask) - 1), utf8_bytes(high & ~mask, high)});
      }
    }
  }
  const std::string first = utf8_of(low);
  const std::string last = utf8_of(high);
  std::vector<std::pair<uint8_t, uint8_t>> ranges;
  for (size_t i = 0; i < first.size(); ++i) {
    ranges.emplace_back(static_cast<uint8_t>(first[i]), static_cast<uint8_t>(last[i]));
  }
  return bytes(ranges);
}

}  // namespace ingot
