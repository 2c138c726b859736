#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace ingot {

// How fast this machine trains, as `ingot bench step` found it: what `ingot plan` and a run's
// report predict times from.
struct MeasuredSpeed {
  std::string processor;  // what computed: processor_in_use()
  std::string dtype;
  int64_t parameters = 0;
  int64_t step_flops = 0;
  int64_t step_tokens = 0;
  double step_seconds = 0;

  // A step of other arithmetic takes as long in proportion.
  double seconds_of(int64_t flops) const {
    return step_seconds * static_cast<double>(flops) / static_cast<double>(step_flops);
  }
};

// The processor, with the threads and instructions that this process uses of it: "AMD EPYC 9575F
// 64-Core Processor, 2 threads, avx512_bf16".
std::string processor_in_use();

// $INGOT_PROFILE, or speed.json below ingot/ in $XDG_CACHE_HOME or ~/.cache; empty where there is
// no home.
std::filesystem::path speed_profile();

// Adds a measurement; one of the same processor, type and arithmetic takes its place. A file that
// cannot be written is a warning.
void remember_speed(const MeasuredSpeed& speed);

// Of the measurements of processor_in_use() in that type the one whose steps have the nearest
// arithmetic, by ratio. None where nothing was measured, or the file cannot be read.
std::optional<MeasuredSpeed> nearest_speed(const std::string& dtype, int64_t step_flops);

}  // namespace ingot
