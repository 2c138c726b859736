#include "ingot/optim/optimizer.h"

#include <cmath>
#include <utility>

#include "ingot/autograd/record.h"
#include "ingot/base/edit_distance.h"
#include "ingot/device/allocator.h"
#include "ingot/device/on_device.h"
#include "ingot/kernels/stochastic_round.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

constexpr std::string_view master_prefix = "master/";

void check_parameter(const std::string& name, const Tensor& p) {
  check(p.defined() && is_float(p.dtype()), ErrorKind::dtype, "optimizer: '", name,
        "' is not a floating-point tensor");
  check(p.dense(), ErrorKind::argument, "optimizer: '", name, "' is not dense: shape ", p.shape(),
        ", strides ", p.strides(), "; a parameter owns its memory");
  check(p.node() != nullptr && p.node()->leaf(), ErrorKind::argument, "optimizer: '", name,
        "' collects no gradient; call require_grad on it, or leave it out");
}

void check_entry(const std::string& name, const Tensor& wanted, const Tensor& got) {
  check(got.shape() == wanted.shape(), ErrorKind::shape, "optimizer state: '", name,
        "' has another shape: saved ", got.shape(), ", needed ", wanted.shape(),
        "; the state is of another model");
  check(got.dtype() == wanted.dtype(), ErrorKind::dtype, "optimizer state: '", name,
        "' has another type: saved ", got.dtype(), ", needed ", wanted.dtype());
}

// Throws unless `saved` has exactly the entries of `wanted`, shapes and types included.
void check_state(const TensorDict& wanted, const TensorDict& saved) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : saved) {
    names.push_back(name);
  }
  for (const auto& [name, tensor] : wanted) {
    check(saved.contains(name), ErrorKind::argument, "optimizer state: '", name,
          "' is missing: the nearest of ", saved.size(), " saved names is '",
          nearest_word(name, names), "'; the state is of another model, rule or precision");
    check_entry(name, tensor, saved.at(name));
  }
  for (const std::string& name : names) {
    check(wanted.contains(name), ErrorKind::argument, "optimizer state: '", name,
          "' is saved, but this optimizer has no such tensor; the state is of another model, rule "
          "or precision");
  }
}

}  // namespace

Optimizer::Optimizer(const TensorDict& parameters, std::unique_ptr<const Rule> rule,
                     const GroupRules& groups, Halves halves, uint64_t seed)
    : parameters_(parameters),
      rule_(std::move(rule)),
      groups_(groups_of(parameters, groups)),
      halves_(halves),
      seed_(seed) {
  for (const auto& [name, p] : parameters_) {
    items_.push_back(make_item(name, p, groups_[items_.size()]));
  }
}

Optimizer::Item Optimizer::make_item(const std::string& name, const Tensor& p,
                                     const Group& group) const {
  check_parameter(name, p);
  const PurposeScope scope(Purpose::optimizer);
  check(halves_ == Halves::master || p.dtype() != DType::f16, ErrorKind::dtype, "optimizer: '",
        name, "' is f16: only bf16 is rounded stochastically; keep masters");
  Item item;
  if (is_half(p.dtype())) {
    item.weight = {converted(p, DType::f32), detach(p)};
  } else {
    item.weight.full = detach(p);
  }
  item.weight.matrix = group.matrix;
  for (const Slot& slot : rule_->slots(item.weight)) {
    item.slots.push_back(full(slot.shape, slot.start, slot.dtype, p.device()));
  }
  if (has_no_master(item)) {
    item.weight.full = Tensor();
  }
  return item;
}

Weight Optimizer::widened(const Item& item) const {
  const PurposeScope scope(Purpose::workspace);
  return {converted(item.weight.rounded, DType::f32), Tensor(), item.weight.matrix};
}

void Optimizer::step(double learning_rate, double scale) {
  check(!evaluated_, ErrorKind::internal, "optimizer: a step while other weights are shown");
  check(std::isfinite(learning_rate) && learning_rate >= 0, ErrorKind::argument,
        "optimizer: the learning rate must be finite and at least 0: got ", learning_rate);
  check(std::isfinite(scale), ErrorKind::numeric,
        "optimizer: the factor of the gradients is not finite: got ", scale,
        "; skip the step or halt");
  size_t i = 0;
  for (const auto& [name, p] : parameters_) {
    if (grad(p).defined()) {
      update(p, groups_[i], items_[i], site_named(name), learning_rate, scale);
      clear_grad(p);
    }
    ++i;
  }
}

void Optimizer::update(const Tensor& p, const Group& group, Item& item, uint64_t site,
                       double learning_rate, double scale) {
  Weight temporary = has_no_master(item) ? widened(item) : Weight();
  Weight& weight = has_no_master(item) ? temporary : item.weight;
  const Tensor g = dense(converted(grad(p), weight.full.dtype()));
  const uint32_t rounded = weight.rounded.defined() ? weight.rounded.storage()->version() : 0;
  ++item.t;
  rule_->update(weight, g, item.slots,
                {.t = item.t,
                 .learning_rate = learning_rate * group.learning_rate,
                 .decay = group.decay,
                 .scale = scale});
  if (has_no_master(item)) {
    const RandomKey key{seed_, static_cast<uint64_t>(item.t), site};
    on_device(p.device(), [&](const auto& on) {
      kernels::round_stochastically(on, weight.full.view(), key,
                                    item.weight.rounded.mutable_view());
    });
  } else if (weight.rounded.defined() && weight.rounded.storage()->version() == rounded) {
    copy_into(weight.rounded, weight.full);
  }
}

