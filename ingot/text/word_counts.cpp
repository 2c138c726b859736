#include "ingot/text/word_counts.h"

#include <algorithm>

#include "ingot/text/vocabulary.h"

namespace ingot {
namespace {

constexpr size_t share_bytes = size_t{1} << 20;

bool is_graphic(char c) { return c > ' ' && c < 0x7F; }

// Where a share that should end at `at` ends: behind a line end between two characters that are
// neither white space nor beyond ASCII. A pattern of words has a boundary there, and looks no
// further than the one line end to find the words before it.
size_t share_end(std::string_view text, size_t at) {
  for (; at + 1 < text.size(); ++at) {
    if (text[at] == '\n' && is_graphic(text[at - 1]) && is_graphic(text[at + 1])) {
      return at + 1;
    }
  }
  return text.size();
}

void count_share(const PreTokenizer& cuts, std::string_view text, WordCounts& into) {
  if (cuts.cutter()) {
    const char* const end = text.data() + text.size();
    for (const char* at = text.data(); at < end;) {
      const char* const stop = cuts.cutter()->word_end(at, end);
      into.add({at, stop});
      at = stop;
    }
    return;
  }
  Pieces pieces = {std::string(text), {}};
  if (!text.empty()) {
    pieces.ends.push_back(text.size());
  }
  cuts.apply(pieces, true, cuts.ends_in_bytes());
  pieces.for_each([&](std::string_view word) { into.add(word); });
}

}  // namespace

WordCounts::WordCounts() : slots_(1024) {}

void WordCounts::add(std::string_view word, int64_t count) {
  const uint64_t hash = quick_hash(word);
  size_t at = hash & (slots_.size() - 1);
  while (slots_[at].number != 0) {
    if (slots_[at].hash == hash && this->word(slots_[at].number - 1) == word) {
      counts_[slots_[at].number - 1] += count;
      return;
    }
    at = (at + 1) & (slots_.size() - 1);
  }
  bytes_ += word;
  starts_.push_back(bytes_.size());
  counts_.push_back(count);
  slots_[at] = {hash, static_cast<uint32_t>(counts_.size())};
  if (2 * counts_.size() > slots_.size()) {
    grow();
  }
}

void WordCounts::grow() {
  std::vector<Slot> old(2 * slots_.size());
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.number != 0) {
      size_t at = slot.hash & (slots_.size() - 1);
      while (slots_[at].number != 0) {
        at = (at + 1) & (slots_.size() - 1);
      }
      slots_[at] = slot;
    }
  }
}

void WordCounts::add_all(const WordCounts& later) {
  for (size_t i = 0; i < later.size(); ++i) {
    add(later.word(i), later.count(i));
  }
}

void count_words(const PreTokenizer& cuts, std::string_view text, WordCounts& into) {
  std::vector<std::string_view> shares;
  for (size_t begin = 0; begin < text.size();) {
    const bool divides = cuts.cutter() && text.size() - begin > 2 * share_bytes;
    const size_t end = divides ? share_end(text, begin + share_bytes) : text.size();
    shares.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  constexpr size_t at_once = 64;  // shares whose counts are held apart
  for (size_t first = 0; first < shares.size(); first += at_once) {
    const size_t many = std::min(at_once, shares.size() - first);
    std::vector<WordCounts> counts(many);
#pragma omp parallel for schedule(dynamic)
    for (size_t i = 0; i < many; ++i) {
      count_share(cuts, shares[first + i], counts[i]);
    }
    for (const WordCounts& share : counts) {
      into.add_all(share);
    }
  }
}

}  // namespace ingot
