#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ingot {

// How far one part of a model moved in a few steps, at one width.
struct Coordinates {
  bool mup = false;  // or the usual parametrization
  int64_t width = 0;
  std::string part;   // "layers.0", …, "logits"
  double change = 0;  // √mean (x after − x before)², over a batch
};

// The coordinate check of Yang et al. 2022, arXiv:2203.03466, appendix D.1: a tiny Llama at each
// width, five steps of AdamW at one rate, and how far what its layers give and its logits moved.
// Under muP that does not depend on the width; under the usual parametrization it grows.
std::vector<Coordinates> coordinate_check(const std::vector<int64_t>& widths);

// The largest over the smallest change of a part over all widths.
struct Growth {
  std::string part;
  double usual = 0;
  double mup = 0;
};
std::vector<Growth> growth_of(const std::vector<Coordinates>& all);

// The last losses of the tiny model at a width after `steps` steps with each rate.
std::vector<double> losses_by_rate(int64_t width, bool mup, const std::vector<double>& rates,
                                   int64_t steps);

}  // namespace ingot
