#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "ingot/generate/tokens.h"

namespace ingot {

// Which pages of a cache are taken, by how many texts, and which hold the beginning of what prompt.
// Only numbers: the keys and values are elsewhere.
//
// A page whose tokens were read as part of a prompt gets a name: the page before it and its tokens.
// So the names form a tree of prompts, and a text finds the pages that it begins with by walking it
// from the root; tokens are compared, not only their hashes. A named page that nobody uses stays
// until its room is needed, the longest unused first.
class PagePool {
 public:
  using Name = uint64_t;  // of one page's contents with all before it
  static constexpr Name root = 0;

  explicit PagePool(int64_t pages);

  int64_t pages() const { return static_cast<int64_t>(uses_.size()); }
  int64_t free() const;  // that take() can give
  int64_t used() const { return pages() - free(); }

  // A page for one user. Throws Error(internal) when none is free.
  int32_t take();
  void share(int32_t page);      // one user more
  void give_back(int32_t page);  // one less

  // Says that `page` holds these tokens, which follow the contents named `before`. Where another
  // page already does, that one keeps the name.
  Name name(int32_t page, Name before, std::span<const int64_t> tokens);

  // The page of these tokens after that name, with one user more.
  struct Found {
    int32_t page;
    Name name;
  };
  std::optional<Found> find(Name before, std::span<const int64_t> tokens);

 private:
  struct Key {
    Name before;
    Tokens tokens;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const;
  };
  void forget(int32_t page);

  std::vector<int32_t> uses_;     // of each page
  std::vector<const Key*> keys_;  // the key of each named page; null: none
  std::vector<int32_t> unused_;   // without a name
  std::list<int32_t> kept_;       // unused with a name, the longest unused first
  std::vector<std::list<int32_t>::iterator> places_;  // in kept_
  std::unordered_map<Key, Found, KeyHash> named_;
  Name last_ = root;
};

}  // namespace ingot