bool Optimizer::curvature_due() const {
  const int64_t every = rule_->curvature_every();
  return every > 0 && !items_.empty() && items_[0].t % every == 0;
}

void Optimizer::observe_curvature(const TensorDict& estimates) {
  size_t i = 0;
  for (const auto& [name, p] : parameters_) {
    Item& item = items_[i++];
    const DType full = has_no_master(item) ? DType::f32 : item.weight.full.dtype();
    rule_->observe_curvature(dense(converted(estimates.at(name), full)), item.slots);
  }
}

void Optimizer::show_evaluated() {
  check(!evaluated_, ErrorKind::internal, "optimizer: other weights are shown already");
  evaluated_ = true;
  const PurposeScope scope(Purpose::optimizer);
  for (Item& item : items_) {
    const bool alone = has_no_master(item);
    const Tensor shown = rule_->evaluated(alone ? widened(item) : item.weight, item.slots, item.t);
    if (!shown.defined()) {
      continue;
    }
    item.shown = true;
    if (alone) {
      item.trained = copy_of(item.weight.rounded);
      copy_into(item.weight.rounded, shown);
    } else if (item.weight.rounded.defined()) {
      copy_into(item.weight.rounded, shown);
    } else {
      item.trained = copy_of(item.weight.full);
      copy_into(item.weight.full, shown);
    }
  }
}

void Optimizer::show_trained() {
  for (Item& item : items_) {
    if (item.shown && has_no_master(item)) {
      copy_into(item.weight.rounded, item.trained);
      item.trained = Tensor();
    } else if (item.shown && item.weight.rounded.defined()) {
      copy_into(item.weight.rounded, item.weight.full);
    } else if (item.shown) {
      copy_into(item.weight.full, item.trained);
      item.trained = Tensor();
    }
    item.shown = false;
  }
  evaluated_ = false;
}

void Optimizer::clear() {
  for (const auto& [name, p] : parameters_) {
    clear_grad(p);
  }
}

TensorDict Optimizer::state() const {
  TensorDict state;
  const std::string prefix(rule_->name());
  size_t i = 0;
  for (const auto& [name, p] : parameters_) {
    const Item& item = items_[i++];
    const std::vector<Slot> slots = rule_->slots(has_no_master(item) ? widened(item) : item.weight);
    for (size_t s = 0; s < slots.size(); ++s) {
      state.add(concat(prefix, ".", slots[s].name, "/", name), item.slots[s]);
    }
    Tensor t = empty({}, DType::i64);
    t.mutable_values<int64_t>()[0] = item.t;
    state.add(concat(prefix, ".t/", name), t);
    if (item.weight.rounded.defined() && !has_no_master(item)) {
      state.add(concat(master_prefix, name), item.weight.full);
    }
  }
  return state;
}

void Optimizer::load(const TensorDict& saved) {
  TensorDict own = state();
  check_state(own, saved);
  for (auto& [name, tensor] : own) {
    copy_into(tensor, saved.at(name));
  }
  size_t i = 0;
  for (const auto& [name, p] : parameters_) {
    Item& item = items_[i++];
    item.t = own.at(concat(rule_->name(), ".t/", name)).values<int64_t>()[0];
    if (item.weight.rounded.defined() && !has_no_master(item)) {
      copy_into(item.weight.rounded, item.weight.full);
    }
  }
}

void Optimizer::set_master(std::string_view name, const Tensor& values) {
  size_t i = 0;
  for (const auto& [own, p] : parameters_) {
    const Item& item = items_[i++];
    Weight weight = has_no_master(item) ? widened(item) : item.weight;
    if (has_no_master(item)) {
      weight.rounded = item.weight.rounded;
    }
    if (own == name) {
      check_entry(concat(master_prefix, name), weight.full, values);
      copy_into(weight.full, values);
      if (weight.rounded.defined()) {
        copy_into(weight.rounded, weight.full);
      }
      return;
    }
  }
  parameters_.at(name);  // throws, naming the nearest parameter
}

TensorDict Optimizer::masters() const {
  TensorDict out;
  size_t i = 0;
  for (const auto& [name, p] : parameters_) {
    const Item& item = items_[i++];
    out.add(name, has_no_master(item) ? widened(item).full : item.weight.full);
  }
  return out;
}

int64_t Optimizer::state_bytes() const {
  int64_t bytes = 0;
  for (const Item& item : items_) {
    for (const Tensor& slot : item.slots) {
      bytes += slot.bytes();
    }
    bytes += item.weight.rounded.defined() && !has_no_master(item) ? item.weight.full.bytes() : 0;
  }
  return bytes;
}

double Optimizer::state_bytes_per_parameter() const {
  const int64_t count = parameters_.elements();
  return count == 0 ? 0 : static_cast<double>(state_bytes()) / static_cast<double>(count);
}

}  // namespace ingot
