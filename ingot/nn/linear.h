#pragma once

#include <functional>
#include <memory>

#include "ingot/nn/module.h"
#include "ingot/ops/coded_linear.h"
#include "ingot/ops/int8_linear.h"

namespace ingot::nn {

enum class Bias : bool { no, yes };

// What the operands of a map's three products are rounded to; each is given with its history.
struct ProductRounding {
  std::function<Tensor(const Tensor&)> input;   // x, in y and dW
  std::function<Tensor(const Tensor&)> weight;  // W, in y and dx
  std::function<Tensor(const Tensor&)>
      output_gradient;  // takes y, returns it: rounds dy, in dx, dW
};

class Linear;

// What stands around a linear map and leaves its weight as it is: peft/ has those there are.
class LinearAdapter {
 public:
  virtual ~LinearAdapter() = default;

  // Whether it counts at the moment: without, a map computes as if it were not there.
  virtual bool active() const = 0;
  // Whether the map reads before(x) instead of x.
  virtual bool changes_input() const { return false; }
  virtual Tensor before(const Tensor& x) const { return x; }
  // What the map gives instead of y, its own result for x.
  virtual Tensor after(const Tensor& x, Tensor y, const Linear& map) const = 0;

  // The weight and bias (defined or not) of the one map that computes the same; f32 or f64. Throws
  // Error(config) where none does.
  struct Merged {
    Tensor weight, bias;
  };
  virtual Merged merged(const Merged& map) const = 0;
};

// y = x Wᵀ + b, within its adapters, the first one innermost.   x: [..., In]   y: [..., Out]
class Linear : public Module {
 public:
  // Weight and bias start at 0 (see initialise.h).
  Linear(int64_t in, int64_t out, Bias bias, DType dtype, Device device, Role role = Role::matrix);

  virtual Tensor operator()(const Tensor& x) const;
  void visit(Visitor& v) override;  // not its adapters, whose parameters are their owner's

  // The same without adapters, and without the bias if `with_bias` says no.
  Tensor unadapted(const Tensor& x, Bias with_bias = Bias::yes) const;
  // y within the adapters, given x and the result without them.
  Tensor adapted(const Tensor& x, Tensor y) const;
  bool changes_input() const;  // whether an adapter does

  int64_t in_features() const;
  int64_t out_features() const;
  DType dtype() const;  // of what it computes with
  // The weight [Out, In], decoded where it is kept in fewer bits, with its adapters merged in.
  Tensor plain_weight(DType dtype) const;
  // From here on the weight is kept in 8 bits: for use, no longer for training, loading or saving.
  void to_int8();
  // The same with a weight that is decoded when it is read.
  void to_coded(std::shared_ptr<const CodedWeight> fewer_bits);

  Tensor weight;                              // [Out, In]; undefined after to_int8 and to_coded
  Int8Weight coded;                           // defined after to_int8
  std::shared_ptr<const CodedWeight> stored;  // not null after to_coded
  Tensor bias;                                // [Out], or undefined
  std::vector<std::shared_ptr<const LinearAdapter>> adapters;
  std::shared_ptr<const ProductRounding> rounding;  // none: products of what there is

 private:
  Tensor base_weight(DType dtype) const;

  Role role_;
};

// The results of several maps of one input; their backward sums the input's gradient in place.
TensorList apply_together(const Tensor& x, std::initializer_list<const Linear*> maps);

// Rounds the operands of every linear map in a module from now on.
void round_products(Module& module, std::shared_ptr<const ProductRounding> rounding);

// Linear::to_int8 for every linear map in a module.
void to_int8(Module& module);

// Every linear map in a module, by path ("layers.0.attention.wq"), in the order of description.
std::vector<std::pair<std::string, Linear*>> linear_maps(Module& module);

// A parameter of zeros (or `value`), counted as such.
Tensor parameter(const Shape& shape, DType dtype, Device device, double value = 0);

}  // namespace ingot::nn
