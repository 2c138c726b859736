#include "ingot/train/curve_marks.h"

#include <algorithm>
#include <cmath>

namespace ingot {
namespace {

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

bool is_spike(std::span<const double> before, double value) {
  const std::vector<double> values(before.begin(), before.end());
  const double usual = median(values);
  std::vector<double> distances;
  for (const double each : values) {
    distances.push_back(std::abs(each - usual));
  }
  return !(value <= usual + std::max(6 * median(distances), 0.05 * std::abs(usual)));
}

std::vector<size_t> spikes_of(std::span<const double> losses) {
  constexpr size_t window = 20;
  std::vector<size_t> out;
  std::vector<double> calm(losses.begin(),
                           losses.begin() + static_cast<int64_t>(std::min(window, losses.size())));
  bool high = false;
  for (size_t i = window; i < losses.size(); ++i) {
    const bool spike = is_spike(std::span(calm).last(window), losses[i]);
    if (spike && !high) {
      out.push_back(i);
    }
    high = spike;
    if (!spike) {
      calm.push_back(losses[i]);
    }
  }
  return out;
}

size_t divergence_of(std::span<const double> losses, std::span<const double> smooth) {
  size_t finite = losses.size();
  while (finite > 0 && !std::isfinite(losses[finite - 1])) {
    --finite;
  }
  if (finite < losses.size() || losses.empty()) {
    return finite;
  }
  const auto least = std::min_element(smooth.begin(), smooth.end());
  const bool lost = smooth.back() > *least + (smooth.front() - *least) / 2;
  return lost && least + 1 != smooth.end() ? static_cast<size_t>(least - smooth.begin())
                                           : losses.size();
}

std::vector<CurveMarks::Stretch> plateaus_of(std::span<const double> smooth) {
  std::vector<CurveMarks::Stretch> out;
  if (smooth.empty()) {
    return out;
  }
  const auto [low, high] = std::minmax_element(smooth.begin(), smooth.end());
  const double narrow = 0.02 * (*high - *low);
  const size_t least = std::max<size_t>(10, smooth.size() / 5);
  for (size_t begin = 0; begin < smooth.size();) {
    double bottom = smooth[begin];
    double top = smooth[begin];
    size_t end = begin;
    while (end < smooth.size()) {
      bottom = std::min(bottom, smooth[end]);
      top = std::max(top, smooth[end]);
      if (top - bottom > narrow) {
        break;
      }
      ++end;
    }
    if (end - begin >= least) {
      out.push_back({begin, end});
    }
    begin = end - begin >= least ? end : begin + 1;
  }
  return out;
}

}  // namespace

std::vector<double> smoothed(std::span<const double> losses, double weight) {
  std::vector<double> out;
  double mean = 0;
  double share = 0;  // 1 − wᵗ
  for (const double loss : losses) {
    if (std::isfinite(loss)) {
      mean = weight * mean + (1 - weight) * loss;
      share = weight * share + (1 - weight);
    }
    out.push_back(share > 0 ? mean / share : loss);
  }
  return out;
}

CurveMarks marks_of(std::span<const double> losses, double weight) {
  const std::vector<double> smooth = smoothed(losses, weight);
  CurveMarks out;
  out.diverges = divergence_of(losses, smooth);
  out.spikes = spikes_of(losses.first(out.diverges));
  out.plateaus = plateaus_of(std::span(smooth).first(out.diverges));
  return out;
}

}  // namespace ingot
