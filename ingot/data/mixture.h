#pragma once

#include <algorithm>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "ingot/base/error.h"
#include "ingot/base/philox.h"
#include "ingot/data/dataset.h"
#include "ingot/data/shuffle.h"

namespace ingot {

// How many of `slots` places each source gets: slots · weight / Σ weights, rounded by the largest
// remainders so that they add up. Throws Error(config) where no weight is above 0 or one is below.
std::vector<int64_t> mixture_quotas(std::span<const double> weights, int64_t slots);

// Several datasets in given shares. Samples come in rounds of `slots`, in each of which every
// source has its quota of places, in an order of the round's own; so after any number of samples a
// source's share is off by less than one round. Sample i is a function of i alone. A source that
// has fewer samples than the others begins again earlier (and, if it is Shuffled, in a new order).
template <class Sample>
class Mixture : public Dataset<Sample> {
 public:
  Mixture(std::vector<std::shared_ptr<const Dataset<Sample>>> sources,
          std::span<const double> weights, uint64_t seed, int64_t slots = 1000)
      : sources_(std::move(sources)),
        quotas_(mixture_quotas(weights, slots)),
        slots_(slots),
        seed_(seed) {
    check(sources_.size() == quotas_.size(), ErrorKind::config, "mixture: ", sources_.size(),
          " sources, ", quotas_.size(), " weights; give one each");
    for (size_t k = 0; k < sources_.size(); ++k) {
      check(quotas_[k] == 0 || sources_[k]->size() > 0, ErrorKind::config, "mixture: source ", k,
            " is empty and has a weight above 0; leave it out");
    }
  }

  // Samples after which every source with a weight was seen whole at least once.
  int64_t size() const override {
    int64_t rounds = 1;
    for (size_t k = 0; k < sources_.size(); ++k) {
      if (quotas_[k] > 0) {
        rounds = std::max(rounds, (sources_[k]->size() + quotas_[k] - 1) / quotas_[k]);
      }
    }
    return rounds * slots_;
  }

  Sample get(int64_t i) const override {
    const auto [source, sample] = place(i);
    return sources_[source]->get(sample);
  }

  // Which source sample i comes from, and which of its samples that is.
  std::pair<size_t, int64_t> place(int64_t i) const {
    const int64_t round = i / slots_;
    const RandomKey key{seed_, static_cast<uint64_t>(round), site_named("data.mixture")};
    int64_t slot = permuted(i % slots_, slots_, key);
    size_t k = 0;
    for (; slot >= quotas_[k]; ++k) {
      slot -= quotas_[k];
    }
    return {k, round * quotas_[k] + slot};
  }

 private:
  std::vector<std::shared_ptr<const Dataset<Sample>>> sources_;
  std::vector<int64_t> quotas_;
  int64_t slots_;
  uint64_t seed_;
};

}  // namespace ingot
