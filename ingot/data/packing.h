#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ingot {

// A part of a document: `length` tokens from `start`.
struct Piece {
  int64_t document = 0;
  int64_t start = 0;
  int64_t length = 0;

  friend bool operator==(const Piece&, const Piece&) = default;
};
using Bin = std::vector<Piece>;

// Documents packed into bins of `capacity` tokens, none cut that fits into one (Ding et al. 2024,
// "Fewer truncations improve language modeling", arXiv:2404.10830, algorithm 1, best fit
// decreasing):
//   each document is split into pieces of `capacity` tokens and a last one of the rest;
//   pieces are sorted by length, longest first, equal ones in their order;
//   each goes into the bin with the least free space that still holds it, of equal ones into that
//   which reached this free space first; else into a new bin.
// Documents of length 0 take no room. O(pieces · log capacity) time. Throws Error(argument) for a
// capacity below 1 or a length below 0.
std::vector<Bin> best_fit_packing(std::span<const int64_t> lengths, int64_t capacity);

}  // namespace ingot
