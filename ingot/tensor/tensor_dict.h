#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ingot/tensor/tensor.h"

namespace ingot {

// Ordered name → Tensor: the one container of parameters, gradients, optimizer state and
// checkpoints. Names are paths ("layers.3.attention.wq.weight"). Copies share the tensors' storage.
class TensorDict {
 public:
  using Entry = std::pair<std::string, Tensor>;

  // Throws Error(argument) naming the entry if it is already there.
  void add(std::string name, Tensor tensor);
  bool contains(std::string_view name) const;
  // Throws Error(argument) naming the nearest name present.
  const Tensor& at(std::string_view name) const&;
  Tensor& at(std::string_view name) &;
  Tensor at(std::string_view name) && { return at(name); }  // of a dict that is about to go

  int64_t size() const { return static_cast<int64_t>(entries_.size()); }
  bool empty() const { return entries_.empty(); }
  int64_t elements() const;
  int64_t bytes() const;

  // The entries whose names match a pattern: `*` any characters but '.', `**` any, `?` one.
  TensorDict select(std::string_view pattern) const;
  TensorDict renamed(const std::function<std::string(const std::string&)>& rename) const;
  TensorDict mapped(const std::function<Tensor(const std::string&, const Tensor&)>& f) const;
  // Adds every entry of `other`, under prefix + name. Throws Error(argument) on a duplicate.
  void merge(const TensorDict& other, std::string_view prefix = "");

  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  auto begin() { return entries_.begin(); }
  auto end() { return entries_.end(); }

 private:
  std::vector<Entry> entries_;
  std::unordered_map<std::string, size_t> index_;
};

// Whether `name` matches a TensorDict pattern.
bool matches(std::string_view pattern, std::string_view name);

}  // namespace ingot
