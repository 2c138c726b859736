#include "ingot/kernels/dropout.h"

#include <algorithm>
#include <type_traits>

#include "ingot/kernels/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ingot/kernels/cpu/dropout.cpp"
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/highway.h>
#include "ingot/kernels/cpu/lanes-inl.h"
#include "ingot/kernels/cpu/philox-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace {

constexpr int64_t piece = 1024;  // elements whose words are drawn at once; whole blocks of 4

// y_i = words_i ≥ threshold ? scale x_i : 0.
template <class T>
void keep_some(const T* x, const uint32_t* words, uint32_t threshold, Compute<T> scale, T* y,
               int64_t count) {
  if constexpr (std::is_same_v<T, double>) {
    for (int64_t i = 0; i < count; ++i) {
      y[i] = words[i] >= threshold ? x[i] * scale : 0;
    }
  } else {
    const hn::ScalableTag<float> d;
    const hn::RebindToUnsigned<decltype(d)> d32;
    each(d, count, [&](int64_t i, int64_t n) HWY_ATTR {
      // `words` has room for a whole piece, so reading past `count` is safe.
      const auto dropped = hn::Lt(hn::LoadU(d32, words + i), hn::Set(d32, threshold));
      const auto scaled = hn::Mul(load_some(d, x + i, n), hn::Set(d, scale));
      store_some(d, hn::IfThenZeroElse(hn::RebindMask(d, dropped), scaled), y + i, n);
    });
  }
}

void Dropout(const ConstView& x, double p, const RandomKey& key, const View& y) {
  const Philox random(key);
  // Below 2³² because p < 1 and doubles below 1 are at least 2⁻⁵³ away from it.
  const auto threshold = static_cast<uint32_t>(p * 0x1p32);
  visit_float(x.dtype, "dropout", [&]<class T>() {
    const auto scale = static_cast<Compute<T>>(1 / (1 - p));
    parallel_for(x.elements(), 16 * piece, [&](int64_t begin, int64_t end) {
      HWY_ALIGN uint32_t words[piece];
      for (int64_t i = begin; i < end; i += piece) {
        const int64_t count = std::min(piece, end - i);
        philox_words(random, static_cast<uint64_t>(i / 4), (count + 3) / 4, words);
        keep_some(x.as<T>() + i, words, threshold, scale, y.as<T>() + i, count);
      }
    });
  });
}

}  // namespace
}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {

HWY_EXPORT(Dropout);

void dropout(const Cpu&, const ConstView& x, double p, const RandomKey& key, const View& y) {
  HWY_DYNAMIC_DISPATCH(Dropout)(x, p, key, y);
}

}  // namespace ingot::kernels
#endif
