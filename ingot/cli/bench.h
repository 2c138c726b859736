#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "ingot/base/dtype.h"
#include "ingot/device/profile.h"
#include "ingot/train/train.h"

namespace ingot {

// The parts of `ingot bench`, a file each; bench.cpp gives them their options.
struct GemmBench {
  std::string recipe;
  std::vector<std::string> assignments;
  bool json = false;
};
void bench_gemm(const GemmBench& arguments);

struct OpsBench {
  std::vector<std::string> only;
  std::string dtype = "bf16";
  bool json = false;
};
void bench_ops(const OpsBench& arguments);

struct StepBench {
  std::string recipe;
  std::vector<std::string> assignments;
  std::string trace;
  int64_t steps = 5;
  bool json = false;
};
void bench_step(const StepBench& arguments);

struct OptimBench {
  std::vector<std::string> only;  // kinds; empty: all
  std::string dtype = "bf16";
  bool json = false;
  bool targets = false;  // bench_targets instead
  int64_t seeds = 3;
};
void bench_optim(const OptimBench& arguments);
void bench_targets(const OptimBench& arguments);

struct ObserverBench {
  std::string recipe;
  std::vector<std::string> assignments;
  int64_t steps = 20;
  bool json = false;
};
void bench_observers(const ObserverBench& arguments);

// A training on random tokens: a step's cost does not depend on what they say.
class Session;
Training random_training(Session& session);

struct GenerateBench {
  std::string model;  // a recipe, whose weights are random; or a folder or GGUF file
  std::vector<std::string> assignments;
  int64_t batch = 1;
  int64_t prompt = 128;
  int64_t tokens = 64;
  bool int8 = false;
  std::string kv = "model";  // what keys and values are kept in
  bool json = false;
};
void bench_generate(const GenerateBench& arguments);

struct TokenizerBench {
  std::string tokenizer;
  std::vector<std::string> files;
  int64_t vocabulary = 30000;
  bool whole = false;
  bool json = false;
};
void bench_tokenizer_encode(const TokenizerBench& arguments);
void bench_tokenizer_train(const TokenizerBench& arguments);

// What the machine can do at most, measured: every figure is printed beside its share of these.
struct Limits {
  double flops;             // per second, in the dtype measured
  double bytes_per_second;  // of memory, updated in place

  // The least time that work takes: of arithmetic or of memory traffic, whichever is longer.
  double seconds(double flop_count, double byte_count) const;
};
Limits measured_limits(DType dtype);

// One timed piece of work.
struct Measured {
  double seconds = 0;  // median of the runs
  double flops = 0;    // of one run
  double bytes = 0;
};
// Runs `work` once to warm up, once recorded, then at least `runs` times and for half a second.
Measured measure(int64_t runs, const std::function<void()>& work);

double seconds_of(const std::function<void()>& work);  // of one run
double median(std::vector<double> values);

// A line of a table: name, time, GFLOP/s or GB/s, share of the limit.
void print_measured_header();
void print_measured(const std::string& name, const Measured& measured, const Limits& limits);
nlohmann::ordered_json measured_json(const Measured& measured, const Limits& limits);

// All calls of one kernel in a recording.
struct KernelTotal {
  std::string name;
  int64_t calls = 0;
  double seconds = 0;
  double limit_seconds = 0;  // the least that these calls could take
  double flops = 0;
  double bytes = 0;
};
// Longest first.
std::vector<KernelTotal> totals(const std::vector<KernelCall>& calls, const Limits& limits);
// Their table, with what is left of `seconds`: the time of everything that was recorded.
void print_kernels(const std::vector<KernelTotal>& kernels, double seconds);
nlohmann::ordered_json kernels_json(const std::vector<KernelTotal>& kernels);

// The calls as a trace that chrome://tracing and ui.perfetto.dev open.
nlohmann::ordered_json trace_json(const std::vector<KernelCall>& calls);

}  // namespace ingot
