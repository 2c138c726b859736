#include "ingot/autograd/watch.h"

#include <utility>

namespace ingot {
namespace {

thread_local Watch* watch = nullptr;
thread_local const std::string* part = nullptr;

}  // namespace

Watch::Watch() : previous_(std::exchange(watch, this)) {}
Watch::~Watch() { watch = previous_; }

Watch* watching() { return watch; }

PartScope::PartScope(const std::string& name) : name_(name) {
  previous_ = std::exchange(part, &name_);
}

PartScope::~PartScope() { part = previous_; }

std::string_view current_part() { return part != nullptr ? *part : std::string_view(); }

}  // namespace ingot
