#include "ingot/generate/automaton_filter.h"

#include <algorithm>
#include <cmath>

#include "ingot/base/error.h"

namespace ingot {

AutomatonFilter::AutomatonFilter(ByteAutomaton automaton, std::vector<std::string> bytes,
                                 std::vector<int64_t> stop_tokens)
    : shared_(new Shared{{}, std::move(automaton), std::move(bytes), std::move(stop_tokens), {}}),
      state_(shared_->automaton.start()) {}

const std::vector<bool>& AutomatonFilter::allowed() const {
  const auto [entry, fresh] = shared_->allowed.try_emplace(state_);
  std::vector<bool>& out = entry->second;
  if (fresh) {
    ByteAutomaton& automaton = shared_->automaton;
    out.resize(shared_->bytes.size(), false);
    for (size_t token = 0; token < out.size(); ++token) {
      const std::string& bytes = shared_->bytes[token];
      out[token] = !bytes.empty() && automaton.walk(state_, bytes) != ByteAutomaton::dead;
    }
    for (const int64_t stop : shared_->stop_tokens) {
      if (stop >= 0 && stop < static_cast<int64_t>(out.size())) {
        out[static_cast<size_t>(stop)] = automaton.accepts(state_);
      }
    }
  }
  return out;
}

void AutomatonFilter::apply(std::span<float> logits) const {
  const std::lock_guard lock(shared_->mutex);
  const std::vector<bool>& may = allowed();
  check(may.size() == logits.size(), ErrorKind::argument,
        "constrained decoding: the vocabulary has ", may.size(), " tokens with bytes, the model ",
        logits.size());
  bool any = false;
  for (size_t token = 0; token < logits.size(); ++token) {
    any = any || (may[token] && logits[token] != -HUGE_VALF);
    logits[token] = may[token] ? logits[token] : -HUGE_VALF;
  }
  check(any, ErrorKind::argument,
        "constrained decoding: no token of the vocabulary goes on with the ",
        "expression from here; other rules ban those that would");
}

void AutomatonFilter::accept(int64_t token) {
  const std::lock_guard lock(shared_->mutex);
  const auto& stops = shared_->stop_tokens;
  if (std::find(stops.begin(), stops.end(), token) != stops.end()) {
    stopped_ = true;
    return;
  }
  const auto next = shared_->automaton.walk(state_, shared_->bytes[static_cast<size_t>(token)]);
  check(next != ByteAutomaton::dead, ErrorKind::internal, "constrained decoding: token ", token,
        " was drawn though it may not come");
  state_ = next;
}

bool AutomatonFilter::complete() const {
  const std::lock_guard lock(shared_->mutex);
  return stopped_ || shared_->automaton.is_final(state_);
}

std::unique_ptr<TokenFilter> AutomatonFilter::copy() const {
  return std::make_unique<AutomatonFilter>(*this);
}

}  // namespace ingot
