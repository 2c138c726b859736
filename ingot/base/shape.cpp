#include "ingot/base/shape.h"

#include <algorithm>
#include <ostream>

#include "ingot/base/error.h"

namespace ingot {

Shape::Shape(std::initializer_list<int64_t> sizes)
    : Shape(std::span<const int64_t>(sizes.begin(), sizes.size())) {}

Shape::Shape(std::span<const int64_t> sizes) {
  check(static_cast<int64_t>(sizes.size()) <= max_rank, ErrorKind::shape,
        "shape: at most 8 dimensions: got ", sizes.size());
  std::copy(sizes.begin(), sizes.end(), sizes_.begin());
  rank_ = static_cast<int64_t>(sizes.size());
}

Shape Shape::filled(int64_t rank, int64_t value) {
  Shape out;
  for (int64_t i = 0; i < rank; ++i) {
    out.push_back(value);
  }
  return out;
}

int64_t Shape::size(int64_t dim) const { return (*this)[index(dim)]; }

int64_t Shape::index(int64_t dim) const {
  check(dim >= -rank_ && dim < rank_, ErrorKind::shape, "shape: dimension ", dim,
        " is outside a shape of rank ", rank_, ": ", *this);
  return dim < 0 ? dim + rank_ : dim;
}

int64_t Shape::elements() const {
  int64_t count = 1;
  for (const int64_t size : *this) {
    count *= size;
  }
  return count;
}

void Shape::push_back(int64_t size) { insert(rank_, size); }

void Shape::insert(int64_t position, int64_t size) {
  check(rank_ < max_rank, ErrorKind::shape, "shape: at most 8 dimensions: adding one to ", *this);
  for (int64_t i = rank_; i > position; --i) {
    (*this)[i] = (*this)[i - 1];
  }
  (*this)[position] = size;
  ++rank_;
}

void Shape::erase(int64_t position) {
  for (int64_t i = position; i + 1 < rank_; ++i) {
    (*this)[i] = (*this)[i + 1];
  }
  --rank_;
  (*this)[rank_] = 0;
}

bool operator==(const Shape& a, const Shape& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  out << '[';
  for (int64_t i = 0; i < shape.rank(); ++i) {
    out << (i == 0 ? "" : ", ") << shape[i];
  }
  return out << ']';
}

Strides dense_strides(const Shape& shape) {
  Strides strides = Shape::filled(shape.rank(), 1);
  for (int64_t i = shape.rank() - 2; i >= 0; --i) {
    strides[i] = strides[i + 1] * std::max<int64_t>(shape[i + 1], 1);
  }
  return strides;
}

bool is_dense(const Shape& shape, const Strides& strides) {
  int64_t expected = 1;
  for (int64_t i = shape.rank() - 1; i >= 0; --i) {
    if (shape[i] == 0) {
      return true;
    }
    if (shape[i] != 1 && strides[i] != expected) {
      return false;
    }
    expected *= shape[i];
  }
  return true;
}

Shape broadcast(const Shape& a, const Shape& b, const char* op) {
  const int64_t rank = std::max(a.rank(), b.rank());
  Shape out = Shape::filled(rank, 1);
  for (int64_t i = 1; i <= rank; ++i) {
    const int64_t sa = i <= a.rank() ? a[a.rank() - i] : 1;
    const int64_t sb = i <= b.rank() ? b[b.rank() - i] : 1;
    check(sa == sb || sa == 1 || sb == 1, ErrorKind::shape, op, ": shapes do not broadcast: a is ",
          a, ", b is ", b, "; sizes must be equal or 1, counted from the right");
    out[rank - i] = sa == 1 ? sb : sa;
  }
  return out;
}

}  // namespace ingot
