#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ingot/text/train_bpe.h"

// The inner part of BpeTrainer: which pair is merged next, and what that changes.
namespace ingot {

struct CountedPair {
  TokenId left;
  TokenId right;
  int64_t count = 0;
  std::vector<uint32_t> words;  // in which it was seen; it may have gone, and may stand here twice
  bool touched = false;         // more frequent since it was queued
};

// Pairs by their two tokens: an open-addressed index of a list.
class CountedPairs {
 public:
  CountedPairs() : slots_(size_t{1} << 16, none) {}

  size_t of(TokenId left, TokenId right) {
    size_t at = place(left, right);
    while (slots_[at] != none) {
      const CountedPair& pair = pairs_[slots_[at]];
      if (pair.left == left && pair.right == right) {
        return slots_[at];
      }
      at = (at + 1) & (slots_.size() - 1);
    }
    slots_[at] = static_cast<uint32_t>(pairs_.size());
    pairs_.push_back({left, right, 0, {}, false});
    if (2 * pairs_.size() > slots_.size()) {
      grow();
    }
    return pairs_.size() - 1;
  }
  CountedPair& operator[](size_t i) { return pairs_[i]; }
  size_t size() const { return pairs_.size(); }

 private:
  static constexpr uint32_t none = UINT32_MAX;
  size_t place(TokenId left, TokenId right) const {
    const uint64_t key = uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
    return (key * 0x9E3779B97F4A7C15 >> 24) & (slots_.size() - 1);
  }
  void grow() {
    slots_.assign(2 * slots_.size(), none);
    for (size_t i = 0; i < pairs_.size(); ++i) {
      size_t at = place(pairs_[i].left, pairs_[i].right);
      while (slots_[at] != none) {
        at = (at + 1) & (slots_.size() - 1);
      }
      slots_[at] = static_cast<uint32_t>(i);
    }
  }

  std::vector<CountedPair> pairs_;
  std::vector<uint32_t> slots_;
};

// The state of training: every word as its tokens now, and the count of every pair.
class BpeMerging {
 public:
  BpeMerging(const WordCounts& words, const std::array<TokenId, 256>& byte_ids,
             std::vector<std::string> tokens, TieBreak ties)
      : words_(words), tokens_(std::move(tokens)), ties_(ties), seen_(words.size(), 0) {
    for (size_t i = 0; i < tokens_.size(); ++i) {
      ids_.emplace(tokens_[i], static_cast<TokenId>(i));
    }
    for (size_t w = 0; w < words.size(); ++w) {
      starts_.push_back(symbols_.size());
      for (const char byte : words.word(w)) {
        symbols_.push_back(byte_ids[static_cast<uint8_t>(byte)]);
      }
      lengths_.push_back(static_cast<uint32_t>(words.word(w).size()));
      for (size_t i = starts_[w]; i + 1 < symbols_.size(); ++i) {
        change(symbols_[i], symbols_[i + 1], words.count(w), static_cast<uint32_t>(w));
      }
    }
    queue_touched();
  }

  const std::vector<std::string>& tokens() const { return tokens_; }

  struct Made {
    MergeRule rule;
    int64_t count;
  };
  // Merges the most frequent pair; nothing where none occurs `least` times.
  std::optional<Made> merge(int64_t least) {
    const std::optional<size_t> best = next(least);
    if (!best) {
      return std::nullopt;
    }
    const TokenId left = pairs_[*best].left;
    const TokenId right = pairs_[*best].right;
    const int64_t count = pairs_[*best].count;
    const TokenId result = token_of(left, right);
    ++step_;
    const std::vector<uint32_t> words = std::move(pairs_[*best].words);
    pairs_[*best].words.clear();
    for (const uint32_t w : words) {
      if (std::exchange(seen_[w], step_) != step_) {
        merge_in(w, left, right, result);
      }
    }
    queue_touched();
    return Made{{left, right, result}, count};
  }

 private:
  struct Queued {
    int64_t count;
    size_t pair;
  };

  // A token that two different pairs spell is one token.
  TokenId token_of(TokenId left, TokenId right) {
    const std::string text =
        tokens_[static_cast<size_t>(left)] + tokens_[static_cast<size_t>(right)];
    const auto [found, fresh] = ids_.emplace(text, static_cast<TokenId>(tokens_.size()));
    if (fresh) {
      tokens_.push_back(text);
    }
    return found->second;
  }

  void change(TokenId left, TokenId right, int64_t by, uint32_t word) {
    const size_t i = pairs_.of(left, right);
    CountedPair& pair = pairs_[i];
    pair.count += by;
    if (by > 0) {
      if (pair.words.empty() || pair.words.back() != word) {
        pair.words.push_back(word);
      }
      if (!std::exchange(pair.touched, true)) {
        touched_.push_back(i);
      }
    }
  }

