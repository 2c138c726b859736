#pragma once

#include <concepts>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "ingot/autograd/grad_mode.h"
#include "ingot/autograd/node.h"

namespace ingot {

// Marks a tensor as a leaf whose gradient backward() collects; returns it. It must have no history.
Tensor& require_grad(Tensor& x);
// Whether operations on x are to be recorded now.
bool needs_grad(const Tensor& x);
// x without its history: gradients stop here.
Tensor detach(const Tensor& x);
// dL/dx of a leaf after backward(); undefined before. Throws Error(argument) if x is no leaf.
Tensor& grad(const Tensor& x);
void clear_grad(const Tensor& x);
// Runs `hook` each time the gradient of x is complete, before it is used further.
void on_grad(const Tensor& x, std::function<void(Tensor&)> hook);

// A tensor kept for the backward, with the version its storage had: reading it after an in-place
// write is an Error that says so. Holds x's history too, so that a formula written in ops can be
// differentiated again.
class Saved {
 public:
  explicit Saved(Tensor x)
      : x_(std::move(x)), version_(x_.defined() ? x_.storage()->version() : 0) {}
  const Tensor& operator()() const;

 private:
  Tensor x_;
  uint32_t version_;
};
inline Saved saved(const Tensor& x) { return Saved(x); }

// The formula of one input. `vjp` takes (dy) or (dy, y) and returns the gradient of x, of x's
// shape. Empty, and free of whatever vjp has saved, when x needs no gradient.
template <class F>
Formula wrt(const Tensor& x, F vjp) {
  Formula formula;
  if (!needs_grad(x)) {
    return formula;
  }
  formula.inputs = {{x.node(), x.node_output()}};
  formula.reads_results = std::invocable<const F&, const Tensor&, const Tensor&>;
  formula.vjp = [vjp = std::move(vjp)](const TensorList& dys, const TensorList& ys) -> TensorList {
    if constexpr (std::invocable<const F&, const Tensor&, const Tensor&>) {
      return {vjp(dys[0], ys[0])};
    } else {
      return {vjp(dys[0])};
    }
  };
  return formula;
}

// One fused backward for several inputs: vjp(dys) or vjp(dys, ys) → one gradient per input, in
// order. Inputs that need no gradient have theirs dropped; empty when none does. For operations of
// several results too.
template <class F>
Formula jointly(const TensorList& xs, F vjp) {
  Formula formula;
  std::vector<size_t> wanted;
  for (size_t i = 0; i < xs.size(); ++i) {
    if (xs[i].defined() && needs_grad(xs[i])) {
      formula.inputs.push_back({xs[i].node(), xs[i].node_output()});
      wanted.push_back(i);
    }
  }
  if (wanted.empty()) {
    return formula;
  }
  formula.reads_results = std::invocable<const F&, const TensorList&, const TensorList&>;
  formula.vjp = [vjp = std::move(vjp), wanted](const TensorList& dys, const TensorList& ys) {
    TensorList all;
    if constexpr (std::invocable<const F&, const TensorList&, const TensorList&>) {
      all = vjp(dys, ys);
    } else {
      all = vjp(dys);
    }
    TensorList kept;
    for (const size_t i : wanted) {
      kept.push_back(std::move(all[i]));
    }
    return kept;
  };
  return formula;
}

// An empty tensor with x's history: stands for x in first_order_only without keeping its values.
Tensor history_of(const Tensor& x);

// A formula for the result of a fused backward kernel: differentiating it again is an Error naming
// `op`.
Formula first_order_only(std::string_view op, const TensorList& xs);

// y with its history, if any formula has inputs. `op` must outlive the program (a literal).
Tensor record_formulas(std::string_view op, Tensor y, std::vector<Formula> formulas);
TensorList record_formulas(std::string_view op, TensorList ys, std::vector<Formula> formulas);

template <std::same_as<Formula>... Formulas>
Tensor record(std::string_view op, Tensor y, Formulas... formulas) {
  std::vector<Formula> list;
  (list.push_back(std::move(formulas)), ...);
  return record_formulas(op, std::move(y), std::move(list));
}
template <std::same_as<Formula>... Formulas>
TensorList record(std::string_view op, TensorList ys, Formulas... formulas) {
  std::vector<Formula> list;
  (list.push_back(std::move(formulas)), ...);
  return record_formulas(op, std::move(ys), std::move(list));
}

}  // namespace ingot
