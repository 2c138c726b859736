#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <span>

namespace ingot {

// Up to eight sizes (or strides), held in place. A scalar's shape is empty.
class Shape {
 public:
  static constexpr int64_t max_rank = 8;

  Shape() = default;
  Shape(std::initializer_list<int64_t> sizes);
  explicit Shape(std::span<const int64_t> sizes);
  static Shape filled(int64_t rank, int64_t value);

  int64_t rank() const { return rank_; }
  int64_t operator[](int64_t i) const { return sizes_[static_cast<size_t>(i)]; }
  int64_t& operator[](int64_t i) { return sizes_[static_cast<size_t>(i)]; }

  // The size of dimension `dim`; a negative one counts from the end. Throws Error(shape) if absent.
  int64_t size(int64_t dim) const;
  // `dim` in [0, rank), with negative ones resolved. Throws Error(shape).
  int64_t index(int64_t dim) const;

  int64_t elements() const;  // the product of all sizes; 1 for a scalar
  void push_back(int64_t size);
  void insert(int64_t position, int64_t size);
  void erase(int64_t position);

  const int64_t* begin() const { return sizes_.data(); }
  const int64_t* end() const { return sizes_.data() + rank_; }
  friend bool operator==(const Shape& a, const Shape& b);

 private:
  std::array<int64_t, max_rank> sizes_{};
  int64_t rank_ = 0;
};

// Elements (not bytes) from one index to the next, per dimension.
using Strides = Shape;

std::ostream& operator<<(std::ostream& out, const Shape& shape);  // "[4, 8]"

// Strides of a dense row-major layout: the last dimension is 1.
Strides dense_strides(const Shape& shape);
bool is_dense(const Shape& shape, const Strides& strides);

// NumPy's broadcasting: aligned at the right, sizes equal or 1. Throws Error(shape) naming `op`.
Shape broadcast(const Shape& a, const Shape& b, const char* op);

}  // namespace ingot
