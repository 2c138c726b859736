// linear_cross_entropy at GPT-2's head (N = 1024 rows, D = 768, V = 50304), forward and backward,
// in GFLOP/s of its products (6·N·D·V with gradients, 2·N·D·V without) beside the same matrix
// products alone; and norms of 4096 rows of 768 in GB/s of what they must read and write. On a busy
// machine compare by processor time.
#include <benchmark/benchmark.h>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/record.h"
#include "ingot/kernels/matmul.h"
#include "ingot/ops/cross_entropy.h"
#include "ingot/ops/norm.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"

namespace ingot {
namespace {

constexpr int64_t rows = 1024, features = 768, classes = 50304;
constexpr int64_t product_flops = 2 * rows * features * classes;

DType type_of(const benchmark::State& state) { return static_cast<DType>(state.range(0)); }

Tensor random_of(const Shape& shape, double deviation, DType dtype) {
  return normal(shape, 0, deviation, {1, 0, 0}, dtype);
}

void report(benchmark::State& state, const char* unit, int64_t amount) {
  state.SetLabel(std::string(name(type_of(state))));
  state.counters[unit] = benchmark::Counter(1e-9 * static_cast<double>(amount),
                                            benchmark::Counter::kIsIterationInvariantRate);
}

void linear_cross_entropy_train(benchmark::State& state) {
  Tensor x = random_of({rows, features}, 1, type_of(state));
  Tensor weight = random_of({classes, features}, 0.02, type_of(state));
  const Tensor labels = zeros({rows}, DType::i64);
  require_grad(x);
  require_grad(weight);
  for (auto _ : state) {
    clear_grad(x);
    clear_grad(weight);
    backward(linear_cross_entropy(x, weight, labels));
  }
  report(state, "GFLOP/s", 3 * product_flops);
}

void linear_cross_entropy_score(benchmark::State& state) {
  const Tensor x = random_of({rows, features}, 1, type_of(state));
  const Tensor weight = random_of({classes, features}, 0.02, type_of(state));
  const Tensor labels = zeros({rows}, DType::i64);
  for (auto _ : state) {
    benchmark::DoNotOptimize(linear_cross_entropy(x, weight, labels).item());
  }
  report(state, "GFLOP/s", product_flops);
}

// The three products in one piece: what the fused operation could reach.
void products_alone(benchmark::State& state) {
  const DType type = type_of(state);
  const Tensor x = random_of({rows, features}, 1, type);
  const Tensor weight = random_of({classes, features}, 0.02, type);
  Tensor logits = empty({rows, classes}, type);
  Tensor dx = empty({rows, features}, type);
  Tensor dweight = empty({classes, features}, accumulator(type));
  for (auto _ : state) {
    kernels::matmul(Cpu{}, x.view(), transposed(weight, 0, 1).view(), logits.fresh_view());
    kernels::matmul(Cpu{}, logits.view(), weight.view(), dx.fresh_view());
    kernels::matmul(Cpu{}, transposed(logits, 0, 1).view(), x.view(), dweight.fresh_view());
  }
  report(state, "GFLOP/s", 3 * product_flops);
}

constexpr int64_t norm_rows = 4096;

void rms_norm_forward(benchmark::State& state) {
  const Tensor x = random_of({norm_rows, features}, 1, type_of(state));
  const Tensor weight = full({features}, 1, type_of(state));
  for (auto _ : state) {
    benchmark::DoNotOptimize(rms_norm(x, weight, 1e-5));
  }
  report(state, "GB/s", 2 * x.bytes());
}

void layer_norm_backward(benchmark::State& state) {
  Tensor x = random_of({norm_rows, features}, 1, type_of(state));
  Tensor weight = full({features}, 1, type_of(state));
  Tensor bias = full({features}, 0, type_of(state));
  require_grad(x);
  require_grad(weight);
  require_grad(bias);
  const Tensor dy = random_of(x.shape(), 1, type_of(state));
  for (auto _ : state) {
    state.PauseTiming();
    const Tensor y = layer_norm(x, weight, bias, 1e-5);
    state.ResumeTiming();
    benchmark::DoNotOptimize(gradients({y}, {x, weight, bias}, {dy}));
  }
  report(state, "GB/s", 3 * x.bytes());
}

// A plain copy of the same size: what the memory gives.
void copy(benchmark::State& state) {
  const Tensor x = random_of({norm_rows, features}, 1, type_of(state));
  for (auto _ : state) {
    benchmark::DoNotOptimize(copy_of(x));
  }
  report(state, "GB/s", 2 * x.bytes());
}

void types(benchmark::internal::Benchmark* bench) {
  bench->Arg(static_cast<int64_t>(DType::bf16))
      ->Arg(static_cast<int64_t>(DType::f32))
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime()
      ->MeasureProcessCPUTime();
}
BENCHMARK(linear_cross_entropy_train)->Apply(types);
BENCHMARK(linear_cross_entropy_score)->Apply(types);
BENCHMARK(products_alone)->Apply(types);
BENCHMARK(rms_norm_forward)->Apply(types);
BENCHMARK(layer_norm_backward)->Apply(types);
BENCHMARK(copy)->Apply(types);

}  // namespace
}  // namespace ingot

BENCHMARK_MAIN();
