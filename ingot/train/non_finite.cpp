#include "ingot/train/non_finite.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/record.h"
#include "ingot/autograd/watch.h"
#include "ingot/optim/direction.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"

namespace ingot {
namespace {

double value_at(const Tensor& x, int64_t i) {
  const Tensor whole = dense(x);
  return converted(sliced(reshaped(whole, {whole.elements()}), 0, i, i + 1), DType::f64)
      .values<double>()[0];
}

Shape index_in(const Shape& shape, int64_t flat) {
  std::vector<int64_t> index(static_cast<size_t>(shape.rank()));
  for (int64_t d = shape.rank() - 1; d >= 0; --d) {
    index[static_cast<size_t>(d)] = flat % shape.size(d);
    flat /= shape.size(d);
  }
  return Shape(std::span<const int64_t>(index));
}

// Ends a replay from within an operation. Not an Error, for nothing is to add its context.
struct Found {
  NonFinite what;
};

// Throws Found at the first value that is not finite.
class Finder : public Watch {
 public:
  Finder(const TensorDict& parameters, const Batch& batch, int64_t first_sample)
      : B_(batch.ids.size(0)), T_(batch.ids.size(1)), first_sample_(first_sample) {
    for (const auto& [name, p] : parameters) {
      names_[p.node().get()] = name;
    }
  }

  void made(std::string_view op, const TensorList& ys) override {
    for (const Tensor& y : ys) {
      if (!y.defined()) {
        continue;
      }
      if (y.node() != nullptr && !y.node()->leaf()) {
        parts_[y.node().get()] = current_part();
      }
      look(y, op, y.node().get(), op == "where" ? Masks::pass : Masks::count);
    }
  }

  void entering(const Node& node) override {
    const auto part = parts_.find(&node);
    part_ = part == parts_.end() ? "" : part->second;
    backward_ = node.op != "recomputed";  // its formula runs a forward again
    node_ = &node;
  }

  void differentiated(const Node& node, const Formula& formula, const TensorList& parts) override {
    entering(node);
    backward_ = true;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].defined()) {
        const auto name = names_.find(formula.inputs[i].to.get());
        leaf_ = name == names_.end() ? "" : name->second;
        look(parts[i], node.op, &node, Masks::count);
        leaf_.clear();
      }
    }
  }

 private:
  void look(const Tensor& y, std::string_view op, const Node* node, Masks masks) {
    const std::optional<int64_t> at = first_non_finite(y, masks);
    if (!at) {
      return;
    }
    NonFinite out;
    const bool within = backward_ && node_ != nullptr;
    out.op = within ? node_->op : op;
    out.backward = within;
    out.part = within ? part_ : std::string(current_part());
    out.parameter = !leaf_.empty() ? leaf_ : parameter_of(within ? node_ : node);
    out.value = value_at(y, *at);
    out.shape = y.shape();
    out.index = index_in(y.shape(), *at);
    out.sample = leaf_.empty() ? sample_of(y.shape(), *at) : -1;
    throw Found{std::move(out)};
  }

  // The first of the parameters that an operation reads.
  std::string parameter_of(const Node* node) const {
    if (node == nullptr) {
      return "";
    }
    for (const Formula& formula : node->formulas) {
      for (const Edge& edge : formula.inputs) {
        if (const auto name = names_.find(edge.to.get()); name != names_.end()) {
          return name->second;
        }
      }
    }
    return "";
  }

  // From the shape: rows of the batch, or rows and tokens laid end to end, come first.
  int64_t sample_of(const Shape& shape, int64_t flat) const {
    if (shape.rank() == 0 || shape.elements() == 0) {
      return B_ == 1 ? first_sample_ : -1;
    }
    const int64_t row = flat / (shape.elements() / shape.size(0));
    if (shape.rank() > 1 && shape.size(0) == B_ && shape.size(1) == T_) {
      return first_sample_ + row;
    }
    if (shape.size(0) == B_ * T_) {
      return first_sample_ + row / T_;
    }
    return B_ == 1 ? first_sample_ : -1;
  }

  int64_t B_, T_;
  int64_t first_sample_;
  std::unordered_map<const Node*, std::string> names_;  // of parameters
  std::unordered_map<const Node*, std::string> parts_;  // where an operation stands
  const Node* node_ = nullptr;                          // that the backward is at
  std::string part_;
  std::string leaf_;  // the parameter whose gradient is looked at
  bool backward_ = false;
};

