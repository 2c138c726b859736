#include "ingot/generate/page_pool.h"

#include <numeric>

#include "ingot/base/error.h"

namespace ingot {

size_t PagePool::KeyHash::operator()(const Key& key) const {
  uint64_t hash = key.before * 0x9E3779B97F4A7C15U + 1;
  for (const int64_t token : key.tokens) {
    hash = (hash ^ static_cast<uint64_t>(token)) * 0xBF58476D1CE4E5B9U;
    hash ^= hash >> 29;
  }
  return hash;
}

PagePool::PagePool(int64_t pages)
    : uses_(static_cast<size_t>(pages), 0),
      keys_(static_cast<size_t>(pages), nullptr),
      unused_(static_cast<size_t>(pages)),
      places_(static_cast<size_t>(pages)) {
  std::iota(unused_.rbegin(), unused_.rend(), 0);  // page 0 is taken first
}

int64_t PagePool::free() const { return static_cast<int64_t>(unused_.size() + kept_.size()); }

int32_t PagePool::take() {
  check(free() > 0, ErrorKind::internal, "page pool: all ", pages(), " pages are taken");
  int32_t page = 0;
  if (!unused_.empty()) {
    page = unused_.back();
    unused_.pop_back();
  } else {
    page = kept_.front();
    kept_.pop_front();
    forget(page);
  }
  uses_[static_cast<size_t>(page)] = 1;
  return page;
}

void PagePool::share(int32_t page) {
  int32_t& uses = uses_[static_cast<size_t>(page)];
  if (uses == 0) {
    kept_.erase(places_[static_cast<size_t>(page)]);
  }
  ++uses;
}

void PagePool::give_back(int32_t page) {
  const auto at = static_cast<size_t>(page);
  check(uses_[at] > 0, ErrorKind::internal, "page pool: page ", page,
        " has no user to give it back");
  if (--uses_[at] > 0) {
    return;
  }
  if (keys_[at] == nullptr) {
    unused_.push_back(page);
  } else {
    places_[at] = kept_.insert(kept_.end(), page);
  }
}

PagePool::Name PagePool::name(int32_t page, Name before, std::span<const int64_t> tokens) {
  const auto [entry, fresh] =
      named_.try_emplace(Key{before, Tokens(tokens.begin(), tokens.end())}, Found{page, last_ + 1});
  if (fresh) {
    ++last_;
    keys_[static_cast<size_t>(page)] = &entry->first;  // nodes stay where they are
  }
  return entry->second.name;
}

std::optional<PagePool::Found> PagePool::find(Name before, std::span<const int64_t> tokens) {
  const auto entry = named_.find(Key{before, Tokens(tokens.begin(), tokens.end())});
  if (entry == named_.end()) {
    return std::nullopt;
  }
  share(entry->second.page);
  return entry->second;
}

// Pages after it can no longer be found and so fall out of use in their turn.
void PagePool::forget(int32_t page) {
  const auto at = static_cast<size_t>(page);
  named_.erase(*keys_[at]);
  keys_[at] = nullptr;
}

}  // namespace ingot
