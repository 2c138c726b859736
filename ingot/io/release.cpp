#include "ingot/io/release.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace ingot {

void release_pages(std::span<const std::byte> mapped) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto first = (reinterpret_cast<uintptr_t>(mapped.data()) + page - 1) / page * page;
  const auto last = reinterpret_cast<uintptr_t>(mapped.data() + mapped.size()) / page * page;
  if (first < last) {
    ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
  }
}

}  // namespace ingot
