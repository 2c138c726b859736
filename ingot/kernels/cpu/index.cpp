#include "ingot/kernels/index.h"

#include <cstring>
#include <type_traits>

#include "ingot/kernels/cpu/parallel.h"

namespace ingot::kernels {
namespace {

template <class F>
void visit_index(DType type, F&& f) {
  if (type == DType::i32) {
    f.template operator()<int32_t>();
  } else {
    f.template operator()<int64_t>();
  }
}

// Elements that are only moved: their size is all that matters.
template <class F>
void visit_bits(DType type, F&& f) {
  switch (size_of(type)) {
    case 1: return f.template operator()<uint8_t>();
    case 2: return f.template operator()<uint16_t>();
    case 4: return f.template operator()<uint32_t>();
    default: return f.template operator()<uint64_t>();
  }
}

// f<Source, Sum>: what is added, and what it is added in.
template <class F>
void visit_sums(DType source, F&& f) {
  if (source == DType::i64) {
    f.template operator()<int64_t, int64_t>();
  } else if (source == DType::f64) {
    f.template operator()<double, double>();
  } else {
    visit_float(source, "scatter_add", [&]<class T>() { f.template operator()<T, float>(); });
  }
}

int64_t grain_for(int64_t work_each) {
  return std::max<int64_t>(1, 8192 / std::max<int64_t>(work_each, 1));
}

}  // namespace

int64_t first_outside(const Cpu&, const ConstView& index, int64_t size) {
  int64_t found = -1;
  visit_index(index.dtype, [&]<class I>() {
    const I* at = index.as<I>();
    const int64_t count = index.elements();
    bool any = false;  // without a branch first: it is almost always none
    for (int64_t i = 0; i < count; ++i) {
      any |= static_cast<uint64_t>(static_cast<int64_t>(at[i])) >= static_cast<uint64_t>(size);
    }
    for (int64_t i = 0; i < count && any && found < 0; ++i) {
      found = at[i] < 0 || at[i] >= size ? i : -1;
    }
  });
  return found;
}

void gather(const Cpu&, const ConstView& x, const ConstView& index, const View& y) {
  const int64_t n = x.shape[1];
  const int64_t m = index.shape[1];
  const int64_t b = index.shape[2];
  visit_index(index.dtype, [&]<class I>() {
    visit_bits(x.dtype, [&]<class Bits>() {
      parallel_for(index.shape[0] * m, grain_for(b), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const Bits* from = x.as<Bits>() + row / m * n * b;
          for (int64_t j = 0; j < b; ++j) {
            y.as<Bits>()[row * b + j] = from[index.as<I>()[row * b + j] * b + j];
          }
        }
      });
    });
  });
}

// Each thread owns whole lanes (a, b) of y, so no two write to one place, and every place sees its
// parts in the order of m.
void scatter_add(const Cpu&, const ConstView& index, const ConstView& source, const View& y) {
  const int64_t n = y.shape[1];
  const int64_t m = index.shape[1];
  const int64_t b = index.shape[2];
  constexpr int64_t width = 64;  // neighbouring lanes walked together
  const int64_t tiles = (b + width - 1) / width;
  visit_index(index.dtype, [&]<class I>() {
    visit_sums(source.dtype, [&]<class T, class Sum>() {
      parallel_for(index.shape[0] * tiles, grain_for(m * std::min(b, width)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t t = begin; t < end; ++t) {
                       const int64_t a = t / tiles;
                       const int64_t first = t % tiles * width;
                       for (int64_t i = 0; i < m; ++i) {
                         for (int64_t j = first; j < std::min(first + width, b); ++j) {
                           const int64_t at = (a * m + i) * b + j;
                           y.as<Sum>()[(a * n + index.as<I>()[at]) * b + j] +=
                               static_cast<Sum>(source.as<T>()[at]);
                         }
                       }
                     }
                   });
    });
  });
}

void select(const Cpu&, const ConstView& x, const ConstView& index, const View& y) {
  const int64_t n = x.shape[1];
  const int64_t m = index.shape[0];
  const int64_t bytes = x.shape[2] * size_of(x.dtype);
  visit_index(index.dtype, [&]<class I>() {
    parallel_for(x.shape[0] * m, grain_for(bytes / 4), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t from = row / m * n + index.as<I>()[row % m];
        std::memcpy(y.as<std::byte>() + row * bytes, x.as<std::byte>() + from * bytes,
                    static_cast<size_t>(bytes));
      }
    });
  });
}

// Each thread owns columns of y.
void select_add(const Cpu&, const ConstView& index, const ConstView& source, const View& y) {
  const int64_t n = y.shape[1];
  const int64_t m = index.shape[0];
  const int64_t b = y.shape[2];
  constexpr int64_t width = 256;
  const int64_t tiles = (b + width - 1) / width;
  visit_index(index.dtype, [&]<class I>() {
    visit_sums(source.dtype, [&]<class T, class Sum>() {
      parallel_for(y.shape[0] * tiles, grain_for(m * std::min(b, width)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t t = begin; t < end; ++t) {
                       const int64_t a = t / tiles;
                       const int64_t first = t % tiles * width;
                       const int64_t last = std::min(first + width, b);
                       for (int64_t i = 0; i < m; ++i) {
                         const T* from = source.as<T>() + (a * m + i) * b;
                         Sum* to = y.as<Sum>() + (a * n + index.as<I>()[i]) * b;
                         for (int64_t j = first; j < last; ++j) {
                           to[j] += static_cast<Sum>(from[j]);
                         }
                       }
                     }
                   });
    });
  });
}

void one_hot(const Cpu&, const ConstView& index, const View& y) {
  const int64_t n = y.shape[1];
  visit_index(index.dtype, [&]<class I>() {
    visit_any(y.dtype, [&]<class T>() {
      for (int64_t r = 0; r < index.elements(); ++r) {
        y.as<T>()[r * n + index.as<I>()[r]] = static_cast<T>(1.0F);
      }
    });
  });
}

}  // namespace ingot::kernels
