// ingot bench step: a recipe's training step on random tokens, and where its time goes.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <iostream>

#include "ingot/base/files.h"
#include "ingot/base/json_library.h"
#include "ingot/base/text_size.h"
#include "ingot/cli/bench.h"
#include "ingot/cli/session.h"
#include "ingot/cli/speed_profile.h"
#include "ingot/device/allocator.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

using Json = nlohmann::ordered_json;

// Tokens drawn uniformly: a step's cost does not depend on what they say.
Batch random_batch(int64_t batch, int64_t sequence, int64_t vocab, int64_t position) {
  const Philox random({7, static_cast<uint64_t>(position), site_named("bench")});
  Batch out;
  out.ids = empty({batch, sequence}, DType::i64);
  out.labels = empty({batch, sequence}, DType::i64);
  auto ids = out.ids.mutable_values<int64_t>();
  auto labels = out.labels.mutable_values<int64_t>();
  const auto token = [&](int64_t i) {
    return static_cast<int64_t>(random.word(static_cast<uint64_t>(i)) %
                                static_cast<uint64_t>(vocab));
  };
  for (int64_t row = 0; row < batch; ++row) {
    for (int64_t t = 0; t < sequence; ++t) {
      ids[row * sequence + t] = token(row * (sequence + 1) + t);
      labels[row * sequence + t] = token(row * (sequence + 1) + t + 1);
    }
  }
  return out;
}

int64_t page_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

int64_t peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

// What was measured.
struct StepResult {
  StepReport report;  // of the last step
  std::vector<double> losses;
  double seconds = 0;  // median of a step
  std::vector<KernelCall> calls;
  double recorded_seconds = 0;  // of the step that the calls are of
  int64_t allocations = 0;      // in that step
  int64_t system_calls = 0;     // of the allocator, in that step
  int64_t page_faults = 0;      // in that step
  int64_t peak_allocated = 0;   // bytes
  int64_t peak_resident = 0;    // bytes, of the whole process
};

StepResult run_steps(Session& session, int64_t steps) {
  Training training = random_training(session);
  StepResult out;
  std::vector<double> seconds;
  for (int64_t step = 0; step <= steps; ++step) {
    out.report = train_step(session.state, training);
    out.losses.push_back(out.report.loss);
    if (step > 0) {  // the first fills caches: allocator, primitives, page tables
      seconds.push_back(out.report.seconds);
    }
  }
  out.seconds = median(std::move(seconds));
  const MemoryStats before = allocator(cpu_device).stats();
  const int64_t faults = page_faults();
  const Recording recording;
  out.recorded_seconds = train_step(session.state, training).seconds;
  out.calls = recording.calls();
  const MemoryStats after = allocator(cpu_device).stats();
  out.allocations = after.allocations - before.allocations;
  out.system_calls = after.system_calls - before.system_calls;
  out.page_faults = page_faults() - faults;
  out.peak_allocated = after.peak_total;
  out.peak_resident =
      peak_resident_bytes();  // now: measuring the machine's limits takes memory too
  return out;
}

void print_json(Session& session, const StepResult& bench, const Limits& limits) {
  const double rate = static_cast<double>(bench.report.flops) / bench.seconds;
  Json out;
  out["parameters"] = session.model().count();
  out["dtype"] = session.recipe().dtype;
  out["losses"] = bench.losses;
  out["seconds_per_step"] = bench.seconds;
  out["tokens_per_second"] = static_cast<double>(bench.report.tokens) / bench.seconds;
  out["flops_per_second"] = rate;
  out["peak_flops"] = limits.flops;
  out["memory_bytes_per_second"] = limits.bytes_per_second;
  out["mfu"] = rate / limits.flops;
  out["peak_mb"] = bench.peak_resident >> 20;
  out["allocated_peak_mb"] = bench.peak_allocated >> 20;
  out["allocations"] = bench.allocations;
  out["system_calls"] = bench.system_calls;
  out["page_faults"] = bench.page_faults;
  out["recorded_seconds"] = bench.recorded_seconds;
  out["kernels"] = kernels_json(totals(bench.calls, limits));
  std::cout << out.dump() << '\n';
}

void print_text(Session& session, const StepResult& bench, const Limits& limits) {
  const Recipe& recipe = session.recipe();
  const auto tokens = static_cast<double>(bench.report.tokens);
  const double rate = static_cast<double>(bench.report.flops) / bench.seconds;
  fmt::print("{} parameters, {} x {} tokens a step, {}\n",
             text_count(static_cast<double>(session.model().count())), recipe.train.batch,
             recipe.train.sequence, recipe.dtype);
  fmt::print("{:.1f} tokens/s ({:.3f} s a step, median)\n", tokens / bench.seconds, bench.seconds);
  fmt::print("{}/s, {:.1f}% of the {}/s of this machine's fastest matrix product\n",
             text_flops(rate), 100 * rate / limits.flops, text_flops(limits.flops));
  fmt::print("peak memory: {} allocated, {} resident\n", text_bytes(bench.peak_allocated),
             text_bytes(bench.peak_resident));
  print_kernels(totals(bench.calls, limits), bench.recorded_seconds);
  fmt::print("\n{} allocations ({} from the system), {} page faults in this step\n",
             bench.allocations, bench.system_calls, bench.page_faults);
}

}  // namespace

Training random_training(Session& session) {
  const Recipe& recipe = session.recipe();
  const int64_t micro = recipe.train.batch / recipe.train.accumulate;
  return session.training([&recipe, micro](int64_t position) {
    return random_batch(micro, recipe.train.sequence, recipe.model.vocab, position);
  });
}

void bench_step(const StepBench& arguments) {
  const Recipe recipe = read_recipe(arguments.recipe, arguments.assignments);
  if (!arguments.trace.empty()) {
    write_file(arguments.trace, "");  // a wrong path shows now, not when the steps are done
  }
  Session session(recipe, cpu_device);
  const StepResult bench = run_steps(session, arguments.steps);
  remember_speed({processor_in_use(), recipe.dtype, session.model().count(), bench.report.flops,
                  bench.report.tokens, bench.seconds});
  const Limits limits = measured_limits(session.dtype());
  if (!arguments.trace.empty()) {
    write_file(arguments.trace, trace_json(bench.calls).dump());
  }
  if (arguments.json) {
    print_json(session, bench, limits);
  } else {
    print_text(session, bench, limits);
  }
}

}  // namespace ingot
