#include <functional>

#include "ingot/kernels/cpu/strided.h"
#include "ingot/kernels/elementwise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ingot/kernels/cpu/elementwise_binary.cpp"
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/highway.h>
#include "ingot/kernels/cpu/runs-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace {

struct Add {
  template <class D, class V = hn::VFromD<D>>
  static HWY_INLINE V f(D, V a, V b) {
    return hn::Add(a, b);
  }
};
struct Sub {
  template <class D, class V = hn::VFromD<D>>
  static HWY_INLINE V f(D, V a, V b) {
    return hn::Sub(a, b);
  }
};
struct Mul {
  template <class D, class V = hn::VFromD<D>>
  static HWY_INLINE V f(D, V a, V b) {
    return hn::Mul(a, b);
  }
};
struct Div {
  template <class D, class V = hn::VFromD<D>>
  static HWY_INLINE V f(D, V a, V b) {
    return hn::Div(a, b);
  }
};
struct Maximum {
  template <class D, class V = hn::VFromD<D>>
  static HWY_INLINE V f(D, V a, V b) {
    return hn::IfThenElse(hn::Or(hn::IsNaN(a), hn::Gt(a, b)), a, b);
  }
};
struct Minimum {
  template <class D, class V = hn::VFromD<D>>
  static HWY_INLINE V f(D, V a, V b) {
    return hn::IfThenElse(hn::Or(hn::IsNaN(a), hn::Lt(a, b)), a, b);
  }
};
struct ShareOfMaximum {
  template <class D, class V = hn::VFromD<D>>
  static HWY_INLINE V f(D d, V a, V b) {
    const V unequal = hn::IfThenElseZero(hn::Gt(a, b), hn::Set(d, 1));
    return hn::IfThenElse(hn::Eq(a, b), hn::Set(d, hn::TFromD<D>(0.5)), unequal);
  }
};
struct ShareOfMinimum {
  template <class D, class V = hn::VFromD<D>>
  static HWY_INLINE V f(D d, V a, V b) {
    return ShareOfMaximum::f(d, b, a);
  }
};

template <class C>
using BinaryBlock = void (*)(Piece<C> a, Piece<C> b, C* y, int64_t n);

template <class F, class C>
void block(Piece<C> a, Piece<C> b, C* y, int64_t n) {
  const Lanes<C> d;
  if (a.single) {
    const auto left = hn::Set(d, *a.data);
    const auto right = hn::Set(d, *b.data);
    each(d, n, [&](int64_t i, int64_t count) {
      store_some(d, F::f(d, left, b.single ? right : load_some(d, b.data + i, count)), y + i,
                 count);
    });
  } else if (b.single) {
    const auto right = hn::Set(d, *b.data);
    each(d, n, [&](int64_t i, int64_t count) {
      store_some(d, F::f(d, load_some(d, a.data + i, count), right), y + i, count);
    });
  } else {
    each(d, n, [&](int64_t i, int64_t count) {
      const auto left = load_some(d, a.data + i, count);
      const auto right = load_some(d, b.data + i, count);
      store_some(d, F::f(d, left, right), y + i, count);
    });
  }
}

template <class C>
BinaryBlock<C> block_of(Binary f) {
  switch (f) {
    case Binary::add: return block<Add, C>;
    case Binary::sub: return block<Sub, C>;
    case Binary::mul: return block<Mul, C>;
    case Binary::div: return block<Div, C>;
    case Binary::maximum: return block<Maximum, C>;
    case Binary::minimum: return block<Minimum, C>;
    case Binary::share_of_maximum: return block<ShareOfMaximum, C>;
    case Binary::share_of_minimum: return block<ShareOfMinimum, C>;
  }
  throw Error(ErrorKind::internal, "binary: not one of the known functions");
}

// One run. A constant operand is given as a piece; its pointer is null.
template <class T>
struct Operand {
  const T* data;
  int64_t stride;
  Piece<Compute<T>> constant;

  Piece<Compute<T>> at(int64_t i, int64_t n, Compute<T>* buffer) const {
    return data == nullptr ? constant : read(data + i * stride, stride, n, buffer);
  }
  bool direct() const { return data == nullptr || stride == 0 || stride == 1; }
};

template <class T>
void run(BinaryBlock<Compute<T>> f, const Operand<T>& a, const Operand<T>& b, T* y,
         int64_t y_stride, int64_t length) {
  using C = Compute<T>;
  HWY_ALIGN C buffers[3][buffer_size];
  const int64_t step = stretch<T>(a.direct() && b.direct() && y_stride == 1, length);
  for (int64_t i = 0; i < length; i += step) {
    const int64_t n = std::min(step, length - i);
    T* to = y + i * y_stride;
    C* values = place(to, y_stride, buffers[2]);
    f(a.at(i, n, buffers[0]), b.at(i, n, buffers[1]), values, n);
    write(values, to, y_stride, n);
  }
}

