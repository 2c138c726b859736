#include "ingot/train/curvature.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/record.h"
#include "ingot/device/allocator.h"
#include "ingot/ops/elementwise.h"
#include "ingot/optim/direction.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"

namespace ingot {
namespace {

// The gradients of the mean loss of a batch by parameter, which are taken away from them; zeros
// where there is none.
TensorDict mean_gradients(const Batch& batch, Training& training, double& count) {
  const Loss loss = training.objective(batch);
  backward(loss.sum);
  const NoGrad quiet;
  count = std::max(1.0, loss.count);
  Optimizer& optimizer = *training.optimizer;
  TensorDict out = optimizer.parameters().mapped([&](const std::string&, const Tensor& p) {
    const Tensor& g = grad(p);
    return g.defined() ? dense(g) * (1 / count)
                       : zeros(p.shape(), accumulator(p.dtype()), p.device());
  });
  optimizer.clear();
  return out;
}

TensorDict from_drawn_labels(const Batch& batch, Training& training) {
  check(training.with_drawn_labels != nullptr, ErrorKind::config,
        "optim: ", training.optimizer->rule(),
        " draws labels from the model, which this objective has not; "
        "choose another rule");
  double count = 0;
  const TensorDict g = mean_gradients(training.with_drawn_labels(batch), training, count);
  const NoGrad quiet;
  return g.mapped([&](const std::string&, const Tensor& mean) { return square(mean) * count; });
}

// Moves the weights along a random direction; at its end they have their bits again.
class Probe {
 public:
  Probe(const TensorDict& parameters, const RandomKey& key) : parameters_(parameters), key_(key) {
    const PurposeScope scope(Purpose::optimizer);
    const NoGrad quiet;
    double squares = 0;
    double count = 0;
    for (const auto& [name, p] : parameters_) {
      check(!is_half(p.dtype()), ErrorKind::config,
            "optim: sophia_h takes differences of gradients, which ", p.dtype(),
            " weights are too coarse for: '", name,
            "'; set dtype = \"f32\", or optim.kind = \"sophia_g\"");
      weights_.add(name, copy_of(p));
      if (p.device().kind != DeviceKind::meta) {
        squares += sum_of_squares(p);
      }
      count += static_cast<double>(p.elements());
    }
    length_ = std::max(1e-4, 0.02 * std::sqrt(squares / std::max(1.0, count)));
  }
  ~Probe() {
    for (const auto& [name, p] : parameters_) {
      Tensor target = p;
      copy_into(target, weights_.at(name));
    }
  }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  double length() const { return length_; }

  Tensor direction(const std::string& name) const {
    const Tensor& w = weights_.at(name);
    RandomKey key = key_;
    key.site ^= site_named(name);
    return normal(w.shape(), 0, 1, key, w.dtype(), w.device());
  }

  // p ← w + times·length·u
  void move(double times) {
    const NoGrad quiet;
    for (const auto& [name, p] : parameters_) {
      Tensor target = p;
      copy_into(target, weights_.at(name) + direction(name) * (times * length_));
    }
  }

 private:
  const TensorDict& parameters_;
  RandomKey key_;
  TensorDict weights_;
  double length_ = 0;
};

TensorDict from_differences(const Batch& batch, Training& training) {
  Probe probe(training.optimizer->parameters(), training.randomness->key(site_named("hutchinson")));
  double count = 0;
  probe.move(1);
  const TensorDict ahead = mean_gradients(batch, training, count);
  probe.move(-1);
  const TensorDict behind = mean_gradients(batch, training, count);
  const NoGrad quiet;
  return ahead.mapped([&](const std::string& name, const Tensor& g) {
    return probe.direction(name) * (g - behind.at(name)) * (0.5 / probe.length());
  });
}

}  // namespace

void observe_curvature(TrainState state, Training& training) {
  const Batch batch = next_batch(state, 0, training);
  const bool moves = training.optimizer->curvature() == Curvature::hutchinson;
  if (moves && training.before_update) {
    training.before_update();  // a checkpoint may still be reading the weights
  }
  const TensorDict estimates =
      moves ? from_differences(batch, training) : from_drawn_labels(batch, training);
  if (!moves && training.before_update) {
    training.before_update();
  }
  const NoGrad quiet;
  training.optimizer->observe_curvature(estimates);
}

}  // namespace ingot
