#include "ingot/autograd/chain.h"

#include <map>

#include "ingot/autograd/grad_mode.h"
#include "ingot/base/error.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot {

std::vector<ChainLink> chain_of(const Tensor& y) {
  check(y.elements() == 1 && y.node() != nullptr, ErrorKind::argument,
        "chain_of: takes a tensor of one element with a history: its shape is ", y.shape());
  const NoGrad no_grad;
  std::vector<ChainLink> links;
  // Nodes that something arrived at, by creation: the latest is complete, as in the backward.
  std::map<int64_t, std::pair<const Node*, Tensor>> waiting;
  waiting[y.node()->order] = {y.node().get(), full(y.shape(), 1, y.dtype())};
  while (!waiting.empty()) {
    const auto [node, dy] = waiting.rbegin()->second;
    waiting.erase(std::prev(waiting.end()));
    check(!node->spent && node->layouts.size() <= 1, ErrorKind::argument, "chain_of: ", node->op,
          node->spent ? ": its formulas are used up; ask before backward()"
                      : ": operations of several results are not taken apart");
    const Tensor one = full(dy.shape(), 1, dy.dtype());
    for (const Formula& formula : node->formulas) {
      const TensorList local = formula.vjp({one}, node->results);
      const TensorList parts = formula.vjp({dy}, node->results);
      for (size_t i = 0; i < parts.size(); ++i) {
        if (!parts[i].defined()) {
          continue;
        }
        const Node* to = formula.inputs[i].to.get();
        links.push_back({node, to, dy, local[i], parts[i]});
        const auto [at, fresh] = waiting.try_emplace(to->order, to, Tensor());
        if (fresh) {
          at->second.second = copy_of(parts[i]);
        } else {
          add_into(at->second.second, parts[i]);
        }
      }
    }
  }
  return links;
}

}  // namespace ingot
