#pragma once

#include <string>
#include <utility>
#include <vector>

namespace ingot {

// One line of a plot, or points where there are few.
struct Curve {
  std::string name;
  std::vector<std::pair<double, double>>
      points;  // x ascending; those that are not finite are left out
};

// Curves as a standalone SVG picture, 720 by 360, with axes, a legend and at most 720 points a
// curve (means of neighbours). Empty where no curve has two points.
std::string svg_curves(const std::string& title, const std::string& x_name,
                       const std::vector<Curve>& curves);

}  // namespace ingot
