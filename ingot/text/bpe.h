#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ingot/text/pair_map.h"
#include "ingot/text/vocabulary.h"
#include "ingot/text/word_cache.h"

namespace ingot {

// Byte-pair encoding: a word begins as its characters (or bytes); while two neighbours have a
// merge, those with the smallest rank, and of equal ones the leftmost, become one token.
// Sennrich, Haddow & Birch 2016 (arXiv 1508.07909), algorithm 1; Radford et al. 2019 for bytes.

// A merge as files list them: the earlier, the smaller its rank.
struct MergeRule {
  TokenId left;
  TokenId right;
  TokenId result;
};

struct BpeSettings {
  bool bytes = false;          // tokens are byte strings, words begin as bytes; else both are UTF-8
  TokenId unknown = no_token;  // for a character without a token
  bool fuse_unknown = false;   // neighbouring unknown characters make one token
  bool byte_fallback = false;  // such a character becomes the tokens <0x00> … <0xFF> of its bytes
  bool ignore_merges = false;  // a word that is a token is that token, merges or not
  std::string continuing_prefix;  // before every character but a word's first
  std::string end_suffix;         // behind a word's last
};

// What encoding needs besides the model; for one thread.
struct BpeScratch {
  WordCache cache;
  std::vector<TokenId> ids;      // symbols: their token, …
  std::vector<uint32_t> begins;  // … the byte they begin at, …
  std::vector<uint32_t> next;    // … and their neighbours
  std::vector<uint32_t> previous;
  std::vector<uint32_t> ranks;  // of the merge with the next symbol
  std::vector<uint64_t> heap;
};

class BpeModel {
 public:
  // `tokens` in bytes or UTF-8 as the settings say; a token that is no text is empty there.
  BpeModel(const Vocabulary& tokens, const std::vector<MergeRule>& merges, BpeSettings settings);
  // Every split of a token into two others is a merge, and its rank is the token's; Merge::never
  // for tokens that no merge makes. So tiktoken and SentencePiece define theirs.
  BpeModel(const Vocabulary& tokens, const std::vector<uint32_t>& ranks, BpeSettings settings);

  // Appends the tokens of a word. O(n log n) at worst, a scan per merge for short words.
  void encode(const Vocabulary& tokens, std::string_view word, BpeScratch& scratch,
              std::vector<TokenId>& out) const;

 private:
  void prepare(const Vocabulary& tokens);
  void note_neighbours(const Vocabulary& tokens);
  bool may_join(char32_t left, char32_t right) const;
  void encode_part(const Vocabulary& tokens, std::string_view word, BpeScratch& scratch,
                   std::vector<TokenId>& out) const;
  void split(const Vocabulary& tokens, std::string_view word, BpeScratch& scratch) const;
  TokenId symbol(const Vocabulary& tokens, std::string_view character, bool first, bool last) const;
  void merge_short(std::string_view word, BpeScratch& scratch) const;
  void merge_long(BpeScratch& scratch) const;
  void emit(std::string_view word, const BpeScratch& scratch, std::vector<TokenId>& out) const;
  void emit_unknown(std::string_view character, std::vector<TokenId>& out) const;

  BpeSettings settings_;
  PairMap pairs_;
  std::vector<TokenId> byte_ids_;     // of single bytes, or of <0x00> … with byte fallback
  std::vector<Merge> byte_pairs_;     // of two single bytes, by 256 · left + right
  std::vector<uint64_t> neighbours_;  // hashed pairs of characters that stand together in a token
  std::unordered_map<std::string, TokenId> extra_;  // characters in tokens that are none themselves
  TokenId first_extra_ = 0;
  bool packs_ranks_ = false;  // all ranks fit 24 bits
};

}  // namespace ingot
