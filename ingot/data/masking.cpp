#include "ingot/data/masking.h"

#include <algorithm>
#include <cmath>

#include "ingot/base/error.h"
#include "ingot/base/philox.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"

namespace ingot {
namespace {

// Numbers of one sample, in the order in which they are asked for.
class Draws {
 public:
  Draws(uint64_t seed, int64_t sample)
      : random_({seed, static_cast<uint64_t>(sample), site_named("data.masking")}) {}

  double uniform() { return static_cast<double>(random_.word(at_++)) * 0x1p-32; }
  size_t below(size_t limit) {
    return std::min(static_cast<size_t>(uniform() * static_cast<double>(limit)), limit - 1);
  }

 private:
  Philox random_;
  uint64_t at_ = 0;
};

// The chosen of `places`, which are shuffled for it.
size_t choose(std::vector<size_t>& places, double share, Draws& draws) {
  if (places.empty() || share == 0) {
    return 0;
  }
  const double wanted = share * static_cast<double>(places.size());
  const auto count = static_cast<size_t>(std::floor(wanted + draws.uniform()));
  const size_t chosen = std::clamp<size_t>(count, 1, places.size());
  for (size_t i = 0; i < chosen; ++i) {
    std::swap(places[i], places[i + draws.below(places.size() - i)]);
  }
  return chosen;
}

}  // namespace

Batch masked_batch(const Tensor& ids, const MaskingConfig& config, const MaskingTokens& tokens,
                   uint64_t seed, int64_t first) {
  check(config.mask + config.random <= 1, ErrorKind::config,
        "masking: mask and random are shares of the chosen tokens and sum to 1 at most: mask is ",
        config.mask, ", random is ", config.random);
  check(static_cast<int64_t>(tokens.untouched.size()) + 1 < tokens.vocab, ErrorKind::argument,
        "masking: no token is left to draw: ", tokens.vocab, " tokens, ", tokens.untouched.size(),
        " untouched");
  const auto untouched = [&](int64_t id) {
    return id == tokens.mask || std::ranges::count(tokens.untouched, id) > 0;
  };
  Batch out{copy_of(dense(ids)), full(ids.shape(), ignored_label, DType::i64, ids.device()), {}};
  auto hidden = out.ids.mutable_values<int64_t>();
  auto labels = out.labels.mutable_values<int64_t>();
  const auto T = static_cast<size_t>(ids.size(1));
  for (size_t row = 0; row < hidden.size() / std::max<size_t>(T, 1); ++row) {
    Draws draws(seed, first + static_cast<int64_t>(row));
    std::vector<size_t> places;
    for (size_t i = row * T; i < (row + 1) * T; ++i) {
      if (!untouched(hidden[i])) {
        places.push_back(i);
      }
    }
    const size_t chosen = choose(places, config.share, draws);
    for (size_t i = 0; i < chosen; ++i) {
      int64_t& id = hidden[places[i]];
      labels[places[i]] = id;
      const double what = draws.uniform();
      if (what < config.mask) {
        id = tokens.mask;
      } else if (what < config.mask + config.random) {
        do {
          id = static_cast<int64_t>(draws.below(static_cast<size_t>(tokens.vocab)));
        } while (untouched(id));
      }
    }
  }
  return out;
}

}  // namespace ingot
