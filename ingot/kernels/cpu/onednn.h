#pragma once

#include <omp.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>
#include <utility>

#include "ingot/base/dtype.h"

namespace ingot::kernels::onednn {

// The processor as oneDNN's engine, and this thread's stream on it: execution is synchronous.
const dnnl::engine& engine();
dnnl::stream& stream();

dnnl::memory::data_type type_of(DType dtype);

// At least `bytes` of this thread's, 64-byte aligned, undefined contents; valid until the next call
// on this thread. It grows and stays, so the steady state allocates nothing.
void* scratch(size_t bytes);

// Threads that a primitive made and run now may use: 1 inside a parallel region. Primitives fix
// their partition when they are made, so the number is part of what they are cached by.
inline int available_threads() { return omp_in_parallel() != 0 ? 1 : omp_get_max_threads(); }

// While it lives, oneDNN makes and runs primitives for `threads` threads on this thread.
class ThreadLimit {
 public:
  explicit ThreadLimit(int threads) : previous_(omp_get_max_threads()) {
    if (threads != previous_) {
      omp_set_num_threads(threads);
    }
  }
  ~ThreadLimit() {
    if (omp_get_max_threads() != previous_) {
      omp_set_num_threads(previous_);
    }
  }
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;

 private:
  int previous_;
};

// A primitive with its arguments' memory objects, made once per shape and pointed at new data on
// each run. An empty one (no primitive) says that oneDNN cannot do it here.
struct Prepared {
  dnnl::primitive primitive;
  size_t scratch_bytes = 0;
  std::unordered_map<int, dnnl::memory> arguments;

  explicit operator bool() const { return static_cast<bool>(primitive); }
  void bind(int argument, const void* data) {
    arguments.at(argument).set_data_handle(const_cast<void*>(data));
  }
  // With scratch_bytes of memory for its own use.
  void run(void* scratch_memory);
};

// Everything that a primitive depends on, as numbers.
using Key = std::array<int64_t, 24>;
struct KeyHash {
  size_t operator()(const Key& key) const;
};

// The entries (Prepared, or several that belong together) used most recently. One cache per thread,
// so no lock and no sharing of memory objects; oneDNN's own cache shares the generated code between
// threads.
template <class Entry>
class Cache {
 public:
  explicit Cache(size_t capacity) : capacity_(capacity) {}

  // The entry of `key`, from make() when it is not there.
  template <class Make>
  Entry& at(const Key& key, Make&& make) {
    const auto found = index_.find(key);
    if (found != index_.end()) {
      entries_.splice(entries_.begin(), entries_, found->second);
      return entries_.front().second;
    }
    entries_.emplace_front(key, make());
    index_.emplace(key, entries_.begin());
    if (entries_.size() > capacity_) {
      index_.erase(entries_.back().first);
      entries_.pop_back();
    }
    return entries_.front().second;
  }

 private:
  using Entries = std::list<std::pair<Key, Entry>>;

  size_t capacity_;
  Entries entries_;
  std::unordered_map<Key, typename Entries::iterator, KeyHash> index_;
};

}  // namespace ingot::kernels::onednn
