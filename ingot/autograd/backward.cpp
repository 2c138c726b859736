#include "ingot/autograd/backward.h"

#include <algorithm>
#include <optional>
#include <queue>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "ingot/autograd/record.h"
#include "ingot/autograd/watch.h"
#include "ingot/device/on_device.h"
#include "ingot/kernels/copy.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

// a + b with history, for gradients that are differentiated again.
Tensor recorded_sum(const Tensor& a, const Tensor& b) {
  Tensor y = copy_of(a);
  add_into(y, b);
  const auto same = [](const Tensor& dy) { return dy; };
  return record("gradient sum", y, wrt(a, same), wrt(b, same));
}

// Adds `part` to `sum`, in place where nobody else can see the buffer.
void add_gradient(Tensor& sum, Tensor part, CreateGraph create) {
  if (!sum.defined()) {
    sum = std::move(part);
  } else if (create == CreateGraph::yes) {
    sum = recorded_sum(sum, part);
  } else if (sum.storage().use_count() == 1 && sum.dense()) {
    add_into(sum, part);
  } else if (part.storage().use_count() == 1 && part.dense() && part.dtype() == sum.dtype()) {
    add_into(part, sum);
    sum = std::move(part);
  } else {
    Tensor fresh = copy_of(sum);
    add_into(fresh, part);
    sum = std::move(fresh);
  }
}

struct Pending {
  int64_t consumers = 0;  // operations that have yet to send their part
  TensorList grads;       // one per result
};

struct Later {
  bool operator()(const std::shared_ptr<Node>& a, const std::shared_ptr<Node>& b) const {
    return a->order < b->order;
  }
};

// One backward walk: ready operations latest first, leaves at once, so that a parameter's gradient
// is complete as early as it can be.
class Walk {
 public:
  Walk(const TensorList& ys, const TensorList& dys, CreateGraph create) : create_(create) {
    for (const Tensor& y : ys) {
      count_consumers(y.node());
    }
    for (size_t i = 0; i < ys.size(); ++i) {
      receive({ys[i].node(), ys[i].node_output()}, dys[i]);
    }
  }

  // Gradients of these are kept for the caller instead of going to leaves.
  std::unordered_map<const Node*, TensorList> keep;
  bool into_leaves = false;

  void run(const TensorList& ys) {
    for (const Tensor& y : ys) {
      if (pending_[y.node().get()].consumers == 0 && started_.insert(y.node().get()).second) {
        ready_.push(y.node());
      }
    }
    while (!ready_.empty()) {
      const std::shared_ptr<Node> node = ready_.top();
      ready_.pop();
      visit(node);
    }
  }

 private:
  void count_consumers(const std::shared_ptr<Node>& root) {
    std::vector<Node*> open;
    if (pending_.try_emplace(root.get()).second) {
      open.push_back(root.get());
    }
    while (!open.empty()) {
      Node* node = open.back();
      open.pop_back();
      check(!node->spent, ErrorKind::argument, "backward: the history of '", node->op,
            "' was freed by an earlier backward; run the forward again");
      for (const Formula& formula : node->formulas) {
        for (const Edge& edge : formula.inputs) {
          const auto [at, added] = pending_.try_emplace(edge.to.get());
          ++at->second.consumers;
          if (added) {
            open.push_back(edge.to.get());
          }
        }
      }
    }
  }

  void receive(const Edge& edge, Tensor part) {
    if (!part.defined()) {
      return;
    }
    const ResultLayout& result = edge.to->layouts[edge.output];
    check(part.shape() == result.shape, ErrorKind::internal, "backward: the gradient of '",
          edge.to->op, "' has shape ", part.shape(), ", its result ", result.shape);
    add_gradient(sum_at(edge), std::move(part), create_);
  }

  // What has arrived of a gradient. A leaf's starts with what earlier backwards left there.
  Tensor& sum_at(const Edge& edge) {
    TensorList& grads = pending_[edge.to.get()].grads;
    grads.resize(edge.to->layouts.size());
    Tensor& sum = grads[edge.output];
    const bool collects = into_leaves && edge.to->leaf() && !keep.contains(edge.to.get());
    if (collects && !sum.defined()) {
      sum = std::move(edge.to->grad);
      edge.to->grad = Tensor();
    }
    return sum;
  }

  // Lets the formula add to what has arrived, where it can and nobody else sees that.
  bool add_in_place(const Formula& formula, const TensorList& dys) {
    if (!formula.add_to || create_ == CreateGraph::yes) {
      return false;
    }
    const Edge& edge = formula.inputs[0];
    Tensor& sum = sum_at(edge);
    if (!sum.defined() || sum.storage().use_count() != 1 || !sum.dense() ||
        sum.dtype() != accumulator(edge.to->layouts[edge.output].dtype)) {
      return false;
    }
    formula.add_to(dys, sum);
    return true;
  }

  void visit(const std::shared_ptr<Node>& node) {
    TensorList dys = std::move(pending_[node.get()].grads);
    dys.resize(node->layouts.size());
    const auto kept = keep.find(node.get());
    if (kept != keep.end()) {
      run_hooks(*node, dys);
      kept->second = dys;
    } else if (node->leaf()) {
      if (into_leaves && dys[0].defined()) {
        add_to_leaf(*node, std::move(dys[0]));
      }
    } else {
      run_hooks(*node, dys);
    }
    if (!node->leaf()) {
      send(node, dys);
    }
  }

