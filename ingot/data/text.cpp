#include "ingot/data/text.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ingot/base/error.h"
#include "ingot/base/hash.h"
#include "ingot/base/philox.h"

namespace ingot {
namespace {

using Bytes = std::span<const std::byte>;
using Owners = std::vector<std::shared_ptr<const ByteFile>>;

constexpr int64_t largest_held = int64_t{256} << 20;

int64_t length(Bytes bytes) { return static_cast<int64_t>(bytes.size()); }

Bytes part(Bytes bytes, int64_t begin, int64_t end) {
  return bytes.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
}

void append(TokenWindow& window, Bytes bytes) {
  for (const std::byte byte : bytes) {
    window.push_back(std::to_integer<int64_t>(byte));
  }
}

// Pieces of bytes read as one stream.
class Stream {
 public:
  explicit Stream(std::vector<Bytes> pieces) : pieces_(std::move(pieces)) {
    for (const Bytes piece : pieces_) {
      starts_.push_back(size_);
      size_ += length(piece);
    }
  }

  int64_t size() const { return size_; }

  TokenWindow read(int64_t begin, int64_t count) const {
    TokenWindow window;
    window.reserve(static_cast<size_t>(count));
    auto piece = static_cast<size_t>(std::upper_bound(starts_.begin(), starts_.end(), begin) -
                                     starts_.begin() - 1);
    const int64_t end = begin + count;
    for (; begin < end; ++piece) {
      const int64_t stop = std::min(end, starts_[piece] + length(pieces_[piece]));
      append(window, part(pieces_[piece], begin - starts_[piece], stop - starts_[piece]));
      begin = stop;
    }
    return window;
  }

 private:
  std::vector<Bytes> pieces_;
  std::vector<int64_t> starts_;
  int64_t size_ = 0;
};

class TrainingWindows : public Dataset<TokenWindow> {
 public:
  // The count leaves room for any offset, so it is the same in every epoch.
  TrainingWindows(Owners owners, Stream stream, int64_t T, uint64_t seed)
      : owners_(std::move(owners)),
        stream_(std::move(stream)),
        T_(T),
        seed_(seed),
        count_(std::max<int64_t>(1, (stream_.size() - T) / T)) {}

  int64_t size() const override { return count_; }

  TokenWindow get(int64_t i) const override {
    return stream_.read(offset(i / count_) + i % count_ * T_, T_ + 1);
  }

 private:
  int64_t offset(int64_t epoch) const {
    const Philox random({seed_, static_cast<uint64_t>(epoch), site_named("data.text.offset")});
    const int64_t room = std::min(T_ - 1, stream_.size() - 1 - count_ * T_);
    return static_cast<int64_t>(random.bits(0) % static_cast<uint64_t>(room + 1));
  }

  Owners owners_;
  Stream stream_;
  int64_t T_;
  uint64_t seed_;
  int64_t count_;
};

class ValidationWindows : public Dataset<TokenWindow> {
 public:
  ValidationWindows(Owners owners, std::vector<Bytes> pieces, int64_t T)
      : owners_(std::move(owners)), pieces_(std::move(pieces)), T_(T) {
    for (const Bytes piece : pieces_) {
      starts_.push_back(size_);
      size_ += (length(piece) - 1 + T - 1) / T;
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
  Owners owners_;
  std::vector<Bytes> pieces_;
  int64_t T_;
  std::vector<int64_t> starts_;  // of each piece's windows
  int64_t size_ = 0;
};

Owners opened(const std::vector<std::string>& paths) {
  Owners files;
  for (const std::string& path : paths) {
    files.push_back(std::make_shared<ByteFile>(path));
  }
  return files;
}

}  // namespace

ByteFile::ByteFile(std::filesystem::path path) : path_(std::move(path)) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path_, ignored) &&
      static_cast<int64_t>(std::filesystem::file_size(path_, ignored)) > largest_held) {
    mapped_ = std::make_unique<MappedFile>(path_);
  } else {
    held_ = read_file(path_);
  }
  check(!bytes().empty(), ErrorKind::format, path_.string(),
        ": the file is empty; give a file with text in it");
}

std::span<const std::byte> ByteFile::bytes() const {
  return mapped_ ? mapped_->bytes() : std::as_bytes(std::span(held_));
}

Text::Text(const TextConfig& config) : files_(opened(config.files)) {
  check(!files_.empty(), ErrorKind::config, "data: no text files are given; set files");
  subject_ = files_.front()->path().string();
  if (files_.size() > 1) {
    subject_ += concat(" and ", files_.size() - 1, " more");
  }
  const bool by_file = !config.validation_files.empty();
  for (const auto& file : files_) {
    const Bytes bytes = file->bytes();
    const int64_t n = length(bytes);
    const auto held_out = static_cast<int64_t>(
        by_file ? 0 : std::floor(config.validation_fraction * static_cast<double>(n)));
    training_.push_back(part(bytes, 0, n - held_out));
    if (held_out > 0) {
      validation_.push_back(part(bytes, std::max<int64_t>(0, n - held_out - 1), n));
    }
  }
  for (const auto& file : opened(config.validation_files)) {
    files_.push_back(file);
    validation_.push_back(file->bytes());
  }
}

std::shared_ptr<const Dataset<TokenWindow>> Text::training(int64_t T, uint64_t seed) const {
  check(T >= 1, ErrorKind::argument, "data: the sequence length must be at least 1: got ", T);
  check(training_bytes() >= T + 1, ErrorKind::format, subject_,
        ": the text is shorter than one sequence: ", training_bytes(),
        " bytes to train on, needed are ", T + 1, " for a sequence length of ", T,
        "; give more text or shorten the sequence");
  return std::make_shared<TrainingWindows>(files_, Stream(training_), T, seed);
}

std::shared_ptr<const Dataset<TokenWindow>> Text::validation(int64_t T) const {
  check(T >= 1, ErrorKind::argument, "data: the sequence length must be at least 1: got ", T);
  return std::make_shared<ValidationWindows>(files_, validation_, T);
}

int64_t Text::training_bytes() const {
  int64_t total = 0;
  for (const Bytes piece : training_) {
    total += length(piece);
  }
  return total;
}

int64_t Text::validation_targets() const {
  int64_t total = 0;
  for (const Bytes piece : validation_) {
    total += length(piece) - 1;
  }
  return total;
}

std::string Text::hash() const {
  Hasher hasher;
  for (const auto& file : files_) {
    const int64_t size = length(file->bytes());
    hasher.update(std::as_bytes(std::span(&size, 1)));
    hasher.update(file->bytes());
  }
  return hasher.hex();
}

}  // namespace ingot
