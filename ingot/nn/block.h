#pragma once

#include "ingot/nn/module.h"
#include "ingot/nn/randomness.h"
#include "ingot/nn/token_cache.h"
#include "ingot/ops/rope.h"

namespace ingot::nn {

// What all layers of one forward share besides their input. A value: a recomputation sees what the
// forward saw.
struct Context {
  RopeTables rope;      // undefined: queries and keys are not turned
  Tensor documents;     // [B, T] i32: attention stays inside equal ids; undefined: one document
  Tensor key_lengths;   // [B] i32: keys at and beyond are padding; undefined: none
  Tensor alibi_slopes;  // [H]; undefined: no penalty on distance
  Randomness randomness;
  TensorList* aside = nullptr;  // collects what layers give besides y, such as a router's logits
  TokenCache* cache = nullptr;  // of a model that is generating
  int64_t layer = 0;            // the layer's place in it
};

// One transformer layer: the unit that strategies wrap. Recompute, offload, sharding and profiling
// are functions around its forward; models never mention them.
class Block : public Module {
 public:
  using Run = std::function<TensorList(const Tensor& x)>;  // y, then what the layer puts aside
  using Around = std::function<TensorList(const Run& run, const Tensor& x)>;

  // forward(x) inside every Around, the last one added outermost.
  Tensor operator()(const Tensor& x, const Context& context) const;
  // Every later call runs inside `around`. Not while a backward through this block is still due.
  void wrap(Around around) { arounds_.push_back(std::move(around)); }

 protected:
  virtual Tensor forward(const Tensor& x, const Context& context) const = 0;

 private:
  std::vector<Around> arounds_;
};

}  // namespace ingot::nn
