#include "ingot/nn/module.h"

#include <map>
#include <tuple>
#include <utility>

#include "ingot/autograd/record.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot::nn {
namespace {

// Storage and place in it: what two tied members have in common.
using Identity = std::pair<const Storage*, int64_t>;

class Collector : public Visitor {
 public:
  std::vector<Slot> slots;

 protected:
  void on_parameter(const std::string& path, Tensor& parameter, Role role) override {
    const Identity identity{parameter.storage().get(), parameter.offset()};
    const auto [at, first] = seen_.emplace(identity, slots.size());
    if (first) {
      slots.push_back({path, role, {&parameter}});
    } else {
      slots[at->second].places.push_back(&parameter);
    }
  }

 private:
  std::map<Identity, size_t> seen_;
};

// A line per parameter that does not fit, empty when all do.
std::string misfits(const std::vector<Slot>& slots, const TensorDict& values) {
  std::string missing;
  std::string shapes;
  TensorDict known;
  for (const Slot& slot : slots) {
    known.add(slot.path, slot.tensor());
    if (!values.contains(slot.path)) {
      missing += concat("\n  missing: ", slot.path, " ", slot.tensor().shape());
    } else if (values.at(slot.path).shape() != slot.tensor().shape()) {
      shapes += concat("\n  shape: ", slot.path, " is ", values.at(slot.path).shape(),
                       ", the module has ", slot.tensor().shape());
    }
  }
  std::string unexpected;
  for (const auto& [name, value] : values) {
    if (!known.contains(name)) {
      unexpected += concat("\n  unexpected: ", name, " ", value.shape());
    }
  }
  return missing + unexpected + shapes;
}

}  // namespace

std::string Visitor::path_of(std::string_view name) const {
  return prefix_.empty() ? std::string(name) : prefix_ + "." + std::string(name);
}

void Visitor::operator()(std::string_view name, Tensor& parameter, Role role) {
  if (parameter.defined()) {
    on_parameter(path_of(name), parameter, role);
  }
}

void Visitor::operator()(std::string_view name, Module& child) {
  std::string outer = std::exchange(prefix_, path_of(name));
  on_module(prefix_, child);
  child.visit(*this);
  prefix_ = std::move(outer);
}

void Slot::set(const Tensor& tensor) const {
  for (Tensor* place : places) {
    *place = tensor;
  }
}

std::vector<Slot> Module::slots() {
  Collector collector;
  visit(collector);
  return std::move(collector.slots);
}

TensorDict Module::parameters() const {
  TensorDict out;
  // visit() hands out members for writing; reading them through it changes nothing.
  for (const Slot& slot : const_cast<Module*>(this)->slots()) {
    out.add(slot.path, slot.tensor());
  }
  return out;
}

void Module::load(const TensorDict& values) {
  const std::vector<Slot> all = slots();
  const std::string problems = misfits(all, values);
  check(problems.empty(), ErrorKind::format, "load: the values do not fit the module:", problems);
  for (const Slot& slot : all) {
    copy_into(*slot.places.front(), values.at(slot.path));
  }
}

void Module::to(DType dtype, Device device) {
  const PurposeScope scope(Purpose::parameters);
  for (const Slot& slot : slots()) {
    const Tensor& old = slot.tensor();
    if (old.dtype() == dtype && old.device() == device) {
      continue;
    }
    Tensor fresh = moved(converted(detach(old), dtype), device);
    if (old.node() != nullptr) {
      require_grad(fresh);
    }
    slot.set(fresh);
  }
}

void Module::require_gradients(std::string_view pattern) {
  bool any = false;
  for (const Slot& slot : slots()) {
    Tensor parameter = slot.tensor();
    if (matches(pattern, slot.path)) {
      any = true;
      slot.set(require_grad(parameter));
    } else {
      slot.set(detach(parameter));
    }
  }
  check(any, ErrorKind::argument, "require_gradients: no parameter matches '", pattern, "'");
}

int64_t Module::count() const { return parameters().elements(); }

std::string tree(const Module& module) {
  std::string out;
  std::vector<std::string> open;  // the path of the line above, without its last part
  for (const auto& [path, parameter] : module.parameters()) {
    std::vector<std::string> parts;
    for (size_t start = 0; start <= path.size();) {
      const size_t end = std::min(path.find('.', start), path.size());
      parts.push_back(path.substr(start, end - start));
      start = end + 1;
    }
    size_t shared = 0;
    while (shared < open.size() && shared + 1 < parts.size() && open[shared] == parts[shared]) {
      ++shared;
    }
    for (size_t depth = shared; depth + 1 < parts.size(); ++depth) {
      out += std::string(2 * depth, ' ') + parts[depth] + "\n";
    }
    out += concat(std::string(2 * (parts.size() - 1), ' '), parts.back(), " ", parameter.shape(),
                  " ", parameter.dtype(), "\n");
    parts.pop_back();
    open = std::move(parts);
  }
  return out + concat(module.count(), " parameters\n");
}

}  // namespace ingot::nn
