#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "ingot/base/files.h"
#include "ingot/data/dataset.h"

namespace ingot {

// A flat file of token ids, each an unsigned 16-bit little-endian integer, mapped into memory.
class TokenFile {
 public:
  // Throws Error(io) where it cannot be read, Error(format) where it is empty or of odd size.
  explicit TokenFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return file_.path(); }
  int64_t size() const;  // tokens
  int64_t token(int64_t i) const;
  int64_t largest() const;   // id; reads the whole file
  std::string hash() const;  // XXH3-128 of the bytes

 private:
  MappedFile file_;
};

// Windows of T + 1 tokens in file order: window i starts at token i·T modulo (n − T − 1). Not
// shuffled: for comparisons with programs that read the same file in this order. Throws
// Error(format) with both numbers where the file has fewer than T + 2 tokens.
std::shared_ptr<const Dataset<TokenWindow>> windows_of(std::shared_ptr<const TokenFile> file,
                                                       int64_t T);

}  // namespace ingot
