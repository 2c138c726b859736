#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ingot/base/describe.h"
#include "ingot/base/files.h"
#include "ingot/data/dataset.h"

namespace ingot {

struct TextConfig {
  std::vector<std::string> files;
  std::vector<std::string> validation_files;
  double validation_fraction = 0.05;
  std::string tokenizer;

  template <class V>
  void describe(V& v) {
    v("files", files, "plain text files; their order matters");
    v("validation_files", validation_files, "held-out files; then all of files is trained on");
    v("validation_fraction", validation_fraction, half_open(0, 1),
      "share of each file, at its end, held out where validation_files is empty");
    v("tokenizer", tokenizer,
      "tokenizer file or folder that the text is read through; empty: every byte is a token");
  }
};

// The bytes of one file, whatever they are: NUL and invalid UTF-8 included. Up to 256 MiB they are
// read into memory; a larger file is mapped and must not change during the run.
class ByteFile {
 public:
  // Throws Error(io) where it cannot be read, Error(format) where it is empty.
  explicit ByteFile(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  std::span<const std::byte> bytes() const;

 private:
  std::filesystem::path path_;
  std::string held_;
  std::unique_ptr<MappedFile> mapped_;
};

// Training and validation bytes of a set of text files.
//
// Split. By fraction: of each file of n bytes the last ⌊fraction·n⌋ are held out and the others
// trained on. By file: the validation files are held out whole. It depends on file sizes alone.
class Text {
 public:
  // Throws Error(config) without files, and the errors of ByteFile.
  explicit Text(const TextConfig& config);

  // The training bytes, file after file, in windows of T + 1 that overlap by one: each byte of the
  // stream is a target once an epoch, but for fewer than 2·T at the ends. The grid of windows
  // starts at another random offset in [0, T) in every epoch, so that a byte is seen in every
  // place. Windows cross from one file into the next. Wrap it in Shuffled for training. Throws
  // Error(format) with both numbers where there are fewer than T + 1 bytes.
  std::shared_ptr<const Dataset<TokenWindow>> training(int64_t T, uint64_t seed) const;

  // The validation bytes in windows of at most T + 1 in their order: each byte is a target exactly
  // once. (By file, the first byte of a file has nothing before it and is no target; by fraction
  // the byte before it is the last trained one.) The last window of a file may be shorter. Without
  // validation bytes it is empty. The same in every epoch.
  std::shared_ptr<const Dataset<TokenWindow>> validation(int64_t T) const;

  // The same stretches as bytes: what is trained on, and what is held out without the byte of
  // context in front.
  std::vector<std::span<const std::byte>> training_pieces() const { return training_; }
  std::vector<std::span<const std::byte>> held_out_pieces() const;

  int64_t training_bytes() const;
  int64_t validation_targets() const;  // bytes that validation() predicts
  // XXH3-128 over the sizes and bytes of all files, for the check that a resumed run sees the same
  // data.
  std::string hash() const;

 private:
  using Bytes = std::span<const std::byte>;

  std::vector<std::shared_ptr<const ByteFile>> files_;
  std::vector<Bytes> training_;
  std::vector<Bytes> validation_;  // each with one byte of context in front
  bool by_file_ = false;           // the context is a part of what is held out
  std::string subject_;            // names the files in errors
};

}  // namespace ingot
