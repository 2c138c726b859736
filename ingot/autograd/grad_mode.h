#pragma once

namespace ingot {

// Whether operations of this thread record their history. On by default.
bool recording();

// While it lives, nothing is recorded on this thread: evaluation, generation, optimizer steps.
class NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool previous_;
};

// The opposite, for code that must record inside a NoGrad scope (recompute).
class WithGrad {
 public:
  WithGrad();
  ~WithGrad();
  WithGrad(const WithGrad&) = delete;
  WithGrad& operator=(const WithGrad&) = delete;

 private:
  bool previous_;
};

}  // namespace ingot
