#include "ingot/autograd/grad_mode.h"

#include <utility>

namespace ingot {
namespace {

thread_local bool mode = true;

}  // namespace

bool recording() { return mode; }

NoGrad::NoGrad() : previous_(std::exchange(mode, false)) {}
NoGrad::~NoGrad() { mode = previous_; }

WithGrad::WithGrad() : previous_(std::exchange(mode, true)) {}
WithGrad::~WithGrad() { mode = previous_; }

}  // namespace ingot