std::optional<NonFinite> found_in(const Batch& batch, int64_t first_sample, double factor,
                                  Training& training) {
  const Optimizer& optimizer = *training.optimizer;
  try {
    const Finder finder(optimizer.parameters(), batch, first_sample);
    const Loss loss = training.objective(batch);
    backward(loss.sum, full(loss.sum.shape(), factor, loss.sum.dtype()));
  } catch (Found& found) {
    training.optimizer->clear();
    return std::move(found.what);
  }
  return std::nullopt;
}

// One row at a time: which of them makes such a value by itself.
int64_t sample_by_rows(const Batch& batch, int64_t first_sample, double factor,
                       Training& training) {
  for (int64_t row = 0; row < batch.ids.size(0); ++row) {
    if (found_in(row_of(batch, row), first_sample + row, factor, training)) {
      return first_sample + row;
    }
  }
  return -1;
}

std::optional<NonFinite> parameter_that_is(const TensorDict& parameters) {
  for (const auto& [name, p] : parameters) {
    if (const std::optional<int64_t> at = first_non_finite(p)) {
      NonFinite out;
      out.parameter = name;
      out.value = value_at(p, *at);
      out.shape = p.shape();
      out.index = index_in(p.shape(), *at);
      return out;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<int64_t> first_non_finite(const Tensor& x, Masks masks) {
  if (!is_float(x.dtype()) || x.elements() == 0 || x.device().kind == DeviceKind::meta) {
    return std::nullopt;
  }
  const Tensor whole = dense(x);
  if (x.dtype() != DType::f64 && std::isfinite(sum_of_squares(whole))) {
    return std::nullopt;
  }
  constexpr int64_t piece = 1 << 16;  // elements that are widened at a time
  const Tensor flat = reshaped(whole, {whole.elements()});
  for (int64_t begin = 0; begin < flat.elements(); begin += piece) {
    const int64_t end = std::min(begin + piece, flat.elements());
    const Tensor wide = converted(dense(sliced(flat, 0, begin, end)), DType::f64);
    const auto values = wide.values<double>();
    for (size_t i = 0; i < values.size(); ++i) {
      const bool mask = masks == Masks::pass && std::isinf(values[i]) && values[i] < 0;
      if (!std::isfinite(values[i]) && !mask) {
        return begin + static_cast<int64_t>(i);
      }
    }
  }
  return std::nullopt;
}

std::optional<NonFinite> find_non_finite(TrainState state, Training& training) {
  training.optimizer->clear();
  if (std::optional<NonFinite> held = parameter_that_is(training.optimizer->parameters())) {
    return held;
  }
  const int64_t count = micro_batches_of(state, training);
  const double factor = loss_factor(state, training);
  for (int64_t micro = 0; micro < count; ++micro) {
    const Batch batch = next_batch(state, micro, training);
    std::optional<NonFinite> found = found_in(batch, state.position, factor, training);
    if (found) {
      if (found->sample < 0 && training.rows_alone) {
        found->sample = sample_by_rows(batch, state.position, factor, training);
      }
      return found;
    }
    state.position += batch.ids.size(0);
  }
  training.optimizer->clear();
  return std::nullopt;
}

std::string NonFinite::text() const {
  std::string out = concat(value);
  if (op.empty()) {
    return out + concat(" in the parameter ", parameter, " at ", index, " of ", shape);
  }
  out += concat(" made by ", backward ? "the backward of " : "", op);
  out += part.empty() ? "" : " in " + part;
  out += parameter.empty() ? "" : " with " + parameter;
  if (shape.rank() > 0) {
    out += concat(", at ", index, " of ", shape);
  }
  return out + (sample < 0 ? "" : concat(", sample ", sample));
}

}  // namespace ingot
