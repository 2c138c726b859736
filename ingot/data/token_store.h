#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ingot/base/files.h"
#include "ingot/data/example_reader.h"
#include "ingot/data/render.h"

namespace ingot {

// Training rows as tokens on disk, mapped into memory: a folder with
//   tokens.bin   u32 little-endian a token: the id, and 2³¹ added where the token is learnt
//   rows.bin     32 bytes a row: StoredRow
//   store.json   what it was made of and what came out; written last, so that a store is whole or
//                none
struct StoredRow {
  uint64_t begin = 0;    // its first token in tokens.bin; it ends where the next begins
  uint32_t file = 0;     // which of the sources
  uint32_t line = 0;     // in it
  uint64_t content = 0;  // content_hash of the example
  uint64_t id = 0;       // hash of its id; 0 where it has none
};
static_assert(sizeof(StoredRow) == 32);

// One file that a store was made of.
struct StoreSource {
  std::string path;
  std::string hash;    // XXH3-128 of the file as it lies on disk
  std::string layout;  // "jsonl, gzip: messages"
  RowCounts counts;
  int64_t bytes = 0;  // of the file
  int64_t rows = 0;   // token rows
  int64_t tokens = 0;
  int64_t targets = 0;     // learnt
  int64_t duplicates = 0;  // rows whose content was there before, kept
};

struct StoreManifest {
  std::string key;  // of files, tokenizer, template and options
  std::string tokenizer_hash;
  std::string render_hash;
  int64_t vocabulary = 0;
  std::vector<StoreSource> sources;

  int64_t rows() const;
  int64_t tokens() const;
  int64_t targets() const;
  RowCounts counts() const;
};

class TokenStore {
 public:
  // Throws Error(io) or Error(format) naming the file, also where files are shorter or longer than
  // the manifest says. `verify` reads all of it and compares its hash.
  explicit TokenStore(const std::filesystem::path& folder, bool verify = false);

  const StoreManifest& manifest() const { return manifest_; }
  const std::filesystem::path& folder() const { return folder_; }
  int64_t size() const { return static_cast<int64_t>(rows_.size()); }
  int64_t length(int64_t row) const;  // tokens
  const StoredRow& place(int64_t row) const { return rows_[static_cast<size_t>(row)]; }
  std::string place_text(int64_t row) const;  // "chats.jsonl:7"

  // Tokens [begin, end) of a row.
  TokenRow read(int64_t row, int64_t begin, int64_t end) const;
  TokenRow read(int64_t row) const { return read(row, 0, length(row)); }
  // Learnt tokens among tokens [begin, end) of a row.
  int64_t learnt(int64_t row, int64_t begin, int64_t end) const;

 private:
  std::span<const uint32_t> tokens(int64_t row) const;

  std::filesystem::path folder_;
  StoreManifest manifest_;
  MappedFile token_file_, row_file_;
  std::span<const uint32_t> tokens_;
  std::span<const StoredRow> rows_;
};

// What a store's folder holds of what has been done, as JSON.
std::string to_json(const StoreManifest& manifest, const std::string& content_hash);
StoreManifest manifest_from(const std::string& json, const std::string& name,
                            std::string* content_hash = nullptr);

}  // namespace ingot
