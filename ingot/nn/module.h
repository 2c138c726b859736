#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ingot/tensor/tensor_dict.h"

namespace ingot::nn {

// What a parameter is for: decides how it starts (initialise.h).
enum class Role : uint8_t {
  matrix,           // [Out, In] of a linear map
  residual,         // the same, where it writes into the residual stream
  embedding,        // [V, D], rows looked up by id
  gain,             // [D], starts at 1
  gain_difference,  // [D], a gain stored as its difference from 1: starts at 0
  bias,             // [D], starts at 0
};

class Module;

// Walks a module and everything in it, in the order of description.
class Visitor {
 public:
  virtual ~Visitor() = default;

  // A parameter. An undefined tensor is an option that is off: skipped.
  void operator()(std::string_view name, Tensor& parameter, Role role);
  void operator()(std::string_view name, Module& child);
  template <class M>
  void operator()(std::string_view name, std::optional<M>& child) {
    if (child) {
      (*this)(name, *child);
    }
  }
  // Children named "layers.0", "layers.1", …
  template <class M>
  void operator()(std::string_view name, std::vector<std::unique_ptr<M>>& children) {
    for (size_t i = 0; i < children.size(); ++i) {
      (*this)(std::string(name) + "." + std::to_string(i), *children[i]);
    }
  }

 protected:
  virtual void on_parameter(const std::string& path, Tensor& parameter, Role role) = 0;
  virtual void on_module(const std::string& /*path*/, Module& /*module*/) {}

 private:
  std::string path_of(std::string_view name) const;

  std::string prefix_;
};

// One parameter of a module: its path, and every member that holds it (several when it is tied).
struct Slot {
  std::string path;
  Role role;
  std::vector<Tensor*> places;

  const Tensor& tensor() const { return *places.front(); }
  void set(const Tensor& tensor) const;  // in every place, so ties stay tied
};

// Something with parameters. A module describes itself once, in visit(); naming, initialising,
// moving, loading and printing all follow from it. A parameter is named by its path,
// "layers.3.attention.wq.weight".
class Module {
 public:
  Module() = default;
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // Names its parameters and children to `v`, in a fixed order.
  virtual void visit(Visitor& v) = 0;

  // Every parameter once, under its first path. The tensors share the module's storage and history.
  TensorDict parameters() const;
  std::vector<Slot> slots();

  // Copies `values` into the parameters, converting the type. Throws Error(format) that lists every
  // parameter without a value, value without a parameter, and pair of different shapes, and then
  // has changed nothing.
  void load(const TensorDict& values);
  // Parameters of another type or on another device; those that collected gradients still do.
  void to(DType dtype, Device device = cpu_device);
  // Makes the parameters whose names match leaves that collect gradients (see
  // TensorDict::select), and no others. Throws Error(argument) if none does.
  void require_gradients(std::string_view pattern = "**");
  int64_t count() const;  // elements of all parameters, tied ones once
};

// The module as a tree, a line per parameter: name, shape, dtype.
std::string tree(const Module& module);

}  // namespace ingot::nn
