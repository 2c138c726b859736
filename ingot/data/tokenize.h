#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "ingot/data/token_store.h"

namespace ingot {

enum class Duplicates : uint8_t { keep, drop, error };

struct TokenizeOptions {
  ReadOptions read;
  Duplicates duplicates = Duplicates::keep;  // rows of equal content; an id twice with different
                                             // content is always a fault of the row
  std::function<bool()> stop;                // asked now and then; true ends it, to be continued
  std::function<void(int64_t bytes, int64_t all)> progress;  // of the files
};

// What a store of these files, read so, is known by: XXH3-128 of the files' bytes, the tokenizer's
// hash, the template's, and the options.
std::string store_key(const std::vector<std::string>& files, const Renderer& renderer,
                      const TokenizeOptions& options);

// Makes a store in `folder` from files, in the order of their rows, on all cores; memory does not
// grow with the files but for 16 bytes a row, which find duplicates. A store that is there and was
// made of the same is taken as it is; one that a killed or stopped process began is continued and
// becomes the same to the last byte; one of other things is replaced. Returns false where `stop`
// ended it. Throws the errors of ExampleReader and Renderer, under RowPolicy::error for the first
// bad row; Error(format) where no row is left.
bool tokenize(const std::vector<std::string>& files, const Renderer& renderer,
              const TokenizeOptions& options, const std::filesystem::path& folder);

}  // namespace ingot
