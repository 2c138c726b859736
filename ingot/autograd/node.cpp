#include "ingot/autograd/node.h"

#include <atomic>
#include <utility>

namespace ingot {
namespace {

std::atomic<int64_t> order{0};

// Histories waiting to be freed on this thread. ~Node only moves its formulas (which hold the nodes
// behind it, directly and through saved tensors) here; the outermost ~Node drains the list.
struct Graveyard {
  std::vector<std::vector<Formula>> waiting;
  bool draining = false;
};
thread_local Graveyard graveyard;

}  // namespace

Node::~Node() {
  if (formulas.empty()) {
    return;
  }
  graveyard.waiting.push_back(std::move(formulas));
  if (graveyard.draining) {
    return;
  }
  graveyard.draining = true;
  while (!graveyard.waiting.empty()) {
    const std::vector<Formula> dying = std::move(graveyard.waiting.back());
    graveyard.waiting.pop_back();
  }
  graveyard.draining = false;
}

int64_t next_node_order() { return order.fetch_add(1, std::memory_order_relaxed); }

}  // namespace ingot
