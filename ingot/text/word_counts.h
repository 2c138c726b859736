#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ingot/text/pre_tokenizer.h"

namespace ingot {

// How often each word occurs, in the order in which they occurred first.
class WordCounts {
 public:
  WordCounts();

  void add(std::string_view word, int64_t count = 1);
  // Everything that `later` counted, as if it had been added word by word after this.
  void add_all(const WordCounts& later);

  size_t size() const { return counts_.size(); }
  std::string_view word(size_t i) const {
    return std::string_view(bytes_).substr(starts_[i], starts_[i + 1] - starts_[i]);
  }
  int64_t count(size_t i) const { return counts_[i]; }

 private:
  struct Slot {
    uint64_t hash = 0;
    uint32_t number = 0;  // of the word, counted from 1; 0: free
  };
  void grow();

  std::string bytes_;
  std::vector<uint64_t> starts_ = {0};
  std::vector<int64_t> counts_;
  std::vector<Slot> slots_;
};

// Counts the words of a valid UTF-8 text, as bytes, on all cores. Where the words are those of a
// known pattern the text is divided at line ends that no word spans; otherwise one core counts.
void count_words(const PreTokenizer& cuts, std::string_view text, WordCounts& into);

}  // namespace ingot
