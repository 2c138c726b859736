#include "ingot/tensor/layout.h"

#include <array>
#include <optional>
#include <utility>

namespace ingot {
namespace {

// Strides of `x` under `shape` if no copy is needed. Walks both shapes from the right, matching
// groups of dimensions with equal products; a group of x must be contiguous in itself.
std::optional<Strides> strides_under(const Tensor& x, const Shape& shape) {
  if (x.elements() == 0 || x.dense()) {
    return dense_strides(shape);
  }
  Strides out = Shape::filled(shape.rank(), 0);
  int64_t to = shape.rank() - 1;
  int64_t group_size = 1;
  int64_t group_stride = 0;  // of the innermost dimension in the group
  for (int64_t from = x.rank() - 1; from >= 0; --from) {
    const int64_t size = x.shape()[from];
    if (group_size == 1) {
      group_stride = x.strides()[from];
    }
    group_size *= size;
    const bool continues = from > 0 && (x.shape()[from - 1] == 1 || group_size == 1 ||
                                        x.strides()[from - 1] == group_size * group_stride);
    if (continues) {
      continue;
    }
    int64_t covered = 1;
    while (to >= 0 && (covered < group_size || shape[to] == 1)) {
      out[to] = group_stride * covered;
      covered *= shape[to];
      --to;
    }
    if (covered != group_size) {
      return std::nullopt;
    }
    group_size = 1;
  }
  return out;
}

}  // namespace

bool can_reshape(const Tensor& x, const Shape& shape) {
  return x.elements() == shape.elements() && strides_under(x, shape).has_value();
}

Tensor reshaped(const Tensor& x, const Shape& shape) {
  check(x.elements() == shape.elements(), ErrorKind::shape, "reshape: element counts differ: x is ",
        x.shape(), " (", x.elements(), "), asked for ", shape, " (", shape.elements(), ")");
  const std::optional<Strides> strides = strides_under(x, shape);
  check(strides, ErrorKind::shape, "reshape: strides ", x.strides(), " of shape ", x.shape(),
        " do not allow ", shape, " without a copy; call contiguous first");
  return x.aliased(shape, *strides, x.offset());
}

Tensor transposed(const Tensor& x, int64_t dim0, int64_t dim1) {
  Shape shape = x.shape();
  Strides strides = x.strides();
  const int64_t a = shape.index(dim0);
  const int64_t b = shape.index(dim1);
  std::swap(shape[a], shape[b]);
  std::swap(strides[a], strides[b]);
  return x.aliased(shape, strides, x.offset());
}

Tensor permuted(const Tensor& x, std::span<const int64_t> order) {
  check(static_cast<int64_t>(order.size()) == x.rank(), ErrorKind::shape, "permute: ", order.size(),
        " dimensions named for shape ", x.shape());
  Shape shape;
  Strides strides;
  std::array<bool, Shape::max_rank> used{};
  for (const int64_t dim : order) {
    const int64_t i = x.shape().index(dim);
    check(!used[static_cast<size_t>(i)], ErrorKind::shape, "permute: dimension ", dim,
          " named twice");
    used[static_cast<size_t>(i)] = true;
    shape.push_back(x.shape()[i]);
    strides.push_back(x.strides()[i]);
  }
  return x.aliased(shape, strides, x.offset());
}

Tensor sliced(const Tensor& x, int64_t dim, int64_t begin, int64_t end, int64_t step) {
  const int64_t d = x.shape().index(dim);
  check(step >= 1 && begin >= 0 && begin <= end && end <= x.shape()[d], ErrorKind::shape,
        "slice: [", begin, ", ", end, ") with step ", step, " is outside dimension ", dim, " of ",
        x.shape());
  Shape shape = x.shape();
  Strides strides = x.strides();
  shape[d] = (end - begin + step - 1) / step;
  strides[d] *= step;
  return x.aliased(shape, strides, x.offset() + begin * x.strides()[d]);
}

Tensor expanded(const Tensor& x, const Shape& shape) {
  const int64_t extra = shape.rank() - x.rank();
  check(extra >= 0, ErrorKind::shape, "expand: ", x.shape(), " has more dimensions than ", shape);
  Strides strides = Shape::filled(shape.rank(), 0);
  for (int64_t i = 0; i < x.rank(); ++i) {
    const bool same = x.shape()[i] == shape[i + extra];
    check(same || x.shape()[i] == 1, ErrorKind::shape, "expand: ", x.shape(),
          " does not expand to ", shape, "; sizes must be equal or 1, counted from the right");
    strides[i + extra] = same ? x.strides()[i] : 0;
  }
  return x.aliased(shape, strides, x.offset());
}

}  // namespace ingot
