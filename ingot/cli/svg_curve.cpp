#include "ingot/cli/svg_curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace ingot {
namespace {

using Points = std::vector<std::pair<double, double>>;

constexpr double width = 720, height = 360;
constexpr double left = 60, right = 15, top = 30, bottom = 40;
constexpr size_t most_points = 720;
constexpr std::array colours = {"#1f6fb2", "#c8501e", "#3a8a3a", "#7a4fa3", "#8a6d1b"};

// Finite points, at most most_points: means of neighbours.
Points thinned(const Points& points) {
  Points finite;
  for (const auto& point : points) {
    if (std::isfinite(point.second)) {
      finite.push_back(point);
    }
  }
  const size_t stride = (finite.size() + most_points - 1) / most_points;
  Points out;
  for (size_t begin = 0; begin < finite.size(); begin += stride) {
    const size_t end = std::min(finite.size(), begin + stride);
    double x = 0, y = 0;
    for (size_t i = begin; i < end; ++i) {
      x += finite[i].first;
      y += finite[i].second;
    }
    const auto count = static_cast<double>(end - begin);
    out.emplace_back(x / count, y / count);
  }
  return out;
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char letter : text) {
    out += letter == '&' ? "&amp;" : letter == '<' ? "&lt;" : std::string(1, letter);
  }
  return out;
}

struct PlotArea {
  double x_low, x_high, y_low, y_high;

  double x(double value) const {
    return left + (value - x_low) / (x_high - x_low) * (width - left - right);
  }
  double y(double value) const {
    return height - bottom - (value - y_low) / (y_high - y_low) * (height - top - bottom);
  }
};

// About five round values between low and high.
std::vector<double> ticks(double low, double high) {
  const double rough = (high - low) / 5;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  const double step = power * (rough / power < 2 ? 2 : rough / power < 5 ? 5 : 10);
  std::vector<double> out;
  for (double value = std::ceil(low / step) * step; value <= high; value += step) {
    out.push_back(value);
  }
  return out;
}

std::string axes(const PlotArea& frame, const std::string& x_name) {
  std::string out;
  for (const double value : ticks(frame.y_low, frame.y_high)) {
    out += fmt::format(
        "<line x1='{0}' y1='{1:.1f}' x2='{2}' y2='{1:.1f}' stroke='#ddd'/>"
        "<text x='{3}' y='{1:.1f}' text-anchor='end' dy='4'>{4:.4g}</text>\n",
        left, frame.y(value), width - right, left - 6, value);
  }
  for (const double value : ticks(frame.x_low, frame.x_high)) {
    out += fmt::format("<text x='{:.1f}' y='{}' text-anchor='middle'>{:.6g}</text>\n",
                       frame.x(value), height - bottom + 16, value);
  }
  return out + fmt::format("<text x='{}' y='{}' text-anchor='middle'>{}</text>\n", width / 2,
                           height - 6, escaped(x_name));
}

}  // namespace

std::string svg_curves(const std::string& title, const std::string& x_name,
                       const std::vector<Curve>& curves) {
  std::vector<std::pair<std::string, Points>> drawn;
  PlotArea frame{HUGE_VAL, -HUGE_VAL, HUGE_VAL, -HUGE_VAL};
  size_t longest = 0;
  for (const Curve& curve : curves) {
    drawn.emplace_back(curve.name, thinned(curve.points));
    longest = std::max(longest, drawn.back().second.size());
    for (const auto& [x, y] : drawn.back().second) {
      frame = {std::min(frame.x_low, x), std::max(frame.x_high, x), std::min(frame.y_low, y),
               std::max(frame.y_high, y)};
    }
  }
  if (longest < 2) {
    return "";
  }
  const double room = std::max(1e-9 + 1e-6 * std::abs(frame.y_high), frame.y_high - frame.y_low);
  frame.y_low -= 0.05 * room;
  frame.y_high += 0.05 * room;
  frame.x_high = std::max(frame.x_high, frame.x_low + 1);
  std::string out = fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {0} {1}' width='{0}' height='{1}' "
      "font-family='sans-serif' font-size='12'>\n<rect width='{0}' height='{1}' fill='#fff'/>\n"
      "<text x='{2}' y='18' font-size='14'>{3}</text>\n",
      width, height, left, escaped(title));
  out += axes(frame, x_name);
  for (size_t i = 0; i < drawn.size(); ++i) {
    const auto& [name, points] = drawn[i];
    const char* colour = colours[i % colours.size()];
    out += fmt::format("<polyline fill='none' stroke='{}' stroke-width='1.5' points='", colour);
    for (const auto& [x, y] : points) {
      out += fmt::format("{:.1f},{:.1f} ", frame.x(x), frame.y(y));
    }
    out += "'/>\n";
    if (points.size() <= 50) {
      for (const auto& [x, y] : points) {
        out += fmt::format("<circle cx='{:.1f}' cy='{:.1f}' r='3' fill='{}'/>", frame.x(x),
                           frame.y(y), colour);
      }
    }
    out += fmt::format("<text x='{}' y='{}' text-anchor='end' fill='{}'>{}</text>\n", width - right,
                       18 + 15 * i, colour, escaped(name));
  }
  return out + "</svg>\n";
}

}  // namespace ingot
