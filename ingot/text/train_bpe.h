#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ingot/text/tokenizer_spec.h"
#include "ingot/text/word_counts.h"

namespace ingot {

// Which of several pairs that occur equally often is merged first. The choice is a convention, and
// it decides the vocabulary.
enum class TieBreak : uint8_t {
  smallest_ids,   // the smaller (left id, right id): Hugging Face's trainer
  largest_bytes,  // the larger (left bytes, right bytes)
  first_seen,     // the one met first in the words, in the order of their first occurrence: minbpe.
                  // Looks at all that are equal at every merge, and is slow on large texts
};

struct BpeTraining {
  int64_t vocabulary = 32000;  // tokens in all: special ones, bytes, merges
  int64_t least_count = 2;     // pairs that occur less often are not merged
  TieBreak ties = TieBreak::smallest_ids;
  // Single bytes have ids in the order of GPT-2's alphabet, as in its vocabulary; else their value.
  bool bytes_by_symbol = true;
  bool all_bytes = true;  // else only those that occur
  std::vector<std::string> special;  // ids from 0; they divide the text and are not trained on
  std::string pattern;               // cuts text into words
};

struct TrainedBpe {
  TokenizerSpec tokenizer;           // byte-level, ready to be written
  std::vector<int64_t> merge_counts; // of each merge's pair when it was made
};

// Byte-level byte-pair encoding learnt from a text: the most frequent pair of neighbours becomes a
// token, again and again (Sennrich, Haddow & Birch 2016, arXiv 1508.07909, algorithm 1). Counts are
// kept for all pairs and changed only where a merge changes words, so that a merge costs as much as
// the words it occurs in.
class BpeTrainer {
 public:
  explicit BpeTrainer(BpeTraining settings);

  void add(std::string_view text);  // counts its words on all cores; ill-formed bytes are words
  const WordCounts& words() const { return words_; }

  // Throws Error(config) where the vocabulary is too small for the bytes, Error(format) without any
  // word. `progress`: called with the number of tokens so far now and then; false ends it.
  TrainedBpe train(const std::function<bool(int64_t tokens)>& progress = {}) const;

 private:
  BpeTraining settings_;
  std::string pre_tokenizer_;
  PreTokenizer cuts_;
  WordCounts words_;
};

}  // namespace ingot
