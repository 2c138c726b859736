#include "ingot/device/allocator.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "ingot/base/error.h"

namespace ingot {
namespace {

constexpr int64_t huge_page = int64_t{2} << 20;

thread_local Purpose current_purpose = Purpose::activations;

// Size classes: eight steps between powers of two, so at most an eighth of a block is unused.
int64_t block_size(int64_t bytes) {
  const int64_t least = std::max<int64_t>(bytes, 64);
  const auto power = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(least)));
  const int64_t step = std::max<int64_t>(power / 8, least >= huge_page ? huge_page / 16 : 64);
  return (least + step - 1) / step * step;
}

std::byte* from_system(int64_t block) {
  if (block < huge_page) {
    return static_cast<std::byte*>(std::aligned_alloc(64, static_cast<size_t>(block)));
  }
  void* data = mmap(nullptr, static_cast<size_t>(block), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return nullptr;
  }
  madvise(data, static_cast<size_t>(block), MADV_HUGEPAGE);
  return static_cast<std::byte*>(data);
}

// A file below `folder` that no name leads to: it is gone when nothing maps it. -1 with errno.
int nameless_file(const std::filesystem::path& folder) {
  const int file = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR)) {
    return file;
  }
  std::string name = (folder / "memory-XXXXXX").string();  // file systems without O_TMPFILE
  const int named = ::mkostemp(name.data(), O_CLOEXEC);
  if (named >= 0) {
    ::unlink(name.c_str());
  }
  return named;
}

