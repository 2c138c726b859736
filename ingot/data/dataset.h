#pragma once

#include <cstdint>
#include <vector>

namespace ingot {

// Where a sample comes from: items begin … end − 1 of a document, bytes or tokens.
struct Origin {
  int64_t document = 0;
  int64_t begin = 0;
  int64_t end = 0;

  friend bool operator==(const Origin&, const Origin&) = default;
};

// Samples by number. get(i) is a function of i alone: equal on every run, thread and rank. i counts
// on across epochs, i = epoch · size() + j, so that one integer says where a run stands. A dataset
// that is the same in every epoch takes i modulo size().
template <class Sample>
struct Dataset {
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;  // samples in an epoch
  virtual Sample get(int64_t i) const = 0;
  // What get(i) is made from, in order; empty where that is not known.
  virtual std::vector<Origin> origins(int64_t /*i*/) const { return {}; }
};

// Token ids of one row: T inputs and, one further, T targets make T + 1 of them.
using TokenWindow = std::vector<int64_t>;

}  // namespace ingot
