// ingot bench gemm: the three matrix products of every linear layer of a recipe.
#include <fmt/format.h>

#include <array>
#include <iostream>
#include <set>

#include "ingot/base/json_library.h"
#include "ingot/cli/bench.h"
#include "ingot/cli/session.h"
#include "ingot/kernels/matmul.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"

namespace ingot {
namespace {

Tensor filled(const Shape& shape, DType dtype, uint64_t seed) {
  return normal(shape, 0, 1, {seed, 0, site_named("bench")}, dtype);
}

// y = a b, measured with the FLOPs and bytes of its definition.
Measured product(const Tensor& a, const Tensor& b, DType out) {
  Tensor y = empty({a.size(0), b.size(1)}, out);
  Measured measured =
      measure(5, [&] { kernels::matmul(Cpu{}, a.view(), b.view(), y.fresh_view()); });
  measured.flops = 2.0 * static_cast<double>(a.size(0) * a.size(1) * b.size(1));
  measured.bytes = static_cast<double>(a.bytes() + b.bytes() + y.bytes());
  return measured;
}

struct Layer {
  int64_t outputs;
  int64_t inputs;
  friend auto operator<=>(const Layer&, const Layer&) = default;
};

// The different weight matrices of the model, without its embedding tables unless they are the
// head.
std::set<Layer> layers_of(Session& session) {
  std::set<Layer> out;
  for (const auto& [name, p] : session.optimizer().parameters()) {
    const bool table =
        name.find("embedding") != std::string::npos || name.find("positions") != std::string::npos;
    if (p.rank() == 2 && !table) {
      out.insert({p.size(0), p.size(1)});
    }
  }
  const Tensor& head = session.model().output_weight();
  out.insert({head.size(0), head.size(1)});
  return out;
}

}  // namespace

void bench_gemm(const GemmBench& arguments) {
  const Recipe recipe = read_recipe(arguments.recipe, arguments.assignments);
  Session session(recipe, meta_device);
  const DType dtype = session.dtype();
  const Limits limits = measured_limits(dtype);
  const int64_t rows = recipe.train.batch / recipe.train.accumulate * recipe.train.sequence;
  nlohmann::ordered_json listed = nlohmann::ordered_json::array();
  if (!arguments.json) {
    fmt::print("{} rows, {}\n", rows, recipe.dtype);
    print_measured_header();
  }
  for (const Layer& layer : layers_of(session)) {
    const Tensor x = filled({rows, layer.inputs}, dtype, 1);
    const Tensor dy = filled({rows, layer.outputs}, dtype, 2);
    const Tensor w = filled({layer.outputs, layer.inputs}, dtype, 3);
    const std::array<std::pair<const char*, Measured>, 3> products{{
        {"forward", product(x, transposed(w, 0, 1), dtype)},
        {"input gradient", product(dy, w, dtype)},
        {"weight gradient", product(transposed(dy, 0, 1), x, DType::f32)},
    }};
    for (const auto& [name, measured] : products) {
      if (arguments.json) {
        nlohmann::ordered_json row = measured_json(measured, limits);
        row["product"] = name;
        row["weight"] = {layer.outputs, layer.inputs};
        row["rows"] = rows;
        listed.push_back(std::move(row));
      } else {
        print_measured(fmt::format("[{}, {}] {}", layer.outputs, layer.inputs, name), measured,
                       limits);
      }
    }
  }
  if (arguments.json) {
    std::cout << nlohmann::ordered_json{{"products", std::move(listed)}}.dump() << '\n';
  }
}

}  // namespace ingot
