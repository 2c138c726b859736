#include "ingot/device/profile.h"

#include <algorithm>
#include <string_view>

#include "ingot/base/error.h"
#include "ingot/device/flops.h"

namespace ingot {
namespace {

thread_local Recording* recording = nullptr;

double since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// "ops/linear.cpp" → "linear"
std::string_view stem(std::string_view path) {
  path.remove_prefix(path.rfind('/') + 1);  // npos + 1 is 0
  return path.substr(0, path.find('.'));
}

// "ingot::Tensor ingot::{anonymous}::forward(const Tensor&)" → "forward"
std::string_view function_of(std::string_view signature) {
  constexpr std::string_view anonymous[] = {"{anonymous}", "(anonymous namespace)"};
  size_t start = 0;
  for (const std::string_view hidden : anonymous) {
    const size_t at = signature.rfind(hidden);
    start = at == std::string_view::npos ? start : std::max(start, at + hidden.size());
  }
  signature.remove_prefix(start);
  signature = signature.substr(0, signature.find('('));
  const size_t before = signature.find_last_of(": *&");
  return before == std::string_view::npos ? signature : signature.substr(before + 1);
}

}  // namespace

Recording::Recording() : start_(std::chrono::steady_clock::now()), flops_seen_(counted_flops()) {
  check(recording == nullptr, ErrorKind::internal, "recording: this thread has one already");
  recording = this;
}

Recording::~Recording() { recording = nullptr; }

double Recording::seconds() const { return since(start_); }

KernelTimer::KernelTimer(const std::source_location& caller)
    : recording_(recording), caller_(caller) {
  if (recording_ != nullptr) {
    outer_ = recording_->innermost_;
    recording_->innermost_ = this;
    begin_ = recording_->seconds();
  }
}

KernelTimer::~KernelTimer() {
  if (recording_ == nullptr) {
    return;
  }
  const double all = recording_->seconds() - begin_;
  if (outer_ != nullptr) {
    outer_->inner_seconds_ += all;
  }
  recording_->innermost_ = outer_;
  const int64_t flops = counted_flops() - recording_->flops_seen_;
  recording_->flops_seen_ += flops;
  recording_->calls_.push_back({kernel_name(caller_), begin_, all - inner_seconds_, flops, bytes_});
}

void count_bytes(int64_t bytes) {
  if (recording != nullptr && recording->innermost_ != nullptr) {
    recording->innermost_->bytes_ += bytes;
  }
}

std::string kernel_name(const std::source_location& caller) {
  std::string_view signature = caller.function_name();
  signature = signature.substr(0, signature.find(" [with"));  // what a template was made with
  const std::string_view file = stem(caller.file_name());
  const bool formula = signature.find("<lambda") != std::string_view::npos ||
                       signature.find("(anonymous class)") != std::string_view::npos;
  const std::string_view function = formula ? "backward" : function_of(signature);
  std::string name(file);
  if (function != file) {
    name.append(".").append(function);
  }
  return name;
}

}  // namespace ingot
