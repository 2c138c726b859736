// ingot bench optim: one update of 124 million parameters per rule, beside the memory's bandwidth.
#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "ingot/autograd/record.h"
#include "ingot/base/json_library.h"
#include "ingot/cli/bench.h"
#include "ingot/optim/clip.h"
#include "ingot/optim/table.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

// The parameters of GPT-2 124M by size, which is what an update's time depends on.
TensorDict gpt2_shapes(DType dtype) {
  TensorDict parameters;
  const auto add = [&](const std::string& name, const Shape& shape) {
    Tensor p = full(shape, 0.02, dtype);
    parameters.add(name, require_grad(p));
  };
  add("embedding", {50304, 768});
  add("positions", {1024, 768});
  for (int64_t layer = 0; layer < 12; ++layer) {
    const std::string prefix = concat("layers.", layer, ".");
    add(prefix + "attention", {4 * 768, 768});
    add(prefix + "up", {3072, 768});
    add(prefix + "down", {768, 3072});
    add(prefix + "vectors", {13, 768});
  }
  return parameters;
}

// What one update must read and write: the weight (f32 or its master), gradient and state, and the
// rounded copy.
double bytes_of_update(const Optimizer& optimizer, DType dtype) {
  const auto count = static_cast<double>(optimizer.parameters().elements());
  const double state = static_cast<double>(optimizer.state_bytes());  // slots, masters
  const double weights = is_half(dtype) ? 2 * count : 2 * 4 * count;
  return 2 * state + weights + 4 * count;
}

Measured measure_rule(const std::string& name, DType dtype) {
  const TensorDict parameters = gpt2_shapes(dtype);
  const TensorDict gradients = parameters.mapped(
      [](const std::string&, const Tensor& p) { return full(p.shape(), 1e-3, DType::f32); });
  Optimizer optimizer(parameters, std::visit([](const auto& config) { return make_rule(config); },
                                             *rule_config(name)));
  Measured measured = measure(5, [&] {
    for (const auto& [path, p] : parameters) {
      grad(p) = gradients.at(path);
    }
    optimizer.step(1e-4, 0.5);
  });
  measured.flops = 0;
  measured.bytes = bytes_of_update(optimizer, dtype);
  return measured;
}

}  // namespace

void bench_optim(const OptimBench& arguments) {
  const DType dtype = *dtype_named(arguments.dtype);
  const Limits limits = measured_limits(dtype);
  const int64_t parameters = gpt2_shapes(DType::bf16).elements();
  nlohmann::ordered_json listed = nlohmann::ordered_json::array();
  if (!arguments.json) {
    fmt::print("{} parameters, {}; memory {:.1f} GB/s\n", parameters, arguments.dtype,
               1e-9 * limits.bytes_per_second);
    print_measured_header();
  }
  for (const std::string& name : arguments.only.empty() ? rule_names() : arguments.only) {
    const Measured measured = measure_rule(name, dtype);
    if (arguments.json) {
      nlohmann::ordered_json row = {{"name", name}, {"parameters", parameters}};
      row.update(measured_json(measured, limits));
      row["bytes_per_second"] = measured.bytes / measured.seconds;
      listed.push_back(std::move(row));
    } else {
      print_measured(name, measured, limits);
    }
  }
  if (arguments.json) {
    std::cout << nlohmann::ordered_json{{"rules", std::move(listed)}}.dump() << '\n';
  }
}

}  // namespace ingot
