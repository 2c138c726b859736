#pragma once

#include "ingot/nn/module.h"

namespace ingot::nn {

// y[…, :] = weight[ids[…], :].   ids: [...] i64   y: [..., D]
class Embedding : public Module {
 public:
  // `padding`: an id whose row gets no gradient from look-ups; −1 for none.
  Embedding(int64_t vocabulary, int64_t width, DType dtype, Device device, int64_t padding = -1);

  Tensor operator()(const Tensor& ids) const;
  void visit(Visitor& v) override;

  Tensor weight;  // [V, D]; also the output map of a model with a tied head

 private:
  int64_t padding_;
};

}  // namespace ingot::nn
