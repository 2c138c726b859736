#include "ingot/posttrain/neftune.h"

#include <algorithm>
#include <cmath>

#include "ingot/ops/elementwise.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

// 1/√(L·D) of every token: [B, T, 1].
Tensor scales(const Tensor& x, const Tensor& documents) {
  const int64_t B = x.size(0), T = x.size(1);
  const auto width = static_cast<double>(x.size(2));
  if (!documents.defined() || documents.device().kind == DeviceKind::meta) {
    return full({B, T, 1}, 1 / std::sqrt(static_cast<double>(T) * width), DType::f32, x.device());
  }
  const Tensor source = dense(documents);
  const auto numbers = source.values<int32_t>();
  Tensor out = empty({B, T, 1}, DType::f32);
  auto values = out.mutable_values<float>();
  for (int64_t begin = 0; begin < B * T;) {
    const int64_t row_end = (begin / T + 1) * T;
    int64_t end = begin;
    while (end < row_end &&
           numbers[static_cast<size_t>(end)] == numbers[static_cast<size_t>(begin)]) {
      ++end;
    }
    const double length = static_cast<double>(end - begin);
    std::fill(values.begin() + begin, values.begin() + end,
              static_cast<float>(1 / std::sqrt(length * width)));
    begin = end;
  }
  return out;
}

}  // namespace

Tensor with_embedding_noise(const Tensor& x, const Tensor& documents, double alpha,
                            const RandomKey& key) {
  const Tensor noise = uniform(x.shape(), -alpha, alpha, key, DType::f32, x.device());
  return x + converted(noise * scales(x, documents), x.dtype());
}

}  // namespace ingot
