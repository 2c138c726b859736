#include "ingot/train/spike.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ingot {
namespace {

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) {
    return *middle;
  }
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

}  // namespace

double high_loss(const LossHistory& history, const NumbersConfig& config) {
  const auto known = static_cast<int64_t>(history.losses.size());
  if (config.spike == 0 || known < std::max<int64_t>(4, config.spike_window / 4)) {
    return std::numeric_limits<double>::infinity();
  }
  const double middle = median(history.losses);
  std::vector<double> deviations;
  for (const double loss : history.losses) {
    deviations.push_back(std::abs(loss - middle));
  }
  return middle + config.spike * std::max(median(std::move(deviations)), 1e-3 * std::abs(middle));
}

bool observe_loss(LossHistory& history, double loss, int64_t start, const NumbersConfig& config) {
  if (config.spike == 0) {
    return false;
  }
  const int64_t before = history.step_start;
  history.step_start = start;
  if (loss > high_loss(history, config)) {
    history.spike_start = history.high == 0 ? before : history.spike_start;
    return ++history.high >= config.spike_steps;
  }
  history.high = 0;
  history.losses.push_back(loss);
  if (static_cast<int64_t>(history.losses.size()) > config.spike_window) {
    history.losses.erase(history.losses.begin());
  }
  return false;
}

}  // namespace ingot
