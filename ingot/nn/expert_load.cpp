#include "ingot/nn/expert_load.h"

#include <algorithm>
#include <numeric>

#include "ingot/autograd/grad_mode.h"
#include "ingot/nn/router_losses.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot::nn {
namespace {

double mean_of(const std::vector<double>& load) {
  return std::accumulate(load.begin(), load.end(), 0.0) / static_cast<double>(load.size());
}

}  // namespace

void ExpertLoads::add(const std::vector<Routed>& layers, const Tensor& counted) {
  const NoGrad quiet;
  if (!layers.empty() && layers[0].chosen.device().kind == DeviceKind::meta) {
    return;
  }
  loads_.resize(std::max(loads_.size(), layers.size()));
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    const Tensor counts = dense(converted(expert_counts(layers[layer], counted), DType::f64));
    const auto values = counts.values<double>();
    loads_[layer].resize(values.size(), 0);
    for (size_t e = 0; e < values.size(); ++e) {
      loads_[layer][e] += values[e];
    }
  }
}

double ExpertLoads::busiest() const {
  double worst = 0;
  for (const std::vector<double>& load : loads_) {
    const double mean = load.empty() ? 0 : mean_of(load);
    worst = mean > 0 ? std::max(worst, *std::ranges::max_element(load) / mean) : worst;
  }
  return worst;
}

double ExpertLoads::idle() const {
  double none = 0;
  double all = 0;
  for (const std::vector<double>& load : loads_) {
    none += static_cast<double>(std::ranges::count(load, 0.0));
    all += static_cast<double>(load.size());
  }
  return all > 0 ? none / all : 0;
}

void steer(Tensor& correction, const std::vector<double>& load, double rate) {
  check(static_cast<int64_t>(load.size()) == correction.elements(), ErrorKind::argument,
        "steer: takes a load for each expert: ", load.size(), " loads, ", correction.elements(),
        " experts");
  const double mean = mean_of(load);
  std::vector<double> step;
  for (const double value : load) {
    step.push_back(value < mean ? rate : value > mean ? -rate : 0);
  }
  add_into(correction, converted(tensor_of(step, correction.shape()), correction.dtype()));
}

}  // namespace ingot::nn
