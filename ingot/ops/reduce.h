#pragma once

#include "ingot/tensor/tensor.h"

namespace ingot {

// Whether a reduced dimension stays, with size 1.
enum class Keep : bool { no, yes };

Tensor sum(const Tensor& x);  // over everything: shape []
Tensor sum(const Tensor& x, int64_t dim, Keep keep = Keep::no);
Tensor mean(const Tensor& x);
Tensor mean(const Tensor& x, int64_t dim, Keep keep = Keep::no);
Tensor max(const Tensor& x, int64_t dim, Keep keep = Keep::no);  // gradient to the first maximum
Tensor min(const Tensor& x, int64_t dim, Keep keep = Keep::no);
Tensor argmax(const Tensor& x, int64_t dim, Keep keep = Keep::no);  // i64; the first of equals
Tensor var(const Tensor& x, int64_t dim, int64_t correction = 1, Keep keep = Keep::no);
Tensor logsumexp(const Tensor& x, int64_t dim, Keep keep = Keep::no);
Tensor cumsum(const Tensor& x, int64_t dim);
Tensor norm(const Tensor& x);  // √Σx², over everything, f32 or f64; gradient 0 at 0

}  // namespace ingot
