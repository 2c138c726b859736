// The elementwise kernels that choose rather than compute: compare and where.

#include <functional>
#include <type_traits>

#include "ingot/kernels/cpu/strided.h"
#include "ingot/kernels/elementwise.h"

namespace ingot::kernels {
namespace {

// What a value is compared as.
template <class T>
auto ordered(T value) {
  if constexpr (std::is_same_v<T, BF16> || std::is_same_v<T, F16>) {
    return static_cast<float>(value);
  } else {
    return value;
  }
}

template <class T, class F>
void compare_run(const T* a, int64_t sa, const T* b, int64_t sb, bool* y, int64_t sy,
                 int64_t length, F f) {
  if (sa == 1 && sb == 1 && sy == 1) {  // strides the compiler knows: vector code
    for (int64_t i = 0; i < length; ++i) {
      y[i] = f(ordered(a[i]), ordered(b[i]));
    }
    return;
  }
  if (sa == 1 && sb == 0 && sy == 1) {
    const auto right = ordered(*b);
    for (int64_t i = 0; i < length; ++i) {
      y[i] = f(ordered(a[i]), right);
    }
    return;
  }
  for (int64_t i = 0; i < length; ++i) {
    y[i * sy] = f(ordered(a[i * sa]), ordered(b[i * sb]));
  }
}

template <class F>
void compare_all(const ConstView& a, const ConstView& b, const View& y, F f) {
  const StridedLoop<3> loop(y.shape, {a.strides, b.strides, y.strides});
  visit_any(a.dtype, [&]<class T>() {
    loop.run([&](const std::array<int64_t, 3>& at, int64_t length) {
      compare_run(a.as<T>() + at[0], loop.inner_stride(0), b.as<T>() + at[1], loop.inner_stride(1),
                  y.as<bool>() + at[2], loop.inner_stride(2), length, f);
    });
  });
}

// Both sides are read whatever the condition says: vector code, without branches.
template <class Bits>
void where_run(const bool* condition, const Bits* a, bool a_runs, const Bits* b, bool b_runs,
               Bits* y, int64_t length) {
  const auto choose = [&](auto left, auto right) {
    for (int64_t i = 0; i < length; ++i) {
      const Bits p = left(i);
      const Bits q = right(i);
      const auto mask = static_cast<Bits>(-static_cast<int64_t>(condition[i]));  // all ones or none
      y[i] = static_cast<Bits>((p & mask) | (q & ~mask));
    }
  };
  const auto run = [](const Bits* from) { return [from](int64_t i) { return from[i]; }; };
  const auto same = [](const Bits* from) { return [value = *from](int64_t) { return value; }; };
  if (a_runs && b_runs) {
    choose(run(a), run(b));
  } else if (a_runs) {
    choose(run(a), same(b));
  } else if (b_runs) {
    choose(same(a), run(b));
  } else {
    choose(same(a), same(b));
  }
}

// Elements are only moved, so their size is all that matters.
template <class Bits>
void where_sized(const ConstView& condition, const ConstView& a, const ConstView& b,
                 const View& y) {
  const StridedLoop<4> loop(y.shape, {condition.strides, a.strides, b.strides, y.strides});
  const int64_t sc = loop.inner_stride(0);
  const int64_t sa = loop.inner_stride(1);
  const int64_t sb = loop.inner_stride(2);
  const int64_t sy = loop.inner_stride(3);
  loop.run([&](const std::array<int64_t, 4>& at, int64_t length) {
    const bool* take_a = condition.as<bool>() + at[0];
    const Bits* from_a = a.as<Bits>() + at[1];
    const Bits* from_b = b.as<Bits>() + at[2];
    Bits* to = y.as<Bits>() + at[3];
    if (sc == 1 && sy == 1 && sa <= 1 && sb <= 1 && sa >= 0 && sb >= 0) {
      where_run(take_a, from_a, sa == 1, from_b, sb == 1, to, length);
      return;
    }
    for (int64_t i = 0; i < length; ++i) {
      to[i * sy] = take_a[i * sc] ? from_a[i * sa] : from_b[i * sb];
    }
  });
}

}  // namespace

void compare(const Cpu&, Comparison f, const ConstView& a, const ConstView& b, const View& y) {
  switch (f) {
    case Comparison::equal: return compare_all(a, b, y, std::equal_to<>());
    case Comparison::not_equal: return compare_all(a, b, y, std::not_equal_to<>());
    case Comparison::less: return compare_all(a, b, y, std::less<>());
    case Comparison::less_equal: return compare_all(a, b, y, std::less_equal<>());
  }
}

void where(const Cpu&, const ConstView& condition, const ConstView& a, const ConstView& b,
           const View& y) {
  switch (size_of(y.dtype)) {
    case 1: return where_sized<uint8_t>(condition, a, b, y);
    case 2: return where_sized<uint16_t>(condition, a, b, y);
    case 4: return where_sized<uint32_t>(condition, a, b, y);
    default: return where_sized<uint64_t>(condition, a, b, y);
  }
}

}  // namespace ingot::kernels
