#pragma once

#include <vector>

#include "ingot/autograd/node.h"

namespace ingot {

// One step of the chain rule along one edge of a graph: what arrives at an operation, times its own
// derivative, is what it hands on:  dx = dy · ∂y/∂x.
struct ChainLink {
  const Node* of = nullptr;  // the operation
  const Node* to = nullptr;  // where the product goes: another operation, or a leaf
  Tensor arrived;            // dy: the sum over all edges that lead here
  Tensor local;              // ∂y/∂x · 1: the operation's formula for dy = 1
  Tensor handed_on;          // dx: the formula for dy
};

// All links behind y, a tensor of one element, in the order of the backward, without changing
// anything: the same formulas as backward() uses, one edge at a time, with every product in the
// open. The history stays. For graphs small enough to be read.
std::vector<ChainLink> chain_of(const Tensor& y);

}  // namespace ingot
