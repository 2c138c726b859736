#include "ingot/cli/selftest_mup.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "ingot/autograd/grad_mode.h"
#include "ingot/autograd/record.h"
#include "ingot/cli/session.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/linear.h"
#include "ingot/ops/reduce.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

constexpr int64_t base_width = 32;
constexpr int64_t head_dim = 16;
constexpr int64_t vocab = 64;
constexpr int64_t length = 32;

Recipe recipe_of(int64_t width, bool mup, double rate, int64_t steps) {
  Recipe recipe;
  recipe.dtype = "f32";
  recipe.model.vocab = vocab;
  recipe.model.width = width;
  recipe.model.layers = 2;
  recipe.model.head_dim = head_dim;
  recipe.model.heads = width / head_dim;
  recipe.model.hidden = 2 * width;
  recipe.model.context = length;
  recipe.model.tied = false;
  recipe.init.deviation = 0.1;
  recipe.train.steps = steps;
  recipe.train.batch = 8;
  recipe.train.sequence = length;
  recipe.optim.learning_rate = rate;
  recipe.schedule.schedule = ConstantSchedule();
  recipe.schedule.kind = ConstantSchedule::name;
  recipe.mup.base_width = mup ? base_width : 0;
  recipe.numbers.spike = 0;
  return recipe;
}

// Rows that count in steps of 1 to 7, modulo the vocabulary.
Batch counting(int64_t position) {
  std::vector<int64_t> ids, labels;
  for (int64_t row = 0; row < 8; ++row) {
    const int64_t stride = 1 + (position + row) % 7;
    const int64_t first = position * 5 + row * 11;
    for (int64_t t = 0; t < length; ++t) {
      ids.push_back((first + t * stride) % vocab);
      labels.push_back((first + (t + 1) * stride) % vocab);
    }
  }
  return {tensor_of(ids, {8, length}), tensor_of(labels, {8, length}), {}, {}};
}

// What the layers give and the logits, by part.
class Shown {
 public:
  explicit Shown(Session& session) : session_(session) {
    for (size_t i = 0; i < session.model().layers.size(); ++i) {
      session.model().layers[i]->wrap(
          [this, name = concat("layers.", i)](const nn::Block::Run& run, const Tensor& x) {
            TensorList ys = run(x);
            seen_[name] = detach(ys.front());
            return ys;
          });
    }
  }
  std::map<std::string, Tensor> operator()(const Batch& batch) {
    const NoGrad quiet;
    session_.model().randomness()->training = false;
    const Tensor hidden = session_.model().hidden(batch.ids);
    seen_["logits"] = linear(hidden, session_.model().output_weight());
    return seen_;
  }

 private:
  Session& session_;
  std::map<std::string, Tensor> seen_;
};

void steps_of(Session& session, int64_t steps, double& loss) {
  Training training = session.training(counting);
  for (int64_t step = 0; step < steps; ++step) {
    loss = train_step(session.state, training).loss;
  }
}

}  // namespace

std::vector<Coordinates> coordinate_check(const std::vector<int64_t>& widths) {
  std::vector<Coordinates> out;
  for (const bool mup : {false, true}) {
    for (const int64_t width : widths) {
      Session session(recipe_of(width, mup, 0.01, 5), cpu_device);
      Shown shown(session);
      const Batch batch = counting(1000);
      const std::map<std::string, Tensor> before = shown(batch);
      double loss = 0;
      steps_of(session, 5, loss);
      for (const auto& [part, after] : shown(batch)) {
        const NoGrad quiet;
        const Tensor squares = mean(square(after - before.at(part)));
        out.push_back({mup, width, part, std::sqrt(squares.item())});
      }
    }
  }
  return out;
}

std::vector<Growth> growth_of(const std::vector<Coordinates>& all) {
  std::map<std::string, std::map<bool, std::pair<double, double>>> ranges;
  for (const Coordinates& one : all) {
    auto& [least, most] =
        ranges[one.part].try_emplace(one.mup, one.change, one.change).first->second;
    least = std::min(least, one.change);
    most = std::max(most, one.change);
  }
  std::vector<Growth> out;
  for (auto& [part, both] : ranges) {
    out.push_back(
        {part, both[false].second / both[false].first, both[true].second / both[true].first});
  }
  return out;
}

std::vector<double> losses_by_rate(int64_t width, bool mup, const std::vector<double>& rates,
                                   int64_t steps) {
  std::vector<double> out;
  for (const double rate : rates) {
    Session session(recipe_of(width, mup, rate, steps), cpu_device);
    double loss = HUGE_VAL;
    try {
      steps_of(session, steps, loss);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::numeric) {
        throw;
      }
      loss = HUGE_VAL;  // diverged
    }
    out.push_back(loss);
  }
  return out;
}

}  // namespace ingot
