#include "ingot/optim/newton_schulz.h"

#include "ingot/autograd/grad_mode.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/matmul.h"
#include "ingot/optim/direction.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/layout.h"

namespace ingot {

Tensor orthogonalised(const Tensor& g, const NewtonSchulz& numbers, DType dtype) {
  const NoGrad quiet;
  const bool tall = g.size(0) > g.size(1);
  const Tensor normed = g * (1 / (frobenius_norm(g) + numbers.eps));
  Tensor x = converted(tall ? dense(transposed(normed, 0, 1)) : normed, dtype);
  for (int64_t step = 0; step < numbers.steps; ++step) {
    const Tensor gram = matmul(x, transposed(x, 0, 1));
    const Tensor polynomial = numbers.b * gram + numbers.c * matmul(gram, gram);
    x = numbers.a * x + matmul(polynomial, x);
  }
  return converted(dense(tall ? transposed(x, 0, 1) : x), g.dtype());
}

}  // namespace ingot