// Null with errno. The file has all its room from the start: a page without room would end the
// process when it is written.
std::byte* from_file(const std::filesystem::path& folder, int64_t block) {
  const int file = nameless_file(folder);
  if (file < 0) {
    return nullptr;
  }
  void* data = MAP_FAILED;
  const int refused = ::posix_fallocate(file, 0, block);
  if (refused == 0) {
    data = mmap(nullptr, static_cast<size_t>(block), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  const int why = refused != 0 ? refused : errno;
  ::close(file);
  errno = why;
  return data == MAP_FAILED ? nullptr : static_cast<std::byte*>(data);
}

void to_system(std::byte* data, int64_t block) {
  if (block < huge_page) {
    std::free(data);
  } else {
    munmap(data, static_cast<size_t>(block));
  }
}

}  // namespace

std::string_view name(Purpose purpose) {
  switch (purpose) {
    case Purpose::parameters: return "parameters";
    case Purpose::gradients: return "gradients";
    case Purpose::optimizer: return "optimizer";
    case Purpose::activations: return "activations";
    case Purpose::workspace: return "workspace";
  }
  return "unknown";
}

PurposeScope::PurposeScope(Purpose purpose) : previous_(current_purpose) {
  current_purpose = purpose;
}
PurposeScope::~PurposeScope() { current_purpose = previous_; }
Purpose PurposeScope::current() { return current_purpose; }

Allocator::~Allocator() { release_cache(); }

bool Allocator::goes_to_disk(int64_t bytes, Purpose purpose) const {
  return bytes >= huge_page && !folders_[static_cast<size_t>(purpose)].empty();
}

// Adds (sign 1) or takes away (-1).
void Allocator::count(int64_t bytes, Purpose purpose, int64_t sign) {
  const int64_t size = sign * counted(bytes);
  if (bytes >= huge_page) {
    large_[static_cast<size_t>(purpose)] += size;
  }
  if (goes_to_disk(bytes, purpose)) {
    stats_.on_disk += size;
    stats_.on_disk_peak = std::max(stats_.on_disk_peak, stats_.on_disk);
    return;
  }
  stats_.live[static_cast<size_t>(purpose)] += size;
  stats_.live_total += size;
  if (stats_.live_total > stats_.peak_total) {
    stats_.peak_total = stats_.live_total;
    stats_.at_peak = stats_.live;
  }
}

std::byte* Allocator::allocate(int64_t bytes, Purpose purpose) {
  check(bytes >= 0, ErrorKind::internal, "allocator: negative size: ", bytes);
  const std::lock_guard lock(mutex_);
  std::byte* data = nullptr;
  if (kind_ != DeviceKind::meta && bytes > 0) {
    data = goes_to_disk(bytes, purpose) ? take_file(block_size(bytes), purpose)
                                        : take(block_size(bytes));
    check(data != nullptr, ErrorKind::device, "memory: the system refused ", bytes, " bytes for ",
          name(purpose), ": ", stats_.live_total,
          " bytes are live; lower the batch size or sequence length (`ingot plan` shows the peak)");
  }
  count(bytes, purpose, 1);
  ++stats_.allocations;
  return data;
}

std::byte* Allocator::take_file(int64_t block, Purpose purpose) {
  std::vector<std::byte*>& free_blocks = file_cache_[block];
  if (!free_blocks.empty()) {
    std::byte* data = free_blocks.back();
    free_blocks.pop_back();
    return data;
  }
  const std::filesystem::path& folder = folders_[static_cast<size_t>(purpose)];
  std::byte* data = from_file(folder, block);
  check(data != nullptr, ErrorKind::io, folder.string(), ": cannot hold ", block, " bytes of ",
        name(purpose), ": ", std::strerror(errno),
        "; make room, or name another folder in train.offload_to");
  in_files_.insert(data);
  ++stats_.system_calls;
  return data;
}

std::byte* Allocator::take(int64_t block) {
  std::vector<std::byte*>& free_blocks = cache_[block];
  if (!free_blocks.empty()) {
    std::byte* data = free_blocks.back();
    free_blocks.pop_back();
    return data;
  }
  std::byte* data = from_system(block);
  if (data == nullptr) {
    for (auto& [size, blocks] : cache_) {  // give everything unused back and try once more
      for (std::byte* unused : blocks) {
        to_system(unused, size);
        stats_.reserved -= size;
      }
      blocks.clear();
    }
    data = from_system(block);
  }
  if (data != nullptr) {
    stats_.reserved += block;
    ++stats_.system_calls;
  }
  return data;
}

void Allocator::free(std::byte* data, int64_t bytes, Purpose purpose) {
  const std::lock_guard lock(mutex_);
  count(bytes, purpose, -1);
  if (data != nullptr) {
    (in_files_.contains(data) ? file_cache_ : cache_)[block_size(bytes)].push_back(data);
  }
}

void Allocator::recount(int64_t bytes, Purpose from, Purpose to) {
  const std::lock_guard lock(mutex_);
  count(bytes, from, -1);
  count(bytes, to, 1);
}

void Allocator::keep_on_disk(Purpose purpose, const std::filesystem::path& folder) {
  const std::lock_guard lock(mutex_);
  const int64_t live = large_[static_cast<size_t>(purpose)];
  check(live == 0, ErrorKind::internal, "allocator: ", live, " bytes of ", name(purpose),
        " are in use: where they lie cannot change");
  folders_[static_cast<size_t>(purpose)] = folder;
}

MemoryStats Allocator::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void Allocator::reset_peak() {
  const std::lock_guard lock(mutex_);
  stats_.peak_total = stats_.live_total;
  stats_.at_peak = stats_.live;
  stats_.on_disk_peak = stats_.on_disk;
}

void Allocator::release_cache() {
  const std::lock_guard lock(mutex_);
  for (auto& [size, blocks] : cache_) {
    for (std::byte* data : blocks) {
      to_system(data, size);
      stats_.reserved -= size;
    }
    blocks.clear();
  }
  for (auto& [size, blocks] : file_cache_) {
    for (std::byte* data : blocks) {
      to_system(data, size);
      in_files_.erase(data);
    }
    blocks.clear();
  }
}

Allocator& allocator(Device device) {
  // Never destroyed: tensors of static lifetime may outlive every other object.
  static Allocator& cpu = *new Allocator(DeviceKind::cpu);
  static Allocator& meta = *new Allocator(DeviceKind::meta);
  return device.kind == DeviceKind::meta ? meta : cpu;
}

}  // namespace ingot
