#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "ingot/base/json_library.h"
#include "ingot/cli/bench.h"
#include "ingot/train/machine_peak.h"

namespace ingot {

using Json = nlohmann::ordered_json;

double Limits::seconds(double flop_count, double byte_count) const {
  return std::max(flop_count / flops, byte_count / bytes_per_second);
}

Limits measured_limits(DType dtype) {
  return {measured_peak_flops(dtype), measured_bandwidth().update};
}

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Measured measure(int64_t runs, const std::function<void()>& work) {
  work();
  Measured out;
  {
    const Recording recording;
    work();
    for (const KernelCall& call : recording.calls()) {
      out.flops += static_cast<double>(call.flops);
      out.bytes += static_cast<double>(call.bytes);
    }
  }
  std::vector<double> seconds;
  double total = 0;
  while (static_cast<int64_t>(seconds.size()) < runs || total < 0.5) {
    seconds.push_back(seconds_of(work));
    total += seconds.back();
  }
  out.seconds = median(std::move(seconds));
  return out;
}

void print_measured_header() {
  fmt::print("{:<34} {:>10} {:>9} {:>9} {:>6}\n", "", "time", "GFLOP/s", "GB/s", "limit");
}

void print_measured(const std::string& name, const Measured& measured, const Limits& limits) {
  const double share = limits.seconds(measured.flops, measured.bytes) / measured.seconds;
  fmt::print("{:<34} {:>7.3f} ms {:>9.1f} {:>9.1f} {:>5.0f}%\n", name, 1e3 * measured.seconds,
             1e-9 * measured.flops / measured.seconds, 1e-9 * measured.bytes / measured.seconds,
             100 * share);
}

Json measured_json(const Measured& measured, const Limits& limits) {
  Json out;
  out["seconds"] = measured.seconds;
  out["flops"] = measured.flops;
  out["bytes"] = measured.bytes;
  out["limit_seconds"] = limits.seconds(measured.flops, measured.bytes);
  out["share"] = limits.seconds(measured.flops, measured.bytes) / measured.seconds;
  return out;
}

std::vector<KernelTotal> totals(const std::vector<KernelCall>& calls, const Limits& limits) {
  std::map<std::string, KernelTotal> by_name;
  for (const KernelCall& call : calls) {
    KernelTotal& total = by_name[call.name];
    total.name = call.name;
    ++total.calls;
    total.seconds += call.seconds;
    total.flops += static_cast<double>(call.flops);
    total.bytes += static_cast<double>(call.bytes);
    total.limit_seconds +=
        limits.seconds(static_cast<double>(call.flops), static_cast<double>(call.bytes));
  }
  std::vector<KernelTotal> out;
  for (auto& [name, total] : by_name) {
    out.push_back(std::move(total));
  }
  std::sort(out.begin(), out.end(),
            [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  return out;
}

void print_kernels(const std::vector<KernelTotal>& kernels, double seconds) {
  fmt::print("\n{:<38} {:>6} {:>10} {:>6} {:>9} {:>8} {:>6}\n", "kernel", "calls", "time", "share",
             "GFLOP/s", "GB/s", "limit");
  double rest = seconds;
  const auto row = [&](const std::string& name, int64_t calls, double of_row) {
    fmt::print("{:<38} {:>6} {:>7.2f} ms {:>5.1f}%", name, calls, 1e3 * of_row,
               100 * of_row / seconds);
  };
  for (const KernelTotal& total : kernels) {
    rest -= total.seconds;
    row(total.name, total.calls, total.seconds);
    fmt::print(" {:>9.1f} {:>8.1f} {:>5.0f}%\n", 1e-9 * total.flops / total.seconds,
               1e-9 * total.bytes / total.seconds, 100 * total.limit_seconds / total.seconds);
  }
  row("outside kernels", 0, rest);
  fmt::print("\n");
}

Json kernels_json(const std::vector<KernelTotal>& kernels) {
  Json out = Json::array();
  for (const KernelTotal& total : kernels) {
    out.push_back({{"name", total.name},
                   {"calls", total.calls},
                   {"seconds", total.seconds},
                   {"flops", total.flops},
                   {"bytes", total.bytes},
                   {"limit_seconds", total.limit_seconds}});
  }
  return out;
}

Json trace_json(const std::vector<KernelCall>& calls) {
  Json events = Json::array();
  for (const KernelCall& call : calls) {
    events.push_back({{"name", call.name},
                      {"ph", "X"},
                      {"ts", 1e6 * call.begin},
                      {"dur", 1e6 * call.seconds},
                      {"pid", 1},
                      {"tid", 1},
                      {"args", {{"flops", call.flops}, {"bytes", call.bytes}}}});
  }
  return {{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}};
}

}  // namespace ingot
