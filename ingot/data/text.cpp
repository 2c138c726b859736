#include "ingot/data/text.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ingot/base/error.h"
#include "ingot/base/hash.h"
#include "ingot/data/windows.h"

namespace ingot {
namespace {

using windows::length;
using windows::part;
using Bytes = std::span<const std::byte>;
using Owners = std::vector<std::shared_ptr<const ByteFile>>;

constexpr int64_t largest_held = int64_t{256} << 20;

std::shared_ptr<const void> owner_of(const Owners& files) {
  return std::make_shared<const Owners>(files);
}

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
  by_file_ = !config.validation_files.empty();
  for (const auto& file : files_) {
    const Bytes bytes = file->bytes();
    const int64_t n = length(bytes);
    const auto held_out = static_cast<int64_t>(
        by_file_ ? 0 : std::floor(config.validation_fraction * static_cast<double>(n)));
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
  return std::make_shared<windows::Training<std::byte>>(
      windows::Stream<std::byte>(owner_of(files_), training_), T, seed);
}

std::shared_ptr<const Dataset<TokenWindow>> Text::validation(int64_t T) const {
  check(T >= 1, ErrorKind::argument, "data: the sequence length must be at least 1: got ", T);
  return std::make_shared<windows::Validation<std::byte>>(owner_of(files_), validation_, T);
}

std::vector<std::span<const std::byte>> Text::held_out_pieces() const {
  std::vector<Bytes> out = validation_;
  for (Bytes& piece : out) {
    piece = piece.subspan(by_file_ ? 0 : 1);
  }
  return out;
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
