#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ingot/generate/tokens.h"
#include "ingot/models/decoder.h"

namespace ingot {

// Texts that a model continues side by side, one token a row at a time, with cached keys and
// values. A text that outgrows the model's context goes on from its last half, read again; where
// the angles of all positions change with the length (longrope), it is read again whole. The
// longest row decides that for all. Evaluation only: runs without gradients or dropout.
class Decoding {
 public:
  // `reserve`: tokens a row will be fed at most, for the size of the cache. Throws Error(argument)
  // for no rows, an empty prompt, or one longer than the model's context. The model must outlive
  // this.
  Decoding(const Decoder& model, std::vector<Tokens> prompts, int64_t reserve);

  // [B, V] f32: of the token after each row.
  const Tensor& logits() const { return logits_; }
  const std::vector<Tokens>& texts() const { return texts_; }
  // Adds one token to each row.
  void feed(std::span<const int64_t> tokens);

 private:
  void read(int64_t longest);  // the ends of all texts, at most this many tokens of each
  void read_next();            // the last token of each text

  const Decoder& model_;
  std::vector<Tokens> texts_;
  nn::KvCache cache_;
  Tensor logits_;
};

}  // namespace ingot
