// Runs of strided elements of any floating-point dtype as dense values of their compute type: the
// memory itself where it already is that, otherwise a converted copy in a small buffer. So an
// elementwise function is compiled for float and double only. Included once per Highway target.
#if defined(INGOT_KERNELS_CPU_RUNS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef INGOT_KERNELS_CPU_RUNS_INL_H_
#undef INGOT_KERNELS_CPU_RUNS_INL_H_
#else
#define INGOT_KERNELS_CPU_RUNS_INL_H_
#endif

#include <algorithm>

#include "ingot/kernels/cpu/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {

// Elements that pass through a buffer at a time: a few of these stay in the first-level cache.
inline constexpr int64_t buffer_size = 512;

// Dense values, or one value that stands for all.
template <class C>
struct Piece {
  const C* data;
  bool single;
};

// p[0], p[stride], … in C.
template <class T>
HWY_INLINE Piece<Compute<T>> read(const T* p, int64_t stride, int64_t n, Compute<T>* buffer) {
  using C = Compute<T>;
  if (stride == 0 || n == 1) {
    buffer[0] = static_cast<C>(*p);
    return {buffer, true};
  }
  if (stride != 1) {
    for (int64_t i = 0; i < n; ++i) {
      buffer[i] = static_cast<C>(p[i * stride]);
    }
    return {buffer, false};
  }
  if constexpr (std::is_same_v<T, C>) {
    return {p, false};
  } else {
    const Lanes<T> d;
    each(d, n, [&](int64_t i, int64_t count) {
      store_some(d, load_some(d, p + i, count), buffer + i, count);
    });
    return {buffer, false};
  }
}

// The same with a repeated element written out.
template <class T>
HWY_INLINE const Compute<T>* read_all(const T* p, int64_t stride, int64_t n, Compute<T>* buffer) {
  const Piece<Compute<T>> piece = read(p, stride, n, buffer);
  if (piece.single) {
    std::fill_n(buffer, n, *piece.data);
  }
  return piece.data;
}

// Where results for p[0], p[stride], … go: the memory itself, or the buffer that write() stores.
template <class T>
HWY_INLINE Compute<T>* place(T* p, int64_t stride, Compute<T>* buffer) {
  if constexpr (std::is_same_v<T, Compute<T>>) {
    return stride == 1 ? p : buffer;
  } else {
    return buffer;
  }
}
template <class T>
HWY_INLINE void write(const Compute<T>* values, T* p, int64_t stride, int64_t n) {
  if constexpr (std::is_same_v<T, Compute<T>>) {
    if (values == p) {
      return;
    }
  }
  if (stride == 1) {
    const Lanes<T> d;
    each(d, n, [&](int64_t i, int64_t count) {
      store_some(d, load_some(d, values + i, count), p + i, count);
    });
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    p[i * stride] = static_cast<T>(values[i]);
  }
}

// The longest stretch to process at once: everything if no operand needs the buffer.
template <class T>
HWY_INLINE int64_t stretch(bool direct, int64_t length) {
  return direct && std::is_same_v<T, Compute<T>> ? length : std::min(length, buffer_size);
}

}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
