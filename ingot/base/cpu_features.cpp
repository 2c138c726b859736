#include "ingot/base/cpu_features.h"

#include <sched.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string_view>

#include "ingot/base/error.h"
#include "ingot/base/files.h"

namespace ingot {
namespace {

#if defined(__x86_64__)
struct Registers {
  uint32_t a = 0, b = 0, c = 0, d = 0;
};

Registers cpuid(uint32_t leaf, uint32_t subleaf = 0) {
  Registers r;
  __get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d);  // leaves zeros for an absent leaf
  return r;
}

bool bit(uint32_t word, int position) { return (word >> position & 1U) != 0; }

// XCR0: the register files that the operating system saves when it switches threads.
uint64_t saved_registers() {
  if (!bit(cpuid(1).c, 27)) {  // OSXSAVE
    return 0;
  }
  uint32_t low = 0;
  uint32_t high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}
#endif

std::string text_or_empty(const std::filesystem::path& path) {
  try {
    return read_file(path);
  } catch (const Error&) {
    return "";
  }
}

std::optional<int64_t> leading_number(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_of("0123456789"), text.size()));
  int64_t value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  return end.ec == std::errc() ? std::optional<int64_t>(value) : std::nullopt;
}

// What follows the first `key` in `text`, to the end of the line.
std::string_view line_after(std::string_view text, std::string_view key) {
  const size_t at = text.find(key);
  if (at == std::string_view::npos) {
    return {};
  }
  text.remove_prefix(at + key.size());
  return text.substr(0, text.find('\n'));
}

std::string processor_model() {
  const std::string about = text_or_empty("/proc/cpuinfo");
  std::string_view model = line_after(about, "model name");
  model.remove_prefix(std::min(model.find_first_not_of("\t :"), model.size()));
  return std::string(model);
}

// Threads' worth of time that a control group grants, rounded up; absent where it sets no limit.
std::optional<int64_t> cgroup_cores() {
  const std::string text =
      text_or_empty("/sys/fs/cgroup/cpu.max");  // "quota period" in μs, or "max …"
  const size_t space = text.find(' ');
  if (text.starts_with("max") || space == std::string::npos) {
    return std::nullopt;
  }
  const std::optional<int64_t> quota = leading_number(text);
  const std::optional<int64_t> period = leading_number(std::string_view(text).substr(space));
  if (!quota || !period || *period == 0) {
    return std::nullopt;
  }
  return std::max<int64_t>(1, (*quota + *period - 1) / *period);
}

int64_t usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int64_t count =
      ::sysconf(_SC_NPROCESSORS_ONLN);  // beyond 1024 threads the set below is too small
  if (::sched_getaffinity(0, sizeof(set), &set) == 0) {
    count = CPU_COUNT(&set);
  }
  return std::min(count, cgroup_cores().value_or(count));
}

int64_t kibibytes(std::string_view meminfo, std::string_view key) {
  return leading_number(line_after(meminfo, key)).value_or(0) * 1024;
}

int64_t known(long value) { return std::max<int64_t>(value, 0); }

}  // namespace

CpuFeatures cpu_features() {
  CpuFeatures f;
#if defined(__x86_64__)
  const Registers base = cpuid(1);
  const Registers more = cpuid(7);
  const Registers extra = cpuid(7, 1);
  const uint64_t saved = saved_registers();
  const bool ymm = (saved & 0x6U) == 0x6U;            // SSE and AVX state
  const bool zmm = ymm && (saved & 0xe0U) == 0xe0U;   // mask and wide state
  const bool tiles = (saved & 0x60000U) == 0x60000U;  // tile configuration and data
  f.avx2 = ymm && bit(more.b, 5);
  f.fma = ymm && bit(base.c, 12);
  f.f16c = ymm && bit(base.c, 29);
  f.avx512f = zmm && bit(more.b, 16);
  f.avx512bw = zmm && bit(more.b, 30);
  f.avx512vl = zmm && bit(more.b, 31);
  f.avx512_vnni = zmm && bit(more.c, 11);
  f.avx512_bf16 = zmm && bit(extra.a, 5);
  f.avx512_fp16 = zmm && bit(more.d, 23);
  f.avx_vnni = ymm && bit(extra.a, 4);
  f.amx_bf16 = tiles && bit(more.d, 22);
  f.amx_tile = tiles && bit(more.d, 24);
  f.amx_int8 = tiles && bit(more.d, 25);
#endif
  return f;
}

Machine machine() {
  Machine m;
  m.model = processor_model();
  m.cores_usable = usable_cores();
  m.cores_total = known(::sysconf(_SC_NPROCESSORS_ONLN));
  m.l1_bytes = known(::sysconf(_SC_LEVEL1_DCACHE_SIZE));
  m.l2_bytes = known(::sysconf(_SC_LEVEL2_CACHE_SIZE));
  m.l3_bytes = known(::sysconf(_SC_LEVEL3_CACHE_SIZE));
  const std::string meminfo = text_or_empty("/proc/meminfo");
  m.memory_bytes = kibibytes(meminfo, "MemTotal:");
  m.memory_available_bytes = kibibytes(meminfo, "MemAvailable:");
  const std::string limit = text_or_empty("/sys/fs/cgroup/memory.max");
  if (const auto most = leading_number(limit); most && *most < m.memory_bytes) {
    const int64_t used = leading_number(text_or_empty("/sys/fs/cgroup/memory.current")).value_or(0);
    m.memory_bytes = *most;
    m.memory_available_bytes =
        std::min(m.memory_available_bytes, std::max<int64_t>(*most - used, 0));
  }
  return m;
}

}  // namespace ingot
