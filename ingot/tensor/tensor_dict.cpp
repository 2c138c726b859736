#include "ingot/tensor/tensor_dict.h"

#include "ingot/base/edit_distance.h"

namespace ingot {

void TensorDict::add(std::string name, Tensor tensor) {
  const auto [at, added] = index_.emplace(name, entries_.size());
  check(added, ErrorKind::argument, "tensor dict: '", name, "' is already there");
  entries_.emplace_back(std::move(name), std::move(tensor));
}

bool TensorDict::contains(std::string_view name) const {
  return index_.contains(std::string(name));
}

const Tensor& TensorDict::at(std::string_view name) const& {
  const auto found = index_.find(std::string(name));
  if (found == index_.end()) {
    std::vector<std::string> names;
    for (const Entry& entry : entries_) {
      names.push_back(entry.first);
    }
    throw Error(ErrorKind::argument,
                concat("tensor dict: no '", name, "'; the nearest of its ", names.size(),
                       " names is '", nearest_word(name, names), "'"));
  }
  return entries_[found->second].second;
}

Tensor& TensorDict::at(std::string_view name) & {
  return const_cast<Tensor&>(std::as_const(*this).at(name));
}

int64_t TensorDict::elements() const {
  int64_t count = 0;
  for (const Entry& entry : entries_) {
    count += entry.second.elements();
  }
  return count;
}

int64_t TensorDict::bytes() const {
  int64_t count = 0;
  for (const Entry& entry : entries_) {
    count += entry.second.bytes();
  }
  return count;
}

TensorDict TensorDict::select(std::string_view pattern) const {
  TensorDict out;
  for (const Entry& entry : entries_) {
    if (matches(pattern, entry.first)) {
      out.add(entry.first, entry.second);
    }
  }
  return out;
}

TensorDict TensorDict::renamed(const std::function<std::string(const std::string&)>& rename) const {
  TensorDict out;
  for (const Entry& entry : entries_) {
    out.add(rename(entry.first), entry.second);
  }
  return out;
}

TensorDict TensorDict::mapped(
    const std::function<Tensor(const std::string&, const Tensor&)>& f) const {
  TensorDict out;
  for (const Entry& entry : entries_) {
    out.add(entry.first, f(entry.first, entry.second));
  }
  return out;
}

void TensorDict::merge(const TensorDict& other, std::string_view prefix) {
  for (const Entry& entry : other) {
    add(std::string(prefix) + entry.first, entry.second);
  }
}

bool matches(std::string_view pattern, std::string_view name) {
  if (pattern.empty()) {
    return name.empty();
  }
  const bool any = pattern.starts_with("**");
  if (any || pattern.front() == '*') {
    const std::string_view rest = pattern.substr(any ? 2 : 1);
    for (size_t taken = 0;; ++taken) {
      if (matches(rest, name.substr(taken))) {
        return true;
      }
      if (taken == name.size() || (!any && name[taken] == '.')) {
        return false;
      }
    }
  }
  return !name.empty() && (pattern.front() == '?' || pattern.front() == name.front()) &&
         matches(pattern.substr(1), name.substr(1));
}

}  // namespace ingot
