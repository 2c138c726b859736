#include "ingot/peft/loreft.h"

#include <algorithm>
#include <cmath>

#include "ingot/autograd/record.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/linear.h"
#include "ingot/ops/matmul.h"
#include "ingot/ops/reduce.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot::peft {

Loreft::Loreft(int64_t width, int64_t rank, const AdapterSeed& seed, DType dtype, Device device) {
  check(rank >= 1 && rank <= width, ErrorKind::config,
        "peft.rank: a subspace has at most the model's width: rank is ", rank, ", width is ",
        width);
  const PurposeScope scope(Purpose::parameters);
  rotation =
      converted(normal({rank, width}, 0, 1, seed.key("rotation"), DType::f32, device), dtype);
  bias = nn::parameter({rank}, dtype, device);
  orthonormalise();
  weight = copy_of(rotation);
}

Tensor Loreft::operator()(const Tensor& h, const Tensor& places) const {
  const Tensor within = linear(h, weight, bias) - linear(h, rotation);  // [B, T, r]
  const Tensor moved_by = linear(within, transpose(rotation));
  return places.defined() ? h + moved_by * unsqueeze(places, -1) : h + moved_by;
}

void Loreft::visit(nn::Visitor& v) {
  v("rotation", rotation, nn::Role::matrix);
  v("weight", weight, nn::Role::matrix);
  v("bias", bias, nn::Role::bias);
}

void Loreft::orthonormalise() {
  if (rotation.device().kind == DeviceKind::meta) {
    return;
  }
  Tensor wide = copy_of(converted(detach(rotation), DType::f64));
  auto values = wide.mutable_values<double>();
  const auto r = static_cast<size_t>(wide.size(0)), D = static_cast<size_t>(wide.size(1));
  const auto row = [&](size_t i) { return values.subspan(i * D, D); };
  for (size_t i = 0; i < r; ++i) {
    for (int pass = 0; pass < 2; ++pass) {  // the second removes what rounding left of the others
      for (size_t j = 0; j < i; ++j) {
        double dot = 0;
        for (size_t d = 0; d < D; ++d) {
          dot += row(i)[d] * row(j)[d];
        }
        for (size_t d = 0; d < D; ++d) {
          row(i)[d] -= dot * row(j)[d];
        }
      }
    }
    double squares = 0;
    for (const double x : row(i)) {
      squares += x * x;
    }
    for (double& x : row(i)) {
      x /= std::sqrt(squares);
    }
  }
  copy_into(rotation, wide);
}

double Loreft::distance_from_orthonormal() const {
  const NoGrad quiet;
  const Tensor wide = converted(detach(rotation), DType::f64);
  Tensor gram = copy_of(matmul(wide, transpose(wide)));
  for (int64_t i = 0; i < gram.size(0); ++i) {
    gram.mutable_values<double>()[static_cast<size_t>(i * (gram.size(0) + 1))] -= 1;
  }
  return norm(gram).item();
}

Tensor prompt_places(const std::vector<int64_t>& prompts, int64_t T, int64_t first, int64_t last,
                     DType dtype) {
  std::vector<float> out;
  for (const int64_t prompt : prompts) {
    for (int64_t t = 0; t < T; ++t) {
      out.push_back(t < prompt && (t < first || t >= prompt - last) ? 1.0F : 0.0F);
    }
  }
  return converted(tensor_of(out, {static_cast<int64_t>(prompts.size()), T}), dtype);
}

}  // namespace ingot::peft