  static void run_hooks(Node& node, TensorList& dys) {
    if (dys[0].defined()) {
      for (const auto& hook : node.on_grad) {
        hook(dys[0]);
      }
    }
  }

  static void add_to_leaf(Node& node, Tensor dy) {
    const DType type = accumulator(node.layouts[0].dtype);
    const PurposeScope scope(Purpose::gradients);
    const bool owned = dy.storage().use_count() == 1 && dy.dense() && dy.dtype() == type &&
                       dy.storage()->bytes() == dy.bytes();
    if (owned) {
      dy.storage()->count_as(Purpose::gradients);
      node.grad = std::move(dy);
    } else {
      node.grad = empty(dy.shape(), type, dy.device());
      on_device(dy.device(),
                [&](const auto& on) { kernels::copy(on, dy.view(), node.grad.fresh_view()); });
    }
    for (const auto& hook : node.on_grad) {
      hook(node.grad);
    }
  }

  void send(const std::shared_ptr<Node>& node, const TensorList& dys) {
    const bool any =
        std::any_of(dys.begin(), dys.end(), [](const Tensor& dy) { return dy.defined(); });
    TensorList ys = node->results;
    if (create_ == CreateGraph::yes) {
      for (size_t i = 0; i < ys.size(); ++i) {
        if (ys[i].defined()) {
          ys[i].set_node(node, static_cast<uint32_t>(i));
        }
      }
    }
    Watch* const watch = watching();
    if (watch != nullptr) {
      watch->entering(*node);
    }
    for (Formula& formula : node->formulas) {
      TensorList parts(formula.inputs.size());
      if (any) {
        try {
          const bool added = add_in_place(formula, dys);
          if (!added) {
            parts = formula.vjp(dys, ys);
          }
          if (watch != nullptr) {
            watch->differentiated(*node, formula,
                                  added ? TensorList{sum_at(formula.inputs[0])} : parts);
          }
        } catch (Error& error) {
          error.within(concat("in the backward of '", node->op, "'"));
          throw;
        }
      }
      for (size_t i = 0; i < parts.size(); ++i) {
        receive(formula.inputs[i], std::move(parts[i]));
      }
      for (const Edge& edge : formula.inputs) {
        if (--pending_[edge.to.get()].consumers == 0) {
          arrived_.push_back(edge.to);
        }
      }
      if (create_ == CreateGraph::no) {
        formula.vjp = nullptr;
        formula.add_to = nullptr;
        formula.inputs.clear();
      }
    }
    if (create_ == CreateGraph::no && !node->formulas.empty()) {
      node->formulas.clear();
      node->spent = true;
    }
    pending_.erase(node.get());
    for (std::shared_ptr<Node>& next : arrived_) {
      if (next->leaf()) {
        visit(next);
      } else {
        ready_.push(std::move(next));
      }
    }
    arrived_.clear();
  }

  CreateGraph create_;
  std::unordered_map<const Node*, Pending> pending_;
  std::unordered_set<const Node*> started_;
  std::priority_queue<std::shared_ptr<Node>, std::vector<std::shared_ptr<Node>>, Later> ready_;
  std::vector<std::shared_ptr<Node>> arrived_;
};

void check_start(const Tensor& y, const Tensor& dy) {
  check(y.node() != nullptr, ErrorKind::argument,
        "backward: the tensor has no history: nothing it was computed from needs a gradient, or "
        "NoGrad was on");
  check(y.shape() == dy.shape(), ErrorKind::shape, "backward: shapes differ: y is ", y.shape(),
        ", dy is ", dy.shape());
}

}  // namespace

TensorList gradients(const TensorList& ys, const TensorList& xs, const TensorList& dys,
                     CreateGraph create) {
  check(ys.size() == dys.size(), ErrorKind::argument, "gradients: ", ys.size(), " results, but ",
        dys.size(), " gradients of them");
  for (size_t i = 0; i < ys.size(); ++i) {
    check_start(ys[i], dys[i]);
  }
  std::optional<NoGrad> quiet;
  if (create == CreateGraph::no) {
    quiet.emplace();
  }
  Walk walk(ys, dys, create);
  for (const Tensor& x : xs) {
    check(x.node() != nullptr, ErrorKind::argument, "gradients: an x has no history");
    walk.keep.try_emplace(x.node().get());
  }
  walk.run(ys);
  TensorList out;
  for (const Tensor& x : xs) {
    const TensorList& found = walk.keep[x.node().get()];
    out.push_back(found.empty() ? Tensor() : found[x.node_output()]);
  }
  return out;
}

void backward(const Tensor& loss) {
  check(loss.elements() == 1, ErrorKind::shape,
        "backward: the loss must have one element: got shape ", loss.shape());
  backward(loss, full(loss.shape(), 1, loss.dtype(), loss.device()));
}

void backward(const Tensor& y, const Tensor& dy) {
  check_start(y, dy);
  const NoGrad quiet;
  Walk walk({y}, {dy}, CreateGraph::no);
  walk.into_leaves = true;
  walk.run({y});
}

}  // namespace ingot
