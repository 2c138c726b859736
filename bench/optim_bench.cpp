// The optimizer's passes over a model of GPT-2 124M's shapes in GB/s, beside an update in place
// a ← a + s·b of two arrays, which shows what the memory gives in the same run. Bytes are those the
// algorithm must read and write: AdamW with f32 masters reads master, gradient and two moments and
// writes master, moments and the bf16 weight, 30 bytes a parameter. The CPU column adds up all
// threads: on a busy machine compare bytes per processor second.
#include <benchmark/benchmark.h>

#include "ingot/autograd/record.h"
#include "ingot/kernels/cpu/parallel.h"
#include "ingot/optim/clip.h"
#include "ingot/optim/table.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

TensorDict gpt2_shapes(DType dtype) {
  TensorDict parameters;
  const auto add = [&](const std::string& name, const Shape& shape) {
    Tensor p = full(shape, 0.02, dtype);
    parameters.add(name, require_grad(p));
  };
  add("wte", {50304, 768});
  add("wpe", {1024, 768});
  for (int layer = 0; layer < 12; ++layer) {
    const std::string prefix = concat("layers.", layer, ".");
    add(prefix + "qkv.weight", {2304, 768});
    add(prefix + "qkv.bias", {2304});
    add(prefix + "proj.weight", {768, 768});
    add(prefix + "proj.bias", {768});
    add(prefix + "up.weight", {3072, 768});
    add(prefix + "up.bias", {3072});
    add(prefix + "down.weight", {768, 3072});
    add(prefix + "down.bias", {768});
    add(prefix + "norm", {4, 768});
  }
  return parameters;
}

TensorDict gradients_for(const TensorDict& parameters) {
  return parameters.mapped(
      [](const std::string&, const Tensor& p) { return full(p.shape(), 1e-3, DType::f32); });
}

void give(const TensorDict& parameters, const TensorDict& gradients) {
  for (const auto& [name, p] : parameters) {
    grad(p) = gradients.at(name);
  }
}

void report(benchmark::State& state, int64_t bytes_per_iteration) {
  state.counters["GB/s"] = benchmark::Counter(1e-9 * static_cast<double>(bytes_per_iteration),
                                              benchmark::Counter::kIsIterationInvariantRate);
}

void update_in_place(benchmark::State& state) {
  const int64_t count = 124'000'000;
  Tensor a = full({count}, 1, DType::f32);
  const Tensor b = full({count}, 2, DType::f32);
  float* x = a.mutable_values<float>().data();
  const float* y = b.values<float>().data();
  for (auto _ : state) {
    kernels::parallel_for(count, 16384, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        x[i] += 1e-3F * y[i];
      }
    });
    benchmark::ClobberMemory();
  }
  report(state, count * 12);
}

void adamw_step(benchmark::State& state, DType dtype) {
  const TensorDict parameters = gpt2_shapes(dtype);
  const TensorDict gradients = gradients_for(parameters);
  Optimizer optimizer(parameters, make_rule(AdamWConfig{}));
  for (auto _ : state) {
    give(parameters, gradients);
    optimizer.step(1e-4, 0.5);
  }
  report(state, parameters.elements() * (is_half(dtype) ? 30 : 28));
}

void norm_of_gradients(benchmark::State& state) {
  const TensorDict parameters = gpt2_shapes(DType::bf16);
  const TensorDict gradients = gradients_for(parameters);
  give(parameters, gradients);
  for (auto _ : state) {
    benchmark::DoNotOptimize(gradient_norm(parameters));
  }
  report(state, parameters.elements() * 4);
}

BENCHMARK(update_in_place)->MeasureProcessCPUTime()->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(adamw_step, bf16, DType::bf16)
    ->MeasureProcessCPUTime()
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(adamw_step, f32, DType::f32)
    ->MeasureProcessCPUTime()
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(norm_of_gradients)->MeasureProcessCPUTime()->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ingot

BENCHMARK_MAIN();
