#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "ingot/base/error.h"
#include "ingot/base/philox.h"
#include "ingot/data/dataset.h"

// The windows of T + 1 that data/text.h and data/token_text.h describe, over pieces of bytes or of
// token ids.
namespace ingot::windows {

inline int64_t id_of(std::byte byte) { return std::to_integer<int64_t>(byte); }
inline int64_t id_of(int32_t token) { return token; }

template <class Item>
int64_t length(std::span<const Item> items) {
  return static_cast<int64_t>(items.size());
}

template <class Item>
std::span<const Item> part(std::span<const Item> items, int64_t begin, int64_t end) {
  return items.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
}

template <class Item>
void append(TokenWindow& window, std::span<const Item> items) {
  for (const Item item : items) {
    window.push_back(id_of(item));
  }
}

// Pieces read as one stream. What they are parts of lives as long as `owner`.
template <class Item>
class Stream {
 public:
  Stream(std::shared_ptr<const void> owner, std::vector<std::span<const Item>> pieces)
      : owner_(std::move(owner)), pieces_(std::move(pieces)) {
    for (const auto piece : pieces_) {
      starts_.push_back(size_);
      size_ += length(piece);
    }
  }

  int64_t size() const { return size_; }

  TokenWindow read(int64_t begin, int64_t count) const {
    TokenWindow window;
    window.reserve(static_cast<size_t>(count));
    for (const Origin& origin : origins(begin, count)) {
      append(window, part(pieces_[static_cast<size_t>(origin.document)], origin.begin, origin.end));
    }
    return window;
  }

  // Of `count` items from `begin` on; the document is the piece.
  std::vector<Origin> origins(int64_t begin, int64_t count) const {
    std::vector<Origin> out;
    auto piece = static_cast<size_t>(std::upper_bound(starts_.begin(), starts_.end(), begin) -
                                     starts_.begin() - 1);
    const int64_t end = begin + count;
    for (; begin < end; ++piece) {
      const int64_t stop = std::min(end, starts_[piece] + length(pieces_[piece]));
      if (stop > begin) {
        out.push_back({static_cast<int64_t>(piece), begin - starts_[piece], stop - starts_[piece]});
      }
      begin = stop;
    }
    return out;
  }

 private:
  std::shared_ptr<const void> owner_;
  std::vector<std::span<const Item>> pieces_;
  std::vector<int64_t> starts_;
  int64_t size_ = 0;
};

template <class Item>
class Training : public Dataset<TokenWindow> {
 public:
  // The count leaves room for any offset, so it is the same in every epoch.
  Training(Stream<Item> stream, int64_t T, uint64_t seed)
      : stream_(std::move(stream)),
        T_(T),
        seed_(seed),
        count_(std::max<int64_t>(1, (stream_.size() - T) / T)) {}

  int64_t size() const override { return count_; }

  TokenWindow get(int64_t i) const override { return stream_.read(begin_of(i), T_ + 1); }
  std::vector<Origin> origins(int64_t i) const override {
    return stream_.origins(begin_of(i), T_ + 1);
  }

 private:
  int64_t begin_of(int64_t i) const { return offset(i / count_) + i % count_ * T_; }

  int64_t offset(int64_t epoch) const {
    const Philox random({seed_, static_cast<uint64_t>(epoch), site_named("data.text.offset")});
    const int64_t room = std::min(T_ - 1, stream_.size() - 1 - count_ * T_);
    return static_cast<int64_t>(random.bits(0) % static_cast<uint64_t>(room + 1));
  }

  Stream<Item> stream_;
  int64_t T_;
  uint64_t seed_;
  int64_t count_;
};

template <class Item>
class Validation : public Dataset<TokenWindow> {
 public:
  Validation(std::shared_ptr<const void> owner, std::vector<std::span<const Item>> pieces,
             int64_t T)
      : owner_(std::move(owner)), pieces_(std::move(pieces)), T_(T) {
    for (const auto piece : pieces_) {
      starts_.push_back(size_);
      size_ += (std::max<int64_t>(length(piece), 1) - 1 + T - 1) / T;
    }
  }

  int64_t size() const override { return size_; }

  TokenWindow get(int64_t i) const override {
    check(size_ > 0, ErrorKind::argument, "validation data: there is none");
    i %= size_;
    const auto piece = static_cast<size_t>(std::upper_bound(starts_.begin(), starts_.end(), i) -
                                           starts_.begin() - 1);
    const int64_t begin = (i - starts_[piece]) * T_;
    TokenWindow window;
    append(window, part(pieces_[piece], begin, std::min(begin + T_ + 1, length(pieces_[piece]))));
    return window;
  }

 private:
  std::shared_ptr<const void> owner_;
  std::vector<std::span<const Item>> pieces_;
  int64_t T_;
  std::vector<int64_t> starts_;  // of each piece's windows
  int64_t size_ = 0;
};

}  // namespace ingot::windows
