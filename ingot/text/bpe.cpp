#include "ingot/text/bpe.h"

#include <algorithm>
#include <array>
#include <utility>

#include "ingot/base/error.h"
#include "ingot/text/utf8.h"

namespace ingot {
namespace {

constexpr size_t short_symbols = 256;
constexpr uint32_t neighbour_bits = 17;

uint64_t neighbour_place(char32_t left, char32_t right) {
  return ((uint64_t{left} << 21 | right) * 0x9E3779B97F4A7C15) >> (64 - neighbour_bits);
}

// <0x41> for 'A', as SentencePiece writes byte tokens.
std::string byte_token(int byte) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  const auto i = static_cast<size_t>(byte);
  return {'<', '0', 'x', digits[i / 16], digits[i % 16], '>'};
}

uint32_t largest_rank(const std::vector<uint32_t>& ranks) {
  uint32_t most = 0;
  for (const uint32_t rank : ranks) {
    most = rank == Merge::never ? most : std::max(most, rank);
  }
  return most;
}

bool all_ids(const std::vector<TokenId>& ids) {
  return std::all_of(ids.begin(), ids.end(), [](TokenId id) { return id != no_token; });
}

// Calls each(left, right) for every cut of a token; between characters unless in bytes.
template <class Each>
void for_each_cut(std::string_view text, bool bytes, const Each& each) {
  for (size_t cut = 1; cut < text.size(); ++cut) {
    if (bytes || (static_cast<uint8_t>(text[cut]) & 0xC0) != 0x80) {
      each(text.substr(0, cut), text.substr(cut));
    }
  }
}

}  // namespace

BpeModel::BpeModel(const Vocabulary& tokens, const std::vector<MergeRule>& merges,
                   BpeSettings settings)
    : settings_(std::move(settings)), pairs_(merges.size()) {
  for (size_t i = 0; i < merges.size(); ++i) {
    pairs_.add(merges[i].left, merges[i].right, {static_cast<uint32_t>(i), merges[i].result});
  }
  packs_ranks_ = merges.size() < size_t{1} << 24;
  prepare(tokens);
}

BpeModel::BpeModel(const Vocabulary& tokens, const std::vector<uint32_t>& ranks,
                   BpeSettings settings)
    : settings_(std::move(settings)) {
  first_extra_ = static_cast<TokenId>(tokens.size());
  const auto id_of = [&](std::string_view part) {
    const TokenId id = tokens.find(part);
    if (id != no_token || settings_.bytes || utf8_char(part.data()).bytes != part.size()) {
      return id;
    }
    const auto next = static_cast<TokenId>(first_extra_ + static_cast<TokenId>(extra_.size()));
    return extra_.try_emplace(std::string(part), next).first->second;
  };
  struct Rule {
    TokenId left, right;
    Merge merge;
  };
  std::vector<Rule> rules;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    if (ranks[i] != Merge::never && tokens.find(tokens.text(id)) == id) {
      for_each_cut(tokens.text(id), settings_.bytes, [&](std::string_view a, std::string_view b) {
        const TokenId left = id_of(a);
        const TokenId right = left == no_token ? no_token : id_of(b);
        if (right != no_token) {
          rules.push_back({left, right, {ranks[i], id}});
        }
      });
    }
  }
  pairs_ = PairMap(rules.size());
  for (const Rule& rule : rules) {
    pairs_.add(rule.left, rule.right, rule.merge);
  }
  packs_ranks_ = largest_rank(ranks) < uint32_t{1} << 24;
  prepare(tokens);
}

void BpeModel::prepare(const Vocabulary& tokens) {
  if (settings_.bytes) {
    byte_pairs_.resize(65536);
    for (int byte = 0; byte < 256; ++byte) {
      const char letter = static_cast<char>(byte);
      byte_ids_.push_back(tokens.find({&letter, 1}));
    }
    for (size_t i = 0; i < byte_pairs_.size(); ++i) {
      const TokenId left = byte_ids_[i >> 8];
      const TokenId right = byte_ids_[i & 255];
      byte_pairs_[i] = left == no_token || right == no_token ? Merge{} : pairs_.find(left, right);
    }
  } else {
    for (int byte = 0; byte < 256; ++byte) {
      byte_ids_.push_back(tokens.find(byte_token(byte)));
    }
    settings_.byte_fallback = settings_.byte_fallback && all_ids(byte_ids_);
    note_neighbours(tokens);
  }
}

