#include "ingot/data/shuffle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tests/support/message.h"

namespace ingot::testing {
namespace {

std::vector<int64_t> order(int64_t size, const RandomKey& key) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < size; ++i) {
    out.push_back(permuted(i, size, key));
  }
  return out;
}

TEST(Permuted, VisitsEveryIndexOnce) {
  for (const int64_t size : {1, 2, 3, 4, 5, 16, 17, 100, 4096, 4097, 10007}) {
    const std::vector<int64_t> all = order(size, {1, 2, 3});
    const std::set<int64_t> seen(all.begin(), all.end());
    EXPECT_EQ(static_cast<int64_t>(seen.size()), size);
    EXPECT_EQ(*seen.begin(), 0) << size;
    EXPECT_EQ(*seen.rbegin(), size - 1) << size;
  }
}

TEST(Permuted, DependsOnEveryPartOfTheKey) {
  const std::vector<int64_t> base = order(1000, {1, 2, 3});
  EXPECT_EQ(base, order(1000, {1, 2, 3}));
  for (const RandomKey& other : {RandomKey{9, 2, 3}, RandomKey{1, 9, 3}, RandomKey{1, 2, 9}}) {
    const std::vector<int64_t> changed = order(1000, other);
    int64_t equal = 0;
    for (size_t i = 0; i < base.size(); ++i) {
      equal += base[i] == changed[i] ? 1 : 0;
    }
    EXPECT_LT(equal, 12);  // one expected of unrelated permutations
  }
}

// The element that comes first must be equally likely to be any: χ² with 49 degrees of freedom.
TEST(Permuted, PutsEachElementEverywhereEquallyOften) {
  std::vector<double> counts(50);
  constexpr int draws = 20000;
  for (uint64_t seed = 0; seed < draws; ++seed) {
    ++counts[static_cast<size_t>(permuted(7, 50, {seed, 0, 0}))];
  }
  double chi_square = 0;
  for (const double count : counts) {
    chi_square += std::pow(count - draws / 50.0, 2) / (draws / 50.0);
  }
  EXPECT_LT(chi_square, 94);  // exceeded once in 10⁴ tries by chance
}

TEST(Permuted, RefusesAnIndexOutOfRange) {
  EXPECT_EQ(message_of(ErrorKind::argument, [] { permuted(5, 5, {}); }),
            "permuted: the index must be in [0, 5): got 5");
}

struct Numbers : Dataset<int64_t> {
  int64_t size() const override { return 10; }
  int64_t get(int64_t i) const override { return i; }
};

TEST(Shuffled, GivesEachSampleOnceAnEpochInAnotherOrderEachTime) {
  const Shuffled<int64_t> shuffled(std::make_shared<Numbers>(), 4);
  std::vector<std::vector<int64_t>> orders;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<int64_t> seen;
    std::set<int64_t> distinct;
    for (int64_t i = 0; i < 10; ++i) {
      const int64_t sample = shuffled.get(epoch * 10 + i);
      EXPECT_EQ(sample / 10, epoch);
      seen.push_back(sample % 10);
      distinct.insert(sample);
    }
    EXPECT_EQ(distinct.size(), 10);
    orders.push_back(seen);
  }
  EXPECT_NE(orders[0], orders[1]);
  EXPECT_NE(orders[1], orders[2]);
}

}  // namespace
}  // namespace ingot::testing
