#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "ingot/base/philox.h"
#include "ingot/models/decoder.h"
#include "ingot/nn/initialise.h"
#include "ingot/ops/cross_entropy.h"
#include "ingot/optim/table.h"
#include "ingot/tensor/factories.h"
#include "ingot/train/train.h"

// Models of a few thousand parameters, and random sequences for them to learn.
namespace ingot::testing {

inline DecoderConfig tiny_config(double dropout = 0) {
  DecoderConfig config;
  config.architecture = "llama";
  config.vocab = 40;
  config.width = 16;
  config.layers = 2;
  config.heads = 2;
  config.hidden = 32;
  config.context = 32;
  config.dropout = dropout;
  return config;
}

inline std::unique_ptr<Decoder> tiny_model(double dropout = 0, DType dtype = DType::f32) {
  auto model = std::make_unique<Decoder>(tiny_config(dropout), dtype);
  nn::initialise(*model, {"normal", 0.2}, 3);
  model->require_gradients();
  model->randomness()->seed = 7;
  return model;
}

// Rows first … first + rows − 1 of a stream of random sequences of T tokens. Row r ignores its
// first 3·(r mod 5) labels, so that equal numbers of rows have unequal numbers of counted labels.
inline Batch tiny_batch(int64_t first, int64_t rows, int64_t T = 16) {
  const Philox random({5, 0, 0});
  std::vector<int64_t> ids;
  std::vector<int64_t> labels;
  for (int64_t row = first; row < first + rows; ++row) {
    const auto token = [&](int64_t t) {
      return static_cast<int64_t>(random.word(static_cast<uint64_t>(row * (T + 1) + t))) % 40;
    };
    for (int64_t t = 0; t < T; ++t) {
      ids.push_back(token(t));
      labels.push_back(t < 3 * (row % 5) ? ignored_label : token(t + 1));
    }
  }
  return {tensor_of(ids, {rows, T}), tensor_of(labels, {rows, T}), {}};
}

// The cross-entropy of every next token, as a sum over the labels that count.
inline Objective tiny_objective(const Decoder& model) {
  return [&model](const Batch& batch) {
    Loss loss;
    loss.sum = linear_cross_entropy(model.hidden(batch.ids), model.output_weight(), batch.labels);
    for (const int64_t label : batch.labels.values<int64_t>()) {
      loss.count += label == ignored_label ? 0 : 1;
    }
    return loss;
  };
}

// A training of eight rows a step in `accumulate` micro-batches, without clipping.
inline Training tiny_training(Decoder& model, Optimizer& optimizer, int64_t steps,
                              int64_t accumulate = 1, double rate = 1e-2) {
  Training out;
  out.steps = steps;
  out.accumulate = accumulate;
  out.batch = [rows = 8 / accumulate](int64_t position) { return tiny_batch(position, rows); };
  out.learning_rate = [rate](int64_t) { return rate; };
  out.objective = tiny_objective(model);
  out.optimizer = &optimizer;
  out.randomness = model.randomness().get();
  return out;
}

// Keeps every report.
struct Reports : Observer {
  void after_step(const TrainState&, const StepReport& report) override { all.push_back(report); }
  std::vector<double> losses() const {
    std::vector<double> out;
    for (const StepReport& report : all) {
      out.push_back(report.loss);
    }
    return out;
  }
  std::vector<StepReport> all;
};

}  // namespace ingot::testing
