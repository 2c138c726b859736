#pragma once

#include <cstring>

#include "ingot/autograd/record.h"
#include "ingot/tensor/copy.h"
#include "ingot/train/diagnosis.h"
#include "tests/train/tiny.h"

// Faults that are put into a training on purpose.
namespace ingot::testing {

// A tiny model in training, its layers named.
struct Patient {
  std::unique_ptr<Decoder> model;
  Optimizer optimizer;
  Training training;
  TrainState state;

  explicit Patient(int64_t steps = 4, int64_t accumulate = 1, DType dtype = DType::f32)
      : model(tiny_model(0.1, dtype)),
        optimizer(make_optimizer({}, model->parameters())),
        training(tiny_training(*model, optimizer, steps, accumulate)) {
    for (size_t i = 0; i < model->layers.size(); ++i) {
      model->layers[i]->wrap(named_part(concat("layers.", i)));
    }
  }
};

inline void flip_bit(Tensor x, int64_t element, int bit) {
  auto* bytes = static_cast<unsigned char*>(x.mutable_view().data);
  bytes += element * size_of(x.dtype());
  bytes[bit / 8] = static_cast<unsigned char>(bytes[bit / 8] ^ (1u << (bit % 8)));
}

inline void plant(Tensor x, int64_t element, float value) {
  x.mutable_values<float>()[static_cast<size_t>(element)] = value;
}

// y with a value put in the place of one element, and its own gradient.
inline Tensor planted(const Tensor& y, int64_t element, float value) {
  Tensor out = copy_of(y);
  plant(out, element, value);
  return record("planted", out, wrt(y, [](const Tensor& dy) { return dy; }));
}

}  // namespace ingot::testing
