// The matrix products of a GPT-2 124M training step on 1024 tokens, in GFLOP/s: y = x Wᵀ forward,
// dx = dy W and dW = dyᵀ x (f32) backward, as ops/linear asks for them; and one decoded token
// against the same weights in GB/s of weights. Rates are per second of processor time, summed over
// the threads: on a busy machine that is what can be compared. Run with OMP_WAIT_POLICY=passive.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <vector>

#include "ingot/base/philox.h"
#include "ingot/kernels/copy.h"
#include "ingot/kernels/cpu/dispatch.h"
#include "ingot/kernels/matmul.h"

namespace ingot {
namespace {

constexpr int64_t tokens = 1024;

struct Matrix {
  Matrix(int64_t rows, int64_t columns, DType dtype)
      : bytes(static_cast<size_t>(rows * columns * size_of(dtype))),
        view{{bytes.data(), {rows, columns}, {columns, 1}, dtype}} {
    kernels::fill_normal(Cpu{}, 0, 0.02, {1, 0, 0}, view);
  }
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;

  ConstView transposed() const {
    return {view.data, {view.shape[1], view.shape[0]}, {1, view.shape[1]}, view.dtype};
  }

  std::vector<std::byte> bytes;
  View view;
};

void report(benchmark::State& state, const char* unit, double per_iteration) {
  state.counters[unit] =
      benchmark::Counter(1e-9 * per_iteration, benchmark::Counter::kIsIterationInvariantRate);
}

enum class Which { forward, input_gradient, weight_gradient };

void product(benchmark::State& state, Which which, DType dtype) {
  const int64_t in = state.range(0);
  const int64_t out = state.range(1);
  const Matrix x(tokens, in, dtype);
  const Matrix w(out, in, dtype);
  const Matrix y(tokens, out, dtype);
  const Matrix dw(out, in, DType::f32);
  for (auto _ : state) {
    switch (which) {
      case Which::forward: kernels::matmul(Cpu{}, x.view, w.transposed(), y.view); break;
      case Which::input_gradient: kernels::matmul(Cpu{}, y.view, w.view, x.view); break;
      case Which::weight_gradient: kernels::matmul(Cpu{}, y.transposed(), x.view, dw.view); break;
    }
  }
  report(state, "GFLOP/s", 2.0 * static_cast<double>(tokens * in * out));
}

void decode(benchmark::State& state, DType dtype) {
  const int64_t in = state.range(0);
  const int64_t out = state.range(1);
  const Matrix x(1, in, dtype);
  const Matrix w(out, in, dtype);
  const Matrix y(1, out, dtype);
  for (auto _ : state) {
    kernels::matmul(Cpu{}, x.view, w.transposed(), y.view);
  }
  report(state, "GB/s", static_cast<double>(w.bytes.size()));
}

void shapes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"in", "out"})
      ->Args({768, 768})
      ->Args({768, 2304})
      ->Args({768, 3072})
      ->Args({3072, 768})
      ->Args({768, 50304})
      ->MeasureProcessCPUTime()
      ->Unit(benchmark::kMillisecond);
}

BENCHMARK_CAPTURE(product, forward_bf16, Which::forward, DType::bf16)->Apply(shapes);
BENCHMARK_CAPTURE(product, dx_bf16, Which::input_gradient, DType::bf16)->Apply(shapes);
BENCHMARK_CAPTURE(product, dw_bf16, Which::weight_gradient, DType::bf16)->Apply(shapes);
BENCHMARK_CAPTURE(product, forward_f32, Which::forward, DType::f32)->Apply(shapes);
BENCHMARK_CAPTURE(product, dx_f32, Which::input_gradient, DType::f32)->Apply(shapes);
BENCHMARK_CAPTURE(product, dw_f32, Which::weight_gradient, DType::f32)->Apply(shapes);
BENCHMARK_CAPTURE(decode, bf16, DType::bf16)->Apply(shapes);
BENCHMARK_CAPTURE(decode, f32, DType::f32)->Apply(shapes);

}  // namespace
}  // namespace ingot

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  benchmark::AddCustomContext("simd",
                              std::string(ingot::kernels::name(ingot::kernels::simd_level())));
  benchmark::RunSpecifiedBenchmarks();
}