// No merge joins two characters that stand side by side in no token, so a text may be cut between
// them: what is not cut into words by a pre-tokenizer is cut here.
void BpeModel::note_neighbours(const Vocabulary& tokens) {
  if (!settings_.continuing_prefix.empty() || !settings_.end_suffix.empty()) {
    return;
  }
  neighbours_.assign((size_t{1} << neighbour_bits) / 64, 0);
  for (TokenId id = 0; id < tokens.size(); ++id) {
    const std::string_view text = tokens.text(id);
    char32_t left = 0;
    for (size_t at = 0; at < text.size();) {
      const Utf8Char c = utf8_char(text.data() + at);
      if (at > 0) {
        const uint64_t bit = neighbour_place(left, c.code);
        neighbours_[bit >> 6] |= uint64_t{1} << (bit & 63);
      }
      left = c.code;
      at += c.bytes;
    }
  }
}

bool BpeModel::may_join(char32_t left, char32_t right) const {
  const uint64_t bit = neighbour_place(left, right);
  return (neighbours_[bit >> 6] >> (bit & 63) & 1) != 0;
}

void BpeModel::encode(const Vocabulary& tokens, std::string_view word, BpeScratch& scratch,
                      std::vector<TokenId>& out) const {
  if (word.empty()) {
    return;
  }
  check(word.size() < UINT32_MAX, ErrorKind::argument, "tokenizer: a word has ", word.size(),
        " bytes; the most is 4 GiB");
  if (neighbours_.empty() || settings_.ignore_merges) {
    encode_part(tokens, word, scratch, out);
    return;
  }
  const size_t begin = out.size();
  size_t part = 0;
  char32_t left = 0;
  for (size_t at = 0; at < word.size();) {
    const Utf8Char c = utf8_char(word.data() + at);
    if (at > 0 && !may_join(left, c.code)) {
      encode_part(tokens, word.substr(part, at - part), scratch, out);
      part = at;
    }
    left = c.code;
    at += c.bytes;
  }
  encode_part(tokens, word.substr(part), scratch, out);
  if (settings_.fuse_unknown && settings_.unknown != no_token) {
    const TokenId unknown = settings_.unknown;
    out.erase(std::unique(out.begin() + static_cast<std::ptrdiff_t>(begin), out.end(),
                          [=](TokenId a, TokenId b) { return a == unknown && b == unknown; }),
              out.end());
  }
}

void BpeModel::encode_part(const Vocabulary& tokens, std::string_view word, BpeScratch& scratch,
                           std::vector<TokenId>& out) const {
  if (scratch.cache.append(word, out)) {
    return;
  }
  const size_t before = out.size();
  const TokenId whole = settings_.ignore_merges ? tokens.find(word) : no_token;
  if (whole != no_token) {
    out.push_back(whole);
  } else {
    split(tokens, word, scratch);
    if (scratch.ids.size() <= short_symbols && packs_ranks_) {
      merge_short(word, scratch);
    } else {
      merge_long(scratch);
    }
    emit(word, scratch, out);
  }
  scratch.cache.keep(word, std::span(out).subspan(before));
}

// The symbols a word begins as. A character without a token is no_token where something stands for
// it, and left out otherwise.
void BpeModel::split(const Vocabulary& tokens, std::string_view word, BpeScratch& scratch) const {
  scratch.ids.clear();
  scratch.begins.clear();
  const bool keeps_unknown = settings_.unknown != no_token || settings_.byte_fallback;
  if (settings_.bytes) {
    for (size_t at = 0; at < word.size(); ++at) {
      const TokenId id = byte_ids_[static_cast<uint8_t>(word[at])];
      if (id != no_token || keeps_unknown) {
        scratch.ids.push_back(id);
        scratch.begins.push_back(static_cast<uint32_t>(at));
      }
    }
    return;
  }
  for (size_t at = 0; at < word.size();) {
    const size_t bytes = utf8_char(word.data() + at).bytes;
    const TokenId id = symbol(tokens, word.substr(at, bytes), at == 0, at + bytes == word.size());
    if (id != no_token || keeps_unknown) {
      scratch.ids.push_back(id);
      scratch.begins.push_back(static_cast<uint32_t>(at));
    }
    at += bytes;
  }
}

TokenId BpeModel::symbol(const Vocabulary& tokens, std::string_view character, bool first,
                         bool last) const {
  if (settings_.continuing_prefix.empty() && settings_.end_suffix.empty()) {
    const TokenId id = tokens.find(character);
    if (id != no_token || extra_.empty()) {
      return id;
    }
    const auto found = extra_.find(std::string(character));
    return found == extra_.end() ? no_token : found->second;
  }
  std::string whole = first ? "" : settings_.continuing_prefix;
  whole += character;
  whole += last ? settings_.end_suffix : "";
  return tokens.find(whole);
}

