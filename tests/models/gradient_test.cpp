#include <gtest/gtest.h>

#include <cmath>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/grad_mode.h"
#include "ingot/autograd/record.h"
#include "ingot/models/decoder.h"
#include "ingot/nn/initialise.h"
#include "ingot/ops/cross_entropy.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/reduce.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

Tensor loss_of(const Decoder& model) {
  const std::vector<int64_t> text = {1, 5, 2, 8, 8, 0, 3, 1, 9, 4, 4, 7};
  const std::vector<int64_t> next = {5, 2, 8, 8, 0, 3, 1, 9, 4, 4, 7, 6};
  return cross_entropy(model.logits(tensor_of(text, {2, 6})), tensor_of(next, {2, 6}),
                       Reduction::mean);
}

// The loss with every parameter moved by h along its direction.
double moved_loss(const Decoder& model, const TensorDict& directions, double h) {
  const NoGrad quiet;
  TensorDict starts;
  for (const auto& [name, parameter] : model.parameters()) {
    starts.add(name, copy_of(parameter));
    Tensor target = detach(parameter);
    copy_into(target, detach(starts.at(name)) + directions.at(name) * h);
  }
  const double loss = loss_of(model).item();
  for (const auto& [name, parameter] : model.parameters()) {
    Tensor target = detach(parameter);
    copy_into(target, starts.at(name));
  }
  return loss;
}

TEST(ModelGradient, HasTheParametersShapesAndTheLossesSlopeInEveryDirection) {
  for (const char* architecture : {"gpt2", "llama"}) {
    DecoderConfig config;
    config.architecture = architecture;
    config.vocab = 10;
    config.width = 16;
    config.layers = 2;
    config.heads = 2;
    config.context = 8;
    Decoder model(config, DType::f64);
    nn::initialise(model, {"normal", 0.3}, 2);
    model.require_gradients();
    backward(loss_of(model));
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      TensorDict directions;
      double slope = 0;
      for (const auto& [name, parameter] : model.parameters()) {
        ASSERT_EQ(grad(parameter).shape(), parameter.shape()) << name;
        directions.add(name, random_tensor(parameter.shape(),
                                           100 * seed + static_cast<uint64_t>(directions.size())));
        slope += sum(grad(parameter) * directions.at(name)).item();
      }
      const double h = 1e-6;
      const double numeric =
          (moved_loss(model, directions, h) - moved_loss(model, directions, -h)) / (2 * h);
      EXPECT_NEAR(slope, numeric, 1e-6 * std::abs(numeric)) << architecture;
    }
  }
}

}  // namespace
}  // namespace ingot::testing
