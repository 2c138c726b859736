#include "ingot/nn/activation.h"

#include <array>

#include "ingot/ops/elementwise.h"
#include "ingot/ops/glu.h"

namespace ingot::nn {
namespace {

constexpr std::array<std::string_view, 10> names = {"gelu",  "gelu_tanh", "relu",  "relu_squared",
                                                    "silu",  "swiglu",    "geglu", "geglu_tanh",
                                                    "reglu", "glu"};

}  // namespace

std::vector<std::string> activation_names() { return {names.begin(), names.end()}; }

std::string_view name(Activation activation) { return names[static_cast<size_t>(activation)]; }

Activation activation_named(std::string_view wanted) {
  std::string all;
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == wanted) {
      return static_cast<Activation>(i);
    }
    all += (all.empty() ? "" : ", ") + std::string(names[i]);
  }
  throw Error(ErrorKind::config, concat("activation: no '", wanted, "'; take one of ", all));
}

bool is_gated(Activation activation) { return activation >= Activation::swiglu; }

Tensor activate(const Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::gelu: return gelu(x);
    case Activation::gelu_tanh: return gelu_tanh(x);
    case Activation::relu: return relu(x);
    case Activation::relu_squared: return relu_squared(x);
    case Activation::silu: return silu(x);
    default: break;
  }
  throw Error(ErrorKind::internal, concat("activate: ", name(activation), " needs a gate"));
}

Tensor activate(const Tensor& gate, const Tensor& up, Activation activation) {
  switch (activation) {
    case Activation::swiglu: return gated(gate, up, Gate::silu);
    case Activation::geglu: return gated(gate, up, Gate::gelu);
    case Activation::geglu_tanh: return gated(gate, up, Gate::gelu_tanh);
    case Activation::reglu: return gated(gate, up, Gate::relu);
    case Activation::glu: return gated(gate, up, Gate::sigmoid);
    default: break;
  }
  throw Error(ErrorKind::internal, concat("activate: ", name(activation), " takes no gate"));
}

}  // namespace ingot::nn
