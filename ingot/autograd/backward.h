#pragma once

#include "ingot/autograd/node.h"

namespace ingot {

// Whether the gradients themselves are recorded, so that they can be differentiated again. Without
// it a backward frees each operation's saved tensors as soon as it has used them.
enum class CreateGraph : bool { no, yes };

// Σ_i dys_i · ∂ys_i/∂x for each x in `xs`: the primitive. Touches no leaf's gradient. An x that the
// ys do not depend on gets an undefined gradient. dys must have the shapes of ys. With
// CreateGraph::no the history is spent afterwards: a second walk through it is an Error.
TensorList gradients(const TensorList& ys, const TensorList& xs, const TensorList& dys,
                     CreateGraph create = CreateGraph::no);

// Adds dL/dx into grad(x) of every leaf x behind `loss`, a tensor of one element. Gradients of
// half-precision leaves are kept and added in f32. The history is spent afterwards. After an Error
// the gradients of leaves are unfinished: clear them.
void backward(const Tensor& loss);
// The same from y with the gradient dy of y given.
void backward(const Tensor& y, const Tensor& dy);

}  // namespace ingot