  void merge_in(uint32_t w, TokenId left, TokenId right, TokenId result) {
    TokenId* const s = symbols_.data() + starts_[w];
    const uint32_t n = lengths_[w];
    const int64_t count = words_.count(w);
    uint32_t out = 0;
    for (uint32_t i = 0; i < n;) {
      if (i + 1 == n || s[i] != left || s[i + 1] != right) {
        s[out++] = s[i++];
        continue;
      }
      change(left, right, -count, w);
      if (out > 0) {
        change(s[out - 1], left, -count, w);
        change(s[out - 1], result, count, w);
      }
      if (i + 2 < n) {
        change(right, s[i + 2], -count, w);
        change(result, s[i + 2], count, w);
      }
      s[out++] = result;
      i += 2;
    }
    lengths_[w] = out;
  }

  void queue_touched() {
    for (const size_t i : touched_) {
      pairs_[i].touched = false;
      if (pairs_[i].count > 0) {
        push({pairs_[i].count, i});
      }
    }
    touched_.clear();
  }

  auto order() {
    return [this](const Queued& a, const Queued& b) {
      return a.count != b.count ? a.count < b.count : goes_before(b.pair, a.pair);
    };
  }

  void push(const Queued& queued) {
    queue_.push_back(queued);
    std::push_heap(queue_.begin(), queue_.end(), order());
  }
  Queued pop() {
    std::pop_heap(queue_.begin(), queue_.end(), order());
    const Queued top = queue_.back();
    queue_.pop_back();
    return top;
  }
  // Among equals; first_seen is decided in next().
  bool goes_before(size_t a, size_t b) {
    const CountedPair& x = pairs_[a];
    const CountedPair& y = pairs_[b];
    if (ties_ == TieBreak::largest_bytes) {
      const auto text = [&](TokenId id) -> const std::string& {
        return tokens_[static_cast<size_t>(id)];
      };
      return std::tie(text(x.left), text(x.right)) > std::tie(text(y.left), text(y.right));
    }
    return std::tie(x.left, x.right) < std::tie(y.left, y.right);
  }

  // The first of the queue whose count is true; counts only go down while a pair is queued.
  std::optional<Queued> true_top() {
    while (!queue_.empty()) {
      Queued top = pop();
      const int64_t now = pairs_[top.pair].count;
      if (now == top.count) {
        return top;
      }
      if (now > 0 && now < top.count) {
        push({now, top.pair});
      }
    }
    return std::nullopt;
  }

  std::optional<size_t> next(int64_t least) {
    const std::optional<Queued> top = true_top();
    if (!top || top->count < least) {
      return std::nullopt;
    }
    if (ties_ != TieBreak::first_seen) {
      return top->pair;
    }
    std::vector<size_t> equal = {top->pair};
    std::optional<Queued> other = true_top();
    for (; other && other->count == top->count; other = true_top()) {
      equal.push_back(other->pair);
    }
    if (other) {
      push(*other);
    }
    const auto first = *std::min_element(equal.begin(), equal.end(), [&](size_t a, size_t b) {
      return first_place(a) < first_place(b);
    });
    std::sort(equal.begin(), equal.end());
    equal.erase(std::unique(equal.begin(), equal.end()), equal.end());
    for (const size_t pair : equal) {
      if (pair != first) {
        push({top->count, pair});
      }
    }
    return first;
  }

  std::pair<uint32_t, uint32_t> first_place(size_t i) {
    const CountedPair& pair = pairs_[i];
    std::pair<uint32_t, uint32_t> best = {UINT32_MAX, UINT32_MAX};
    for (const uint32_t w : pair.words) {
      const TokenId* const s = symbols_.data() + starts_[w];
      for (uint32_t at = 0; w < best.first && at + 1 < lengths_[w]; ++at) {
        if (s[at] == pair.left && s[at + 1] == pair.right) {
          best = {w, at};
        }
      }
    }
    return best;
  }

  const WordCounts& words_;
  std::vector<std::string> tokens_;
  TieBreak ties_;
  std::unordered_map<std::string, TokenId> ids_;
  std::vector<TokenId> symbols_;
  std::vector<size_t> starts_;
  std::vector<uint32_t> lengths_;
  CountedPairs pairs_;
  std::vector<size_t> touched_;
  std::vector<Queued> queue_;
  std::vector<uint32_t> seen_;  // the step that changed a word last
  uint32_t step_ = 0;
};

}  // namespace ingot
