#include "ingot/data/packing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "ingot/data/batch.h"
#include "ingot/data/fim.h"
#include "ingot/data/mixture.h"
#include "tests/support/message.h"
#include "tests/support/oracle.h"

namespace ingot::testing {
namespace {

using ::testing::HasSubstr;

// Every file of methods/data that tells lengths and bins.
TEST(Packing, GivesTheBinsOfTheOracle) {
  int64_t files = 0;
  for (const auto& path : oracle_files("methods/data")) {
    const Oracle oracle = read_oracle(path);
    if (!oracle.inputs.contains("lengths")) {
      continue;
    }
    ++files;
    const auto lengths = oracle.inputs["lengths"].get<std::vector<int64_t>>();
    const auto capacity = static_cast<int64_t>(oracle.setting("sequence_length"));
    const std::vector<Bin> bins = best_fit_packing(lengths, capacity);
    nlohmann::json got = nlohmann::json::array();
    std::vector<int64_t> free;
    int64_t tokens = 0;
    for (const Bin& bin : bins) {
      nlohmann::json one = nlohmann::json::array();
      int64_t space = capacity;
      for (const Piece& piece : bin) {
        one.push_back({piece.document, piece.start, piece.length});
        space -= piece.length;
        tokens += piece.length;
      }
      got.push_back(one);
      free.push_back(space);
    }
    EXPECT_EQ(got, oracle.expected["bins"]) << oracle.file;
    EXPECT_EQ(nlohmann::json(free), oracle.expected["free"]) << oracle.file;
    EXPECT_EQ(static_cast<int64_t>(bins.size()), oracle.expected["bin_count"].get<int64_t>());
    EXPECT_EQ((tokens + capacity - 1) / capacity, oracle.expected["lower_bound"].get<int64_t>());
    EXPECT_NEAR(static_cast<double>(tokens) /
                    static_cast<double>(capacity * static_cast<int64_t>(bins.size())),
                number_from(oracle.expected["utilization"]), 1e-12);
  }
  EXPECT_GE(files, 1);
}

RC_GTEST_PROP(Packing, HoldsEveryTokenOnceAndNoBinOverflows, ()) {
  const int64_t capacity = *rc::gen::inRange<int64_t>(1, 40);
  const auto lengths = *rc::gen::container<std::vector<int64_t>>(rc::gen::inRange<int64_t>(0, 100));
  std::vector<int64_t> seen(lengths.size(), 0);
  int64_t half_empty = 0;
  for (const Bin& bin : best_fit_packing(lengths, capacity)) {
    int64_t used = 0;
    for (const Piece& piece : bin) {
      RC_ASSERT(piece.length > 0 && piece.start % capacity == 0);
      used += piece.length;
      seen[static_cast<size_t>(piece.document)] += piece.length;
    }
    RC_ASSERT(used <= capacity);
    half_empty += 2 * used <= capacity ? 1 : 0;
  }
  RC_ASSERT(seen == lengths);
  RC_ASSERT(half_empty <= 1);  // two such bins would have become one
}

TEST(Packing, RefusesWhatIsNoLength) {
  const std::vector<int64_t> lengths = {3, -1};
  EXPECT_THAT(message_of(ErrorKind::argument, [&] { best_fit_packing(lengths, 4); }),
              HasSubstr("packing: document 1 has a length below 0: -1"));
  EXPECT_THAT(message_of(ErrorKind::argument, [&] { best_fit_packing({}, 0); }),
              HasSubstr("packing: the capacity must be at least 1: got 0"));
}

std::string joined(const std::vector<FimPart>& parts, const nlohmann::json& sentinels) {
  std::string out;
  for (const FimPart& part : parts) {
    out += sentinels[static_cast<size_t>(part.sentinel)].get<std::string>() + part.text;
  }
  return out;
}

TEST(Fim, MovesTheMiddleAsTheOracleDoes) {
  int64_t files = 0;
  for (const auto& path : oracle_files("methods/data")) {
    const Oracle oracle = read_oracle(path);
    if (!oracle.hyper.contains("sentinels")) {
      continue;
    }
    ++files;
    const auto& sentinels = oracle.hyper["sentinels"];
    const auto texts = oracle.inputs["texts"].get<std::vector<std::string>>();
    for (size_t i = 0; i < texts.size(); ++i) {
      const auto begin = oracle.inputs["cuts"][i][0].get<int64_t>();
      const auto end = oracle.inputs["cuts"][i][1].get<int64_t>();
      EXPECT_EQ(joined(fim_parts(texts[i], begin, end, FimOrder::psm), sentinels),
                oracle.expected["psm"][i]);
      EXPECT_EQ(joined(fim_parts(texts[i], begin, end, FimOrder::spm), sentinels),
                oracle.expected["spm"][i]);
      EXPECT_EQ(joined(fim_parts(texts[i], begin, end, FimOrder::spm_v2), sentinels),
                oracle.expected["spm_v2"][i]);
    }
  }
  EXPECT_GE(files, 1);
}

TEST(Fim, RefusesCutsOutsideTheTextAndDrawsThemInside) {
  EXPECT_THAT(message_of(ErrorKind::argument, [] { fim_parts("é", 1, 2, FimOrder::psm); }),
              HasSubstr("fim: the middle 1 to 2 does not lie in a text of 1 characters"));
  std::vector<int64_t> seen(4, 0);
  for (uint64_t i = 0; i < 2000; ++i) {
    const auto [a, b] = fim_cuts(3, {1, i, 2});
    ASSERT_TRUE(0 <= a && a <= b && b <= 3);
    ++seen[static_cast<size_t>(a)];
    ++seen[static_cast<size_t>(b)];
  }
  for (const int64_t count : seen) {
    EXPECT_NEAR(static_cast<double>(count), 1000, 120);
  }
}

class Numbered : public Dataset<int64_t> {
 public:
  Numbered(int64_t size, int64_t base) : size_(size), base_(base) {}
  int64_t size() const override { return size_; }
  int64_t get(int64_t i) const override { return base_ + i; }