// Either operand may be a constant: then its view has no data and its value is used.
void binary_floats(Binary f, const ConstView& a, double a_value, const ConstView& b, double b_value,
                   const View& y) {
  visit_float(y.dtype, "elementwise", [&]<class T>() {
    using C = Compute<T>;
    const StridedLoop<3> loop(y.shape, {a.strides, b.strides, y.strides});
    const BinaryBlock<C> function = block_of<C>(f);
    const C constants[2] = {static_cast<C>(a_value), static_cast<C>(b_value)};
    loop.run([&](const std::array<int64_t, 3>& at, int64_t length) {
      const auto operand = [&](const ConstView& x, size_t which) {
        return Operand<T>{x.data == nullptr ? nullptr : x.as<T>() + at[which],
                          loop.inner_stride(which),
                          {&constants[which], true}};
      };
      run<T>(function, operand(a, 0), operand(b, 1), y.as<T>() + at[2], loop.inner_stride(2),
             length);
    });
  });
}

}  // namespace
}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {
namespace {

HWY_EXPORT(binary_floats);

// Integers wrap around, so they are added as unsigned ones.
template <class T, class F>
void integer_loop(const ConstView& a, const ConstView& b, const View& y, F f) {
  const StridedLoop<3> loop(y.shape, {a.strides, b.strides, y.strides});
  const int64_t sa = loop.inner_stride(0);
  const int64_t sb = loop.inner_stride(1);
  const int64_t sy = loop.inner_stride(2);
  loop.run([&](const std::array<int64_t, 3>& at, int64_t length) {
    const T* left = a.as<T>() + at[0];
    const T* right = b.as<T>() + at[1];
    T* to = y.as<T>() + at[2];
    for (int64_t i = 0; i < length; ++i) {
      to[i * sy] = f(left[i * sa], right[i * sb]);
    }
  });
}

template <class T>
void binary_integers(Binary f, const ConstView& a, const ConstView& b, const View& y) {
  using U = std::make_unsigned_t<T>;
  const auto wrapping = [](auto operation) {
    return [operation](T p, T q) {
      return static_cast<T>(operation(static_cast<U>(p), static_cast<U>(q)));
    };
  };
  switch (f) {
    case Binary::add: return integer_loop<T>(a, b, y, wrapping(std::plus<U>()));
    case Binary::sub: return integer_loop<T>(a, b, y, wrapping(std::minus<U>()));
    case Binary::mul: return integer_loop<T>(a, b, y, wrapping(std::multiplies<U>()));
    case Binary::maximum: return integer_loop<T>(a, b, y, [](T p, T q) { return std::max(p, q); });
    case Binary::minimum: return integer_loop<T>(a, b, y, [](T p, T q) { return std::min(p, q); });
    default: throw Error(ErrorKind::internal, "binary: no such function of integers");
  }
}

ConstView repeated(const void* value, const View& like) {
  return {value, like.shape, Shape::filled(like.rank(), 0), like.dtype};
}

}  // namespace

void binary(const Cpu&, Binary f, const ConstView& a, const ConstView& b, const View& y) {
  if (y.elements() == 0) {
    return;
  }
  switch (y.dtype) {
    case DType::i32: return binary_integers<int32_t>(f, a, b, y);
    case DType::i64: return binary_integers<int64_t>(f, a, b, y);
    default: HWY_DYNAMIC_DISPATCH(binary_floats)(f, a, 0, b, 0, y);
  }
}

void binary(const Cpu& on, Binary f, const ConstView& a, double b, const View& y) {
  const auto small = static_cast<int32_t>(is_float(y.dtype) ? 0 : b);
  const auto large = static_cast<int64_t>(is_float(y.dtype) ? 0 : b);
  switch (y.dtype) {
    case DType::i32: return binary(on, f, a, repeated(&small, y), y);
    case DType::i64: return binary(on, f, a, repeated(&large, y), y);
    default: break;
  }
  if (y.elements() != 0) {
    HWY_DYNAMIC_DISPATCH(binary_floats)(f, a, 0, repeated(nullptr, y), b, y);
  }
}

void binary(const Cpu& on, Binary f, double a, const ConstView& b, const View& y) {
  const auto small = static_cast<int32_t>(is_float(y.dtype) ? 0 : a);
  const auto large = static_cast<int64_t>(is_float(y.dtype) ? 0 : a);
  switch (y.dtype) {
    case DType::i32: return binary(on, f, repeated(&small, y), b, y);
    case DType::i64: return binary(on, f, repeated(&large, y), b, y);
    default: break;
  }
  if (y.elements() != 0) {
    HWY_DYNAMIC_DISPATCH(binary_floats)(f, repeated(nullptr, y), a, b, 0, y);
  }
}

}  // namespace ingot::kernels
#endif
