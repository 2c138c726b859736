#include "ingot/scaling/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "ingot/base/philox.h"
#include "tests/support/message.h"

namespace ingot::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Search, AxesAreValuesOrRanges) {
  const SearchAxis range = search_axis("optim.lr=1e-4..1e-1");
  EXPECT_EQ(range.key, "optim.lr");
  EXPECT_EQ(range.low, 1e-4);
  EXPECT_EQ(range.high, 1e-1);
  EXPECT_TRUE(range.logarithmic);
  EXPECT_FALSE(search_axis("a=0..2").logarithmic);
  EXPECT_THAT(search_axis("optim.kind=adamw,sgd").values, ElementsAre("adamw", "sgd"));
  for (const std::string text : {"optim.lr", "=3", "optim.lr="}) {
    EXPECT_THAT(message_of(ErrorKind::config, [&] { search_axis(text); }),
                HasSubstr("--vary " + text + ": not of the form KEY=A,B,C or KEY=LOW..HIGH"));
  }
  EXPECT_THAT(message_of(ErrorKind::config, [] { search_axis("a=1,,2"); }),
              HasSubstr("an empty value between the commas"));
  for (const std::string text : {"a=2..1", "a=1..x", "a=..1", "a=nan..2"}) {
    EXPECT_THAT(message_of(ErrorKind::config, [&] { search_axis(text); }),
                HasSubstr("a range is two numbers, the smaller first"));
  }
}

TEST(Search, AGridHasAllCombinations) {
  const auto points = grid_points({search_axis("k=a,b"), search_axis("x=0.001..10")}, 5);
  ASSERT_EQ(points.size(), 10u);
  EXPECT_THAT(points[0], ElementsAre("a", "0.001"));
  EXPECT_THAT(points[1], ElementsAre("a", "0.01"));
  EXPECT_THAT(points[4], ElementsAre("a", "10"));
  EXPECT_THAT(points[9], ElementsAre("b", "10"));
  EXPECT_THAT(grid_points({search_axis("x=0..4")}, 3),
              ElementsAre(ElementsAre("0"), ElementsAre("2"), ElementsAre("4")));
}

TEST(Search, RandomPointsAreEvenInTheLogarithmAndOfTheSeed) {
  const std::vector<SearchAxis> axes = {search_axis("x=1e-4..1e2"), search_axis("k=a,b,c")};
  const auto points = random_points(axes, 3000, 7);
  EXPECT_EQ(points, random_points(axes, 3000, 7));
  EXPECT_NE(points, random_points(axes, 3000, 8));
  int below = 0;
  std::set<std::string> kinds;
  for (const Point& point : points) {
    const double x = std::stod(point[0]);
    EXPECT_GE(x, 1e-4);
    EXPECT_LE(x, 1e2);
    below += x < 1e-1;
    kinds.insert(point[1]);
  }
  EXPECT_NEAR(below / 3000.0, 0.5, 0.04);  // four standard deviations
  EXPECT_EQ(kinds.size(), 3u);
}

// Trials whose loss at rung r is known: what ASHA spends on them.
TEST(Search, AshaFindsTheBestOfItsTrialsInAThirdOfTheSteps) {
  constexpr size_t trials = 27, rungs = 4;
  constexpr int64_t steps = 270;
  const Philox random({3, 0, site_named("asha")});
  std::vector<double> quality;
  for (size_t i = 0; i < trials; ++i) {
    quality.push_back(random.uniform_f64(i));
  }
  std::vector<std::vector<double>> scores(trials);
  int64_t trained = 0;
  std::vector<int64_t> done(trials, 0);
  while (const auto next = next_promotion(scores, rungs, 3)) {
    ASSERT_EQ(scores[next->trial].size(), next->rung);  // one rung at a time
    const int64_t until = steps_of_rung(steps, next->rung, rungs, 3);
    trained += until - done[next->trial];
    done[next->trial] = until;
    const double early = 1.0 / static_cast<double>(next->rung + 1);
    scores[next->trial].push_back(quality[next->trial] + early);
  }
  size_t best = 0;
  for (size_t i = 0; i < trials; ++i) {
    EXPECT_FALSE(scores[i].empty());
    best = quality[i] < quality[best] ? i : best;
  }
  EXPECT_EQ(scores[best].size(), rungs);
  EXPECT_LE(trained, steps * static_cast<int64_t>(trials) / 3);
}

TEST(Search, AshaNeverPromotesWhatDiverged) {
  const double nan = std::nan("");
  EXPECT_FALSE(next_promotion({{nan}, {nan}, {nan}}, 3, 3));
  const auto next = next_promotion({{nan}, {2.0}, {nan}}, 3, 3);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->trial, 1u);
  EXPECT_EQ(next->rung, 1u);
}

TEST(Search, AFewTrialsStillComeToTheLastRung) {
  std::vector<std::vector<double>> scores(2);
  while (const auto next = next_promotion(scores, 3, 3)) {
    scores[next->trial].push_back(static_cast<double>(next->trial));
  }
  EXPECT_EQ(scores[0].size(), 3u);
  EXPECT_EQ(scores[1].size(), 1u);
}

TEST(Search, RungsAreThirdsOfThirdsRoundedUp) {
  EXPECT_EQ(steps_of_rung(100, 2, 3, 3), 100);
  EXPECT_EQ(steps_of_rung(100, 1, 3, 3), 34);
  EXPECT_EQ(steps_of_rung(100, 0, 3, 3), 12);
  EXPECT_EQ(steps_of_rung(1, 0, 3, 3), 1);
}

TEST(Search, TheLeastIsTheVertexOfAParabolaInTheLogarithm) {
  std::vector<std::pair<double, double>> points;
  const double optimum = 3e-3;
  for (const double x : {1e-4, 1e-3, 5e-3, 1e-1}) {
    points.emplace_back(x, 2 + std::pow(std::log(x / optimum), 2));
  }
  EXPECT_NEAR(*least_at(points), optimum, 1e-12);
  // Never further than a factor of 2 from what was measured.
  EXPECT_NEAR(*least_at({{1, 10}, {100, 1}, {1e4, 1.001}}), 200, 1e-9);
  EXPECT_EQ(*least_at({{1, 1}, {2, 3}}), 1);
  EXPECT_NEAR(*least_at({{1, 3}, {2, std::nan("")}, {4, 1}}), 4, 1e-12);
  EXPECT_FALSE(least_at({}));
}

}  // namespace
}  // namespace ingot::testing
