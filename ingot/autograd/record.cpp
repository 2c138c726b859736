#include "ingot/autograd/record.h"

#include <algorithm>

#include "ingot/autograd/watch.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

void show(std::string_view op, const TensorList& ys) {
  if (Watch* watch = watching()) {
    watch->made(op, ys);
  }
}

}  // namespace

Tensor& require_grad(Tensor& x) {
  check(is_float(x.dtype()), ErrorKind::dtype,
        "require_grad: only floating-point tensors have gradients: got ", x.dtype());
  check(x.node() == nullptr || x.node()->leaf(), ErrorKind::argument,
        "require_grad: the tensor is the result of '", x.node() ? x.node()->op : "",
        "'; detach it first");
  if (x.node() == nullptr) {
    auto node = std::make_shared<Node>();
    node->op = "leaf";
    node->order = next_node_order();
    node->layouts = {{x.shape(), x.dtype()}};
    x.set_node(std::move(node), 0);
  }
  return x;
}

bool needs_grad(const Tensor& x) { return x.node() != nullptr && recording(); }

Tensor detach(const Tensor& x) {
  return x.defined() ? x.aliased(x.shape(), x.strides(), x.offset()) : x;
}

Tensor& grad(const Tensor& x) {
  check(x.node() != nullptr && x.node()->leaf(), ErrorKind::argument,
        "grad: the tensor is not a leaf; only tensors given to require_grad collect gradients");
  return x.node()->grad;
}

void clear_grad(const Tensor& x) { grad(x) = Tensor(); }

void on_grad(const Tensor& x, std::function<void(Tensor&)> hook) {
  check(x.node() != nullptr, ErrorKind::argument, "on_grad: the tensor has no history");
  check(x.node_output() == 0, ErrorKind::argument,
        "on_grad: only the first result of an operation takes hooks");
  x.node()->on_grad.push_back(std::move(hook));
}

const Tensor& Saved::operator()() const {
  check(!x_.defined() || x_.storage()->version() == version_, ErrorKind::argument,
        "saved tensor of shape ", x_.shape(),
        ": it was written in place after the forward: version ",
        x_.defined() ? x_.storage()->version() : 0, ", saved at ", version_,
        "; write to a copy, or after backward");
  return x_;
}

Tensor history_of(const Tensor& x) {
  Tensor stub = empty({0}, x.dtype(), x.device());
  stub.set_node(x.node(), x.node_output());
  return stub;
}

Formula first_order_only(std::string_view op, const TensorList& xs) {
  return jointly(xs, [op](const TensorList&) -> TensorList {
    throw Error(ErrorKind::argument,
                concat(op, ": has no second derivative; build it from simpler operations"));
  });
}

Tensor record_formulas(std::string_view op, Tensor y, std::vector<Formula> formulas) {
  return std::move(record_formulas(op, TensorList{std::move(y)}, std::move(formulas))[0]);
}

TensorList record_formulas(std::string_view op, TensorList ys, std::vector<Formula> formulas) {
  std::erase_if(formulas, [](const Formula& formula) { return formula.inputs.empty(); });
  if (formulas.empty()) {
    show(op, ys);
    return ys;
  }
  auto node = std::make_shared<Node>();
  node->op = op;
  node->order = next_node_order();
  const bool keep = std::any_of(formulas.begin(), formulas.end(),
                                [](const Formula& f) { return f.reads_results; });
  node->formulas = std::move(formulas);
  for (const Tensor& y : ys) {
    node->layouts.push_back({y.shape(), y.dtype()});
    node->results.push_back(keep ? detach(y) : Tensor());
  }
  for (size_t i = 0; i < ys.size(); ++i) {
    ys[i].set_node(node, static_cast<uint32_t>(i));
  }
  show(op, ys);
  return ys;
}

}  // namespace ingot
