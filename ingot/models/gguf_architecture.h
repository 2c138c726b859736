#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ingot/io/gguf.h"
#include "ingot/models/decoder_config.h"

namespace ingot {

// Which rows of ours a tensor of a GGUF file holds, where another holds the rest: of each of
// `heads` heads of `of` rows the `rows` from `from` on, as [heads, rows, columns] or, transposed,
// [heads, columns, rows].
struct GgufHeadRows {
  int64_t heads = 0;  // 0: it holds all rows
  int64_t of = 0;
  int64_t from = 0;
  int64_t rows = 0;
  bool transposed = false;
};

// How one tensor of a GGUF file stands for tensors of ours: theirs is ours, one after the other
// along the output dimension, in another order of rows, with a number added.
struct GgufPair {
  std::string theirs;             // "blk.0.attn_q.weight"
  std::vector<std::string> ours;  // joined; none: a constant that follows from the configuration
  // Rows of each of so many heads: the file has them as pairs of the rotation (0, C/2, 1, C/2 + 1,
  // …) and we as its halves (0, 1, …, C/2, C/2 + 1, …). 0: the same order.
  int64_t interleaved_heads = 0;
  float added = 0;                 // theirs = ours + added
  bool stacked = false;            // along a dimension of its own in front: experts
  std::vector<float> values = {};  // of a constant
  GgufHeadRows part = {};
};

// The metadata of one file as an architecture reads it: keys without the architecture's name,
// numbers within what a model can have.
struct GgufKeys {
  const GgufHeader& header;
  const std::string& file;  // for messages
  std::string prefix;       // "llama."
  std::function<std::span<const std::byte>(const GgufTensor&)> bytes;

  bool has(std::string_view key) const;
  int64_t size(std::string_view key) const;  // 0 … 2^30; throws Error(format)
  int64_t size_or(std::string_view key, int64_t otherwise) const;
  double number(std::string_view key) const;  // the shortest decimal that is the same float
  double number_or(std::string_view key, double otherwise) const;
  std::string text_or(std::string_view key, std::string_view otherwise) const;
  // The places of an array of booleans that are true. Throws Error(format) for another type.
  std::vector<int64_t> flagged(std::string_view key) const;
  bool flag_or(std::string_view key, bool otherwise) const;
  // Rows of a tensor that every file has. Throws Error(format).
  int64_t rows(std::string_view tensor) const;
  bool has_tensor(std::string_view tensor) const { return find(tensor) != nullptr; }
  int64_t tensors() const { return static_cast<int64_t>(header.tensors.size()); }
  // The values of a small tensor of F32. Throws Error(format).
  std::vector<float> values(std::string_view tensor) const;

 private:
  const GgufTensor* find(std::string_view tensor) const;
};

// One family as llama.cpp knows it (gguf-py: constants.py has keys and tensor names; its converters
// the layouts). What this table's functions cannot say of a model is found by reading back what
// `write` wrote: see gguf_misfit.
struct GgufArchitecture {
  std::string_view name;        // general.architecture
  std::string_view model_type;  // of our Architecture that the same models have
  DecoderConfig (*read)(const GgufKeys& keys);
  void (*write)(const DecoderConfig& config, GgufMetadata& out);
  std::vector<GgufPair> (*pairs)(const DecoderConfig& config);
  // Where several families go by one name: whether a file is of this one. Without: it is.
  bool (*takes)(const GgufMetadata& metadata) = nullptr;
  bool windows = false;  // whether llama.cpp computes attention.sliding_window of it
};

std::span<const GgufArchitecture> gguf_architectures();  // gguf_table.cpp
// The first whose name a file gives and that takes it. Throws Error(config) naming those there are.
const GgufArchitecture& gguf_architecture_for(const GgufMetadata& metadata,
                                              const std::string& file);
// What llama.cpp computes otherwise than this model although the file says it: a line each.
std::vector<std::string> gguf_differences(const GgufArchitecture& row, const DecoderConfig& config);
// The one for our model_type; throws Error(config) where llama.cpp has none that Ingot knows.
const GgufArchitecture& gguf_architecture_of(std::string_view model_type);

}  // namespace ingot
