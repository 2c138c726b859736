#include "ingot/scaling/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "ingot/base/error.h"
#include "ingot/base/philox.h"

namespace ingot {
namespace {

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

// The value at share t of a range, with four digits, which is finer than any search.
std::string at_share(const SearchAxis& axis, double t) {
  const double value = axis.logarithmic ? axis.low * std::pow(axis.high / axis.low, t)
                                        : axis.low + t * (axis.high - axis.low);
  return fmt::format("{:.4g}", value);
}

std::vector<std::string> spaced(const SearchAxis& axis, int64_t count) {
  if (!axis.values.empty()) {
    return axis.values;
  }
  std::vector<std::string> out;
  for (int64_t i = 0; i < count; ++i) {
    out.push_back(at_share(axis, static_cast<double>(i) / static_cast<double>(count - 1)));
  }
  return out;
}

// Trials that reached a rung, the best first; of equal ones the earlier.
std::vector<size_t> ranked(const std::vector<std::vector<double>>& scores, size_t rung) {
  std::vector<size_t> out;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (scores[i].size() > rung) {
      out.push_back(i);
    }
  }
  std::stable_sort(out.begin(), out.end(), [&](size_t a, size_t b) {
    const double of_a = scores[a][rung];
    const double of_b = scores[b][rung];
    return std::isnan(of_b) ? !std::isnan(of_a) : of_a < of_b;
  });
  return out;
}

}  // namespace

SearchAxis search_axis(const std::string& text) {
  const size_t equals = text.find('=');
  check(equals != std::string::npos && equals > 0 && equals + 1 < text.size(), ErrorKind::config,
        "--vary ", text, ": not of the form KEY=A,B,C or KEY=LOW..HIGH");
  SearchAxis axis{text.substr(0, equals), {}};
  const std::string values = text.substr(equals + 1);
  if (const size_t dots = values.find(".."); dots != std::string::npos) {
    const auto low = number(std::string_view(values).substr(0, dots));
    const auto high = number(std::string_view(values).substr(dots + 2));
    check(low && high && *low < *high, ErrorKind::config, "--vary ", text,
          ": a range is two numbers, the smaller first, such as 1e-4..1e-1");
    axis.low = *low;
    axis.high = *high;
    axis.logarithmic = *low > 0;
    return axis;
  }
  for (size_t begin = 0; begin <= values.size();) {
    const size_t end = std::min(values.find(',', begin), values.size());
    check(end > begin, ErrorKind::config, "--vary ", text, ": an empty value between the commas");
    axis.values.push_back(values.substr(begin, end - begin));
    begin = end + 1;
  }
  return axis;
}

std::vector<Point> grid_points(const std::vector<SearchAxis>& axes, int64_t count) {
  check(count >= 2, ErrorKind::argument, "grid_points: ", count, " values of a range, at least 2");
  std::vector<Point> points = {{}};
  for (const SearchAxis& axis : axes) {
    std::vector<Point> longer;
    for (const Point& point : points) {
      for (const std::string& value : spaced(axis, count)) {
        longer.push_back(point);
        longer.back().push_back(value);
      }
    }
    points = std::move(longer);
  }
  return points;
}

std::vector<Point> random_points(const std::vector<SearchAxis>& axes, int64_t count,
                                 uint64_t seed) {
  const Philox random({seed, 0, site_named("search")});
  std::vector<Point> points;
  uint64_t drawn = 0;
  for (int64_t i = 0; i < count; ++i) {
    Point& point = points.emplace_back();
    for (const SearchAxis& axis : axes) {
      const double u = random.uniform_f64(drawn++);
      const auto choices = static_cast<double>(axis.values.size());
      point.push_back(axis.values.empty() ? at_share(axis, u)
                                          : axis.values[static_cast<size_t>(u * choices)]);
    }
  }
  return points;
}

std::optional<Promotion> next_promotion(const std::vector<std::vector<double>>& scores,
                                        size_t rungs, int64_t reduction) {
  for (size_t rung = rungs - 1; rung-- > 0;) {
    const std::vector<size_t> order = ranked(scores, rung);
    const size_t best = order.size() / static_cast<size_t>(reduction);
    for (size_t i = 0; i < best; ++i) {
      if (scores[order[i]].size() == rung + 1 && !std::isnan(scores[order[i]][rung])) {
        return Promotion{order[i], rung + 1};
      }
    }
  }
  for (size_t i = 0; i < scores.size(); ++i) {
    if (scores[i].empty()) {
      return Promotion{i, 0};
    }
  }
  for (size_t rung = rungs; rung-- > 0;) {
    const std::vector<size_t> order = ranked(scores, rung);
    if (!order.empty()) {
      const bool goes_on = rung + 1 < rungs && !std::isnan(scores[order.front()][rung]);
      return goes_on ? std::optional(Promotion{order.front(), rung + 1}) : std::nullopt;
    }
  }
  return std::nullopt;
}

int64_t steps_of_rung(int64_t steps, size_t rung, size_t rungs, int64_t reduction) {
  for (size_t r = rung + 1; r < rungs; ++r) {
    steps = (steps + reduction - 1) / reduction;
  }
  return steps;
}

std::optional<double> least_at(const std::vector<std::pair<double, double>>& points) {
  std::vector<std::pair<double, double>> known;  // (log x, loss)
  for (const auto& [x, loss] : points) {
    if (x > 0 && std::isfinite(loss)) {
      known.emplace_back(std::log(x), loss);
    }
  }
  if (known.empty()) {
    return std::nullopt;
  }
  const auto best = std::min_element(
      known.begin(), known.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (best == known.begin() || best + 1 == known.end()) {
    return std::exp(best->first);
  }
  const double left = best->first - (best - 1)->first;
  const double right = (best + 1)->first - best->first;
  const double rise_left = ((best - 1)->second - best->second) / left;
  const double rise_right = ((best + 1)->second - best->second) / right;
  // The parabola's slope at the lowest point over its second derivative.
  const double slope = (rise_right * left - rise_left * right) / (left + right);
  const double bend = 2 * (rise_left + rise_right) / (left + right);
  const double move = bend > 0 ? -slope / bend : 0;
  return std::exp(best->first + std::clamp(move, -std::log(2.0), std::log(2.0)));
}

}  // namespace ingot