 private:
  int64_t size_, base_;
};

TEST(Mixture, GivesEverySourceItsShareAndEachSampleInTurn) {
  const std::vector<std::shared_ptr<const Dataset<int64_t>>> sources = {
      std::make_shared<Numbered>(100, 0), std::make_shared<Numbered>(1000000, 1000000),
      std::make_shared<Numbered>(50, 5000000)};
  const std::vector<double> weights = {0.6, 0.3, 0.1};
  const Mixture<int64_t> mixture(sources, weights, 5);
  std::vector<std::vector<int64_t>> seen(3);
  for (int64_t i = 0; i < 10000; ++i) {
    const int64_t value = mixture.get(i);
    const size_t source = value < 1000000 ? 0 : value < 5000000 ? 1 : 2;
    seen[source].push_back(value - (source == 0 ? 0 : source == 1 ? 1000000 : 5000000));
    EXPECT_EQ(mixture.get(i), value);
  }
  for (size_t k = 0; k < 3; ++k) {
    EXPECT_EQ(static_cast<double>(seen[k].size()), 10000 * weights[k]);
    std::sort(seen[k].begin(), seen[k].end());
    for (size_t j = 0; j < seen[k].size(); ++j) {
      ASSERT_EQ(seen[k][j], static_cast<int64_t>(j));  // each once, none left out
    }
  }
  EXPECT_EQ(mixture.size(), (1000000 + 299) / 300 * 1000);
}

TEST(Mixture, RefusesWeightsThatNameNothing) {
  EXPECT_THAT(message_of(ErrorKind::config,
                         [] {
                           mixture_quotas(std::vector<double>{0, 0}, 10);
                         }),
              HasSubstr("mixture: no weight is above 0"));
  EXPECT_THAT(message_of(ErrorKind::config,
                         [] {
                           mixture_quotas(std::vector<double>{1, -1}, 10);
                         }),
              HasSubstr("mixture: weight 1 is -1"));
  EXPECT_THAT(message_of(ErrorKind::config,
                         [] {
                           mixture_quotas(std::vector<double>{1, 1e-9}, 10);
                         }),
              HasSubstr("less than one of 10 samples"));
  EXPECT_EQ(mixture_quotas(std::vector<double>{1, 1, 1}, 10), (std::vector<int64_t>{4, 3, 3}));
}

}  // namespace
}  // namespace ingot::testing
