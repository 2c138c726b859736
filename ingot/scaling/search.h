#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ingot {

// A setting that a search varies: given values, or a range.
struct SearchAxis {
  std::string key;                  // "optim.lr"
  std::vector<std::string> values;  // as they are written; empty for a range
  double low = 0, high = 0;         // of a range
  bool logarithmic = false;         // steps of equal ratio: where low > 0
};

// From "optim.lr=1e-4..1e-1" or "model.layers=2,4,8". Throws Error(config) that shows the text.
SearchAxis search_axis(const std::string& text);

using Point = std::vector<std::string>;  // one value for each axis

// All combinations, the last axis running fastest; `count` values of each range, ends included.
std::vector<Point> grid_points(const std::vector<SearchAxis>& axes, int64_t count);
// `count` points drawn evenly (a logarithmic range: evenly in its logarithm); a function of the
// seed. Bergstra and Bengio 2012, "Random search for hyper-parameter optimization".
std::vector<Point> random_points(const std::vector<SearchAxis>& axes, int64_t count, uint64_t seed);

// Asynchronous successive halving (ASHA). Li et al. 2018, arXiv:1810.05934, algorithm 2. Trials
// are trained up to rungs 0, 1, …; of those that reached a rung, the best 1/η may go on.
struct Promotion {
  size_t trial = 0;
  size_t rung = 0;  // that it is to be trained up to
};
// scores[i]: of trial i at the rungs it reached, smaller is better, NaN worst. nullopt: done. New
// trials are begun where none can be promoted; when none is left and no trial came to the last
// rung, the best of the highest rung goes on.
std::optional<Promotion> next_promotion(const std::vector<std::vector<double>>& scores,
                                        size_t rungs, int64_t reduction);

// Steps of rung r of R: ⌈steps / η^(R−1−r)⌉.
int64_t steps_of_rung(int64_t steps, size_t rung, size_t rungs, int64_t reduction);

// Where a loss over x > 0 is least: the lowest of the points (x, loss), moved to the vertex of the
// parabola in log x through it and its neighbours where it has two, by a factor of 2 at most. x
// ascending; points that are not finite are left out. nullopt without any.
std::optional<double> least_at(const std::vector<std::pair<double, double>>& points);

}  // namespace ingot
