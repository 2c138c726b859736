#pragma once

#include <chrono>
#include <cstdint>
#include <source_location>
#include <string>
#include <vector>

namespace ingot {

// One call of a kernel.
struct KernelCall {
  std::string name;    // see kernel_name
  double begin = 0;    // seconds since the recording began
  double seconds = 0;  // without kernels called within
  int64_t flops = 0;   // counted by count_flops since the call before
  int64_t bytes = 0;   // of the tensors handed to it, read or written
};

// Records the kernels that this thread calls while it lives, for `ingot bench step`. One at a time
// per thread; without one a kernel call costs a test of a pointer more.
class Recording {
 public:
  Recording();
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  const std::vector<KernelCall>& calls() const { return calls_; }
  double seconds() const;  // since it began

 private:
  friend class KernelTimer;
  friend void count_bytes(int64_t bytes);
  std::chrono::steady_clock::time_point start_;
  int64_t flops_seen_;
  class KernelTimer* innermost_ = nullptr;
  std::vector<KernelCall> calls_;
};

// Times one kernel call where a Recording is on. on_device makes it.
class KernelTimer {
 public:
  explicit KernelTimer(const std::source_location& caller);
  ~KernelTimer();
  KernelTimer(const KernelTimer&) = delete;
  KernelTimer& operator=(const KernelTimer&) = delete;

 private:
  friend void count_bytes(int64_t bytes);
  Recording* recording_;
  std::source_location caller_;
  KernelTimer* outer_ = nullptr;
  double begin_ = 0;
  double inner_seconds_ = 0;
  int64_t bytes_ = 0;
};

// Adds to the bytes of the kernel call being recorded, if any: a tensor does so when it is seen as
// a view.
void count_bytes(int64_t bytes);

// "linear.weight_gradient" for that function of ops/linear.cpp, "softmax" for softmax() of
// ops/softmax.cpp, "softmax.backward" for a lambda there: the formula of a gradient.
std::string kernel_name(const std::source_location& caller);

}  // namespace ingot
