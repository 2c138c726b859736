#include "ingot/base/philox.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <thread>
#include <vector>

namespace ingot {
namespace {

// The three philox4x32 10-round lines of Random123's kat_vectors (release 1.14.0).
TEST(Philox, GivesThePublishedAnswers) {
  EXPECT_EQ(philox4x32_10({0, 0, 0, 0}, {0, 0}),
            (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(
      philox4x32_10({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
      (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(
      philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
      (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, UsesEveryBitOfSeedStepSiteAndIndex) {
  std::set<PhiloxBlock> seen;
  seen.insert(Philox({0, 0, 0}).block(0));
  for (int bit = 0; bit < 64; ++bit) {
    const uint64_t x = uint64_t{1} << bit;
    seen.insert(Philox({x, 0, 0}).block(0));
    seen.insert(Philox({0, x, 0}).block(0));
    seen.insert(Philox({0, 0, x}).block(0));
    seen.insert(Philox({0, 0, 0}).block(x));
  }
  EXPECT_EQ(seen.size(), 1U + 4U * 64U);
}

TEST(Philox, NeighbouringStreamsDoNotOverlap) {
  std::set<PhiloxBlock> seen;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    for (uint64_t step = 0; step < 20; ++step) {
      for (uint64_t site = 0; site < 20; ++site) {
        for (uint64_t b = 0; b < 20; ++b) {
          seen.insert(Philox({seed, step, site}).block(b));
        }
      }
    }
  }
  EXPECT_EQ(seen.size(), 4U * 20U * 20U * 20U);
}

TEST(Philox, GivesTheSameElementsInBlocksAsOneByOne) {
  const Philox random({7, 3, site_named("dropout")});
  for (uint64_t b = 0; b < 100; ++b) {
    for (uint64_t i = 0; i < 4; ++i) {
      EXPECT_EQ(random.word(4 * b + i), random.block(b)[i]);
      EXPECT_EQ(random.uniform(4 * b + i), random.uniform4(b)[i]);
      EXPECT_EQ(random.normal(4 * b + i), random.normal4(b)[i]);
    }
  }
}

TEST(Philox, GivesTheSameElementsOnEveryThread) {
  const Philox random({1, 2, 3});
  std::vector<float> one(4000);
  std::vector<float> many(4000);
  for (size_t i = 0; i < one.size(); ++i) {
    one[i] = random.normal(i);
  }
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = t; i < many.size(); i += 4) {
        many[i] = random.normal(i);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(one, many);
}

TEST(Philox, UniformsFillTheirIntervalEvenly) {
  const Philox random({42, 0, 0});
  const int64_t n = 100000;
  std::vector<int64_t> narrow(10);
  std::vector<int64_t> wide(10);
  for (int64_t i = 0; i < n; ++i) {
    const float x = random.uniform(static_cast<uint64_t>(i));
    const double y = random.uniform_f64(static_cast<uint64_t>(i));
    ASSERT_TRUE(x >= 0 && x < 1 && y >= 0 && y < 1);
    ++narrow[static_cast<size_t>(x * 10)];
    ++wide[static_cast<size_t>(y * 10)];
  }
  // Each count is binomial with deviation √(n · 0.1 · 0.9) ≈ 95; five deviations.
  for (size_t k = 0; k < 10; ++k) {
    EXPECT_NEAR(static_cast<double>(narrow[k]), 1e4, 475);
    EXPECT_NEAR(static_cast<double>(wide[k]), 1e4, 475);
  }
}

struct Moments {
  double mean = 0, variance = 0, fourth = 0, lag = 0;
};

template <class F>
Moments moments(int64_t n, const F& f) {
  Moments m;
  double before = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double x = static_cast<double>(f(static_cast<uint64_t>(i)));
    m.mean += x / static_cast<double>(n);
    m.variance += x * x / static_cast<double>(n);
    m.fourth += x * x * x * x / static_cast<double>(n);
    m.lag += x * before / static_cast<double>(n);
    before = x;
  }
  return m;
}

TEST(Philox, NormalsHaveTheMomentsOfTheStandardNormal) {
  const Philox random({5, 6, 7});
  const int64_t n = 400000;
  const Moments narrow = moments(n, [&](uint64_t i) { return random.normal(i); });
  const Moments wide = moments(n, [&](uint64_t i) { return random.normal_f64(i); });
  // Deviations of the estimates: 1/√n, √2/√n, √96/√n, 1/√n with √n ≈ 632; five deviations.
  for (const Moments& m : {narrow, wide}) {
    EXPECT_NEAR(m.mean, 0, 0.008);
    EXPECT_NEAR(m.variance, 1, 0.012);
    EXPECT_NEAR(m.fourth, 3, 0.08);
    EXPECT_NEAR(m.lag, 0, 0.008);
  }
}

TEST(Philox, SitesComeFromNames) {
  static_assert(site_named("") == 0xcbf29ce484222325U);
  EXPECT_EQ(site_named("a"), 0xaf63dc4c8601ec8cU);  // the FNV reference test vectors
  EXPECT_EQ(site_named("foobar"), 0x85944171f73967e8U);
}

}  // namespace
}  // namespace ingot
