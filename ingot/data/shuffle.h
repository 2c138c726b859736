#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "ingot/base/philox.h"
#include "ingot/data/dataset.h"

namespace ingot {

// A keyed permutation of [0, size): where element i goes. No table and no state: a Feistel network
// over the next power of four, walked until it is back in range (Black and Rogaway 2002, "Ciphers
// with arbitrary finite domains", section 4); its round function is Philox under the key.
int64_t permuted(int64_t i, int64_t size, const RandomKey& key);

// Another dataset in an order of its own in every epoch: each sample once an epoch.
template <class Sample>
class Shuffled : public Dataset<Sample> {
 public:
  Shuffled(std::shared_ptr<const Dataset<Sample>> source, uint64_t seed)
      : source_(std::move(source)), seed_(seed) {}

  int64_t size() const override { return source_->size(); }
  Sample get(int64_t i) const override { return source_->get(place_of(i)); }
  std::vector<Origin> origins(int64_t i) const override { return source_->origins(place_of(i)); }

 private:
  int64_t place_of(int64_t i) const {
    const int64_t epoch = i / size();
    const RandomKey key{seed_, static_cast<uint64_t>(epoch), site_named("data.shuffle")};
    return epoch * size() + permuted(i % size(), size(), key);
  }

  std::shared_ptr<const Dataset<Sample>> source_;
  uint64_t seed_;
};

}  // namespace ingot