// A key is rank and place in one integer, so that the smallest key is the merge to make.
void BpeModel::merge_short(std::string_view word, BpeScratch& scratch) const {
  const auto n = static_cast<uint32_t>(scratch.ids.size());
  const uint32_t padded = (n + 15) / 16 * 16;
  alignas(32) std::array<uint32_t, short_symbols> keys;
  std::array<TokenId, short_symbols> results;
  std::array<uint16_t, short_symbols + 1> previous;
  scratch.next.resize(n);
  TokenId* ids = scratch.ids.data();
  uint32_t* next = scratch.next.data();
  const auto set = [&](uint32_t at, const Merge& merge) {
    keys[at] = merge.rank == Merge::never ? Merge::never : merge.rank << 8 | at;
    results[at] = merge.result;
  };
  for (uint32_t i = n == 0 ? 0 : n - 1; i < padded; ++i) {
    keys[i] = Merge::never;
  }
  for (uint32_t i = 0; i < n; ++i) {
    next[i] = i + 1;
    previous[i + 1] = static_cast<uint16_t>(i);
  }
  // Where no byte was left out, a word's symbols are its bytes, and their pairs are in a table.
  const bool plain = settings_.bytes && word.size() == n;
  const auto* bytes = reinterpret_cast<const uint8_t*>(word.data());
  for (uint32_t i = 0; i + 1 < n; ++i) {
    set(i, plain ? byte_pairs_[size_t{bytes[i]} << 8 | bytes[i + 1]]
                 : pairs_.find(ids[i], ids[i + 1]));
  }
  while (true) {
    uint32_t best = Merge::never;
    for (uint32_t i = 0; i < padded; ++i) {
      best = std::min(best, keys[i]);
    }
    if (best == Merge::never) {
      return;
    }
    const uint32_t at = best & 255;
    const uint32_t gone = next[at];
    const uint32_t after = next[gone];
    ids[at] = results[at];
    next[at] = after;
    keys[gone] = Merge::never;
    previous[after] = static_cast<uint16_t>(at);
    set(at, after < n ? pairs_.find(ids[at], ids[after]) : Merge{});
    if (at > 0) {
      set(previous[at], pairs_.find(ids[previous[at]], ids[at]));
    }
  }
}

void BpeModel::merge_long(BpeScratch& scratch) const {
  const auto n = static_cast<uint32_t>(scratch.ids.size());
  auto& [cache, ids, begins, next, previous, ranks, heap] = scratch;
  next.resize(n);
  previous.resize(n + size_t{1});
  ranks.assign(n, Merge::never);
  heap.clear();
  const auto later = std::greater<uint64_t>();
  const auto rank_of = [&](uint32_t at) {
    return at < n && next[at] < n ? pairs_.find(ids[at], ids[next[at]]).rank : Merge::never;
  };
  const auto renew = [&](uint32_t at) {
    ranks[at] = rank_of(at);
    if (ranks[at] != Merge::never) {
      heap.push_back(uint64_t{ranks[at]} << 32 | at);
      std::push_heap(heap.begin(), heap.end(), later);
    }
  };
  for (uint32_t i = 0; i < n; ++i) {
    next[i] = i + 1;
    previous[i + 1] = i;
  }
  for (uint32_t i = 0; i < n; ++i) {
    ranks[i] = rank_of(i);
    if (ranks[i] != Merge::never) {
      heap.push_back(uint64_t{ranks[i]} << 32 | i);
    }
  }
  std::make_heap(heap.begin(), heap.end(), later);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), later);
    const auto at = static_cast<uint32_t>(heap.back());
    const auto rank = static_cast<uint32_t>(heap.back() >> 32);
    heap.pop_back();
    if (ranks[at] != rank) {
      continue;  // one of the two is something else by now
    }
    const uint32_t gone = next[at];
    ids[at] = pairs_.find(ids[at], ids[gone]).result;
    ranks[gone] = Merge::never;
    next[at] = next[gone];
    previous[next[at]] = at;
    renew(at);
    if (at > 0) {
      renew(previous[at]);
    }
  }
}

void BpeModel::emit(std::string_view word, const BpeScratch& scratch,
                    std::vector<TokenId>& out) const {
  const size_t n = scratch.ids.size();
  bool after_unknown = false;
  for (size_t i = 0; i < n; i = scratch.next[i]) {
    const TokenId id = scratch.ids[i];
    const bool unknown = id == no_token || (id >= first_extra_ && !extra_.empty());
    if (!unknown) {
      out.push_back(id);
    } else if (settings_.byte_fallback || !after_unknown || !settings_.fuse_unknown) {
      const size_t end = scratch.next[i] < n ? scratch.begins[scratch.next[i]] : word.size();
      emit_unknown(word.substr(scratch.begins[i], end - scratch.begins[i]), out);
    }
    after_unknown = unknown;
  }
}

void BpeModel::emit_unknown(std::string_view character, std::vector<TokenId>& out) const {
  if (settings_.byte_fallback) {
    for (const char byte : character) {
      out.push_back(byte_ids_[static_cast<uint8_t>(byte)]);
    }
  } else if (settings_.unknown != no_token) {
    out.push_back(settings_.unknown);
  }
}

}  // namespace ingot
