#include "ingot/text/byte_automaton.h"

#include <algorithm>

#include "ingot/base/error.h"
#include "ingot/text/regex_parser.h"

namespace ingot {
namespace {

constexpr size_t most_states = size_t{1} << 16;
constexpr size_t most_held = size_t{1} << 24;  // steps of all states together: 64 MiB
constexpr ByteAutomaton::State not_known = -2;

}  // namespace

ByteAutomaton::ByteAutomaton(std::string_view pattern, std::string subject)
    : subject_(std::move(subject)) {
  RegexParser(pattern, *this).parse();
  state_of({begin_});
}

// The state of all steps that can be reached from some without reading.
ByteAutomaton::State ByteAutomaton::state_of(std::vector<int32_t> from) {
  std::vector<bool> seen(steps_.size(), false);
  std::vector<int32_t> kept;
  while (!from.empty()) {
    const int32_t at = from.back();
    from.pop_back();
    if (at < 0 || seen[static_cast<size_t>(at)]) {
      continue;
    }
    seen[static_cast<size_t>(at)] = true;
    const Step& step = steps_[static_cast<size_t>(at)];
    if (step.reads || at == end_) {
      kept.push_back(at);
    }
    if (!step.reads) {
      from.push_back(step.to);
      from.push_back(step.other);
    }
  }
  if (kept.empty()) {
    return dead;
  }
  std::sort(kept.begin(), kept.end());
  const auto [entry, fresh] = known_.try_emplace(kept, static_cast<State>(states_.size()));
  if (fresh) {
    check(states_.size() < most_states, ErrorKind::format, subject_,
          ": the expression takes more than ", most_states, " states; make it simpler");
    held_ += kept.size();
    check(held_ <= most_held, ErrorKind::format, subject_,
          ": the expression's states take more than ", most_held, " steps; nest fewer repeats");
    Deterministic state;
    state.accepts = std::binary_search(kept.begin(), kept.end(), end_);
    state.steps = std::move(kept);
    state.next.fill(not_known);
    states_.push_back(std::move(state));
  }
  return entry->second;
}

ByteAutomaton::State ByteAutomaton::step(State from, uint8_t byte) {
  State next = states_[static_cast<size_t>(from)].next[byte];
  if (next == not_known) {
    std::vector<int32_t> reached;
    for (const int32_t at : states_[static_cast<size_t>(from)].steps) {
      const Step& step = steps_[static_cast<size_t>(at)];
      if (step.reads && step.low <= byte && byte <= step.high) {
        reached.push_back(step.to);
      }
    }
    next = state_of(std::move(reached));
    states_[static_cast<size_t>(from)].next[byte] = next;
  }
  return next;
}

ByteAutomaton::State ByteAutomaton::walk(State from, std::string_view bytes) {
  for (size_t i = 0; i < bytes.size() && from != dead; ++i) {
    from = step(from, static_cast<uint8_t>(bytes[i]));
  }
  return from;
}

bool ByteAutomaton::is_final(State state) {
  const Deterministic& own = states_[static_cast<size_t>(state)];
  return own.accepts && own.steps.size() == 1;
}

bool ByteAutomaton::matches(std::string_view text) {
  const State last = walk(start(), text);
  return last != dead && accepts(last);
}

std::string automaton_quoted(std::string_view text) {
  std::string out;
  for (const char letter : text) {
    if (std::string_view(R"(\^$.|?*+()[]{})").find(letter) != std::string_view::npos) {
      out += '\\';
    }
    out += letter;
  }
  return out;
}

}  // namespace ingot
