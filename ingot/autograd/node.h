#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "ingot/tensor/tensor.h"

namespace ingot {

// Where a gradient flows to: result `output` of operation `to`.
struct Edge {
  std::shared_ptr<Node> to;
  uint32_t output = 0;
};

// How the gradients of an operation's results become gradients of some of its inputs.
//   vjp(dys, ys) → one gradient per entry of `inputs` (undefined means zero)
// dys has one entry per result, undefined where no gradient arrived; ys are the results themselves.
//   add_to(dys, sum): optional, for a single input: sum += its gradient, in place
// The engine prefers it where other parts of that gradient have arrived already, so that a large
// gradient is neither made nor read once more. sum is dense, in accumulator(dtype).
struct Formula {
  std::vector<Edge> inputs;
  std::function<TensorList(const TensorList& dys, const TensorList& ys)> vjp;
  std::function<void(const TensorList& dys, Tensor& sum)> add_to{};
  bool reads_results = false;  // whether vjp looks at ys, which are kept only then
};

// What the backward needs to know of a result.
struct ResultLayout {
  Shape shape;
  DType dtype = DType::f32;
};

// One recorded operation, or a leaf: a tensor whose gradient somebody wants, which no operation
// made.
struct Node {
  std::string_view op;            // "softmax": named in every error of its backward
  int64_t order = 0;              // creation order: the backward visits latest first
  std::vector<Formula> formulas;  // empty for a leaf, and after a backward that did not keep them
  bool spent = false;             // the formulas have been used and freed
  std::vector<ResultLayout> layouts;  // of the results
  TensorList
      results;  // aliases of them without history, where a formula reads them; otherwise undefined
  Tensor grad;  // leaf only: dL/dx, in accumulator(dtype) and of the leaf's shape

  // Run when the gradient of result 0 is complete, in the order they were added; may change it.
  std::vector<std::function<void(Tensor&)>> on_grad;

  bool leaf() const { return formulas.empty() && !spent; }

  Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node();  // frees the history behind it iteratively: a deep graph does not overflow the stack
};

// The next value of Node::order.
int64_t next_node_order();

}  // namespace ingot
