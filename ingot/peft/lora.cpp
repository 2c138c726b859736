#include "ingot/peft/lora.h"

#include <algorithm>
#include <cmath>

#include "ingot/autograd/record.h"
#include "ingot/ops/dropout.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/linear.h"
#include "ingot/ops/matmul.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"

namespace ingot::peft {

double lora_scaling(const LoraOptions& o) {
  const auto rank = static_cast<double>(o.rank);
  return o.alpha / (o.rslora ? std::sqrt(rank) : rank);
}

Lora::Lora(const nn::Linear& map, const LoraOptions& options, const AdapterSeed& seed, DType dtype,
           Device device, std::shared_ptr<const AdapterState> state)
    : Adapter(std::move(state)), options_(options), site_(seed.key("lora_dropout").site) {
  const int64_t in = map.in_features(), out = map.out_features();
  check(options.rank >= 1, ErrorKind::config, "peft.rank: must be at least 1: got ", options.rank);
  const double bound = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(1, in)));
  const PurposeScope scope(Purpose::parameters);
  a = converted(uniform({options.rank, in}, -bound, bound, seed.key("lora_a"), DType::f32, device),
                dtype);
  b = nn::parameter({out, options.rank}, dtype, device);
}

Tensor Lora::dropped(const Tensor& x) const {
  const Randomness* random = state().randomness.get();
  return options_.dropout > 0 && random != nullptr && random->training
             ? dropout(x, options_.dropout, random->key(site_))
             : x;
}

Tensor Lora::after(const Tensor& x, Tensor y, const nn::Linear&) const {
  return add_linear(std::move(y), linear(dropped(x), a) * weighted_scaling(), b);
}

Adapter::Merged Lora::merged(const Merged& map) const {
  const DType dtype = map.weight.dtype();
  return {map.weight + matmul(cast(b, dtype), cast(a, dtype)) * weighted_scaling(), map.bias};
}

void Lora::visit(nn::Visitor& v) {
  v("lora_a", a, nn::Role::matrix);
  v("lora_b", b, nn::Role::matrix);
}

LowRankPair exported(const Lora& lora) {
  const LowRankPair own{detach(lora.a), detach(lora.b)};
  if (!lora.start_a.defined()) {
    return own;
  }
  return {concat({own.a, lora.start_a}, int64_t{0}), concat({own.b, -lora.start_b}, int64_t{1})};
}

LowRankPair joined(const std::vector<LowRankPair>& parts) {
  if (parts.size() == 1) {
    return parts.front();
  }
  int64_t rows = 0, ranks = 0;
  TensorList as;
  for (const LowRankPair& part : parts) {
    rows += part.b.size(0);
    ranks += part.b.size(1);
    as.push_back(part.a);
  }
  LowRankPair out{concat(as, int64_t{0}), zeros({rows, ranks}, parts[0].b.dtype())};
  int64_t row = 0, rank = 0;
  for (const LowRankPair& part : parts) {
    Tensor block =
        sliced(sliced(out.b, 0, row, row + part.b.size(0)), 1, rank, rank + part.b.size(1));
    copy_into(block, part.b);
    row += part.b.size(0);
    rank += part.b.size(1);
  }
  return out;
}

}  // namespace ingot::peft
