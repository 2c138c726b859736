#pragma once

#include <cstdint>
#include <string>

namespace ingot {

// Instruction sets that speed training up, each true only where the processor has it and the
// operating system saves its registers. All false on processors other than x86-64.
struct CpuFeatures {
  bool avx2 = false;
  bool fma = false;
  bool f16c = false;
  bool avx512f = false;
  bool avx512bw = false;
  bool avx512vl = false;
  bool avx512_vnni = false;
  bool avx512_bf16 = false;
  bool avx512_fp16 = false;
  bool avx_vnni = false;
  bool amx_tile = false;
  bool amx_bf16 = false;
  bool amx_int8 = false;

  friend bool operator==(const CpuFeatures&, const CpuFeatures&) = default;
};

CpuFeatures cpu_features();

// The machine as far as this process may use it; 0 or "" for what the system does not tell.
struct Machine {
  std::string model;         // "AMD EPYC 9575F 64-Core Processor"
  int64_t cores_usable = 0;  // hardware threads this process may run on (affinity, cgroup quota)
  int64_t cores_total = 0;   // hardware threads of the machine
  int64_t l1_bytes = 0;      // data cache of one core
  int64_t l2_bytes = 0;      // of one core
  int64_t l3_bytes = 0;      // of one group of cores
  int64_t memory_bytes = 0;  // of the machine, or of this process' cgroup where that is less
  int64_t memory_available_bytes = 0;  // before the system has to swap, within the cgroup
};

Machine machine();

}  // namespace ingot
