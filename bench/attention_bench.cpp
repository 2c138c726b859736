// Attention in GFLOP/s of one processor second (so that other work on the machine disturbs little):
// forward, and forward with backward. The FLOPs are those that attention counts.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/record.h"
#include "ingot/device/flops.h"
#include "ingot/ops/attention.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

struct Sizes {
  int64_t B, T, H, C;
};
constexpr Sizes sizes[] = {{4, 256, 12, 64}, {8, 1024, 12, 64}, {12, 256, 6, 64}, {12, 64, 4, 32}};

Tensor random(const Shape& shape, uint64_t seed, DType dtype) {
  return normal(shape, 0, 1, {seed, 0, 0}, dtype);
}

// Of all threads of this process.
double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec);
}

// Runs `step` until the benchmark is over, and reports the FLOPs it counts.
template <class F>
void measure(benchmark::State& state, F&& step) {
  step();
  reset_flops();
  const double start = processor_seconds();
  for (auto _ : state) {
    step();
  }
  const auto flops = static_cast<double>(counted_flops());
  state.counters["GFLOP/s/core"] = 1e-9 * flops / (processor_seconds() - start);
  state.counters["GFLOP/s"] = benchmark::Counter(1e-9 * flops, benchmark::Counter::kIsRate);
}

void forward(benchmark::State& state, const Sizes& s, DType dtype) {
  const Tensor q = random({s.B, s.T, s.H, s.C}, 1, dtype);
  const Tensor k = random({s.B, s.T, s.H, s.C}, 2, dtype);
  const Tensor v = random({s.B, s.T, s.H, s.C}, 3, dtype);
  measure(state, [&] { benchmark::DoNotOptimize(attention(q, k, v)); });
}

// The backward alone cannot be repeated on one history: the forward's part is subtracted by the
// reader, or read off the first benchmark.
void forward_and_backward(benchmark::State& state, const Sizes& s, DType dtype) {
  TensorList x;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    x.push_back(random({s.B, s.T, s.H, s.C}, seed, dtype));
    require_grad(x.back());
  }
  const Tensor dy = random({s.B, s.T, s.H, s.C}, 4, dtype);
  measure(state,
          [&] { benchmark::DoNotOptimize(gradients({attention(x[0], x[1], x[2])}, x, {dy})); });
}

// One new token against a cache of S keys: bytes of K and V read.
void decode(benchmark::State& state, int64_t S, int64_t H, int64_t K, DType dtype) {
  const Tensor q = random({1, 1, H, 64}, 1, dtype);
  const Tensor k = random({1, S, K, 64}, 2, dtype);
  const Tensor v = random({1, S, K, 64}, 3, dtype);
  AttentionOptions options;
  options.query_offset = S - 1;
  for (auto _ : state) {
    benchmark::DoNotOptimize(attention(q, k, v, options));
  }
  state.SetBytesProcessed(state.iterations() * (k.bytes() + v.bytes()));
}

void add_benchmarks() {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const Sizes& s : sizes) {
      const std::string about =
          concat("/", name(dtype), "/B", s.B, "_T", s.T, "_H", s.H, "_C", s.C);
      benchmark::RegisterBenchmark(("forward" + about).c_str(),
                                   [=](benchmark::State& state) { forward(state, s, dtype); });
      benchmark::RegisterBenchmark(
          ("forward_and_backward" + about).c_str(),
          [=](benchmark::State& state) { forward_and_backward(state, s, dtype); });
    }
    for (const int64_t K : {12, 3}) {
      benchmark::RegisterBenchmark(
          concat("decode/", name(dtype), "/S8192_H12_K", K, "_C64").c_str(),
          [=](benchmark::State& state) { decode(state, 8192, 12, K, dtype); });
    }
  }
}

}  // namespace
}  // namespace ingot

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  ingot::add_benchmarks();
  benchmark::RunSpecifiedBenchmarks();
}
