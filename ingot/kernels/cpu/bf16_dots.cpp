#include "ingot/kernels/cpu/bf16_dots.h"

#include "ingot/base/error.h"

#if defined(__x86_64__)
#include <immintrin.h>

// Highway 1.0 has no operation for these instructions.
#define INGOT_BF16_INSTRUCTIONS \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")))

namespace ingot::kernels {
namespace {

constexpr int64_t lanes = 32;
// Parts of a sum, so that its additions do not wait for one another.
constexpr int parts = 4;

INGOT_BF16_INSTRUCTIONS inline __m512bh load(const BF16* p) {
  return reinterpret_cast<__m512bh>(_mm512_loadu_si512(p));
}

// The first n < lanes elements; 0 beyond.
INGOT_BF16_INSTRUCTIONS inline __m512bh load_some(const BF16* p, int64_t n) {
  const auto mask = static_cast<__mmask32>((uint64_t{1} << n) - 1);
  return reinterpret_cast<__m512bh>(_mm512_maskz_loadu_epi16(mask, p));
}

INGOT_BF16_INSTRUCTIONS inline __m256 halves_added(__m512 v) {
  // Masked, since GCC 12 warns of its own header otherwise.
  return _mm512_maskz_extractf32x8_ps(0xff, v, 0) + _mm512_maskz_extractf32x8_ps(0xff, v, 1);
}

// out[i] = the sum of v[i]'s lanes, each in the same order.
INGOT_BF16_INSTRUCTIONS inline void sums_of_lanes(const __m512* v, float* out) {
  const __m256 pairs = _mm256_hadd_ps(halves_added(v[0]), halves_added(v[1]));
  const __m256 others = _mm256_hadd_ps(halves_added(v[2]), halves_added(v[3]));
  const __m256 fours = _mm256_hadd_ps(pairs, others);
  _mm_storeu_ps(out, _mm256_castps256_ps128(fours) + _mm256_extractf128_ps(fours, 1));
}

template <int M>
INGOT_BF16_INSTRUCTIONS void dots(const BF16* const* a, const BF16* b, int64_t inner, float* sums) {
  __m512 totals[M * parts];
  for (__m512& total : totals) {
    total = _mm512_setzero_ps();
  }
  int64_t k = 0;
  for (; k + parts * lanes <= inner; k += parts * lanes) {
    for (int part = 0; part < parts; ++part) {
      const __m512bh right = load(b + k + part * lanes);
      for (int m = 0; m < M; ++m) {
        __m512& total = totals[m * parts + part];
        total = _mm512_dpbf16_ps(total, load(a[m] + k + part * lanes), right);
      }
    }
  }
  for (; k < inner; k += lanes) {
    const int64_t n = inner - k < lanes ? inner - k : lanes;
    const __m512bh right = n < lanes ? load_some(b + k, n) : load(b + k);
    for (int m = 0; m < M; ++m) {
      const __m512bh left = n < lanes ? load_some(a[m] + k, n) : load(a[m] + k);
      totals[m * parts] = _mm512_dpbf16_ps(totals[m * parts], left, right);
    }
  }
  __m512 whole[most_dots];
  for (int m = 0; m < most_dots; ++m) {
    const __m512* t = totals + m * parts;
    whole[m] = m < M ? (t[0] + t[1]) + (t[2] + t[3]) : _mm512_setzero_ps();
  }
  sums_of_lanes(whole, sums);
}

}  // namespace

void bf16_dots(int rows, int columns, const BF16* const* a, const BF16* b, int64_t step,
               int64_t inner, float (*sums)[most_dots]) {
  for (int n = 0; n < columns; ++n) {
    switch (rows) {
      case 1: dots<1>(a, b + n * step, inner, sums[n]); break;
      case 2: dots<2>(a, b + n * step, inner, sums[n]); break;
      case 3: dots<3>(a, b + n * step, inner, sums[n]); break;
      default: dots<most_dots>(a, b + n * step, inner, sums[n]);
    }
  }
}

}  // namespace ingot::kernels

#else

namespace ingot::kernels {

void bf16_dots(int /*rows*/, int /*columns*/, const BF16* const* /*a*/, const BF16* /*b*/,
               int64_t /*step*/, int64_t /*inner*/, float (* /*sums*/)[most_dots]) {
  check(false, ErrorKind::internal, "bf16_dots: this processor has no such instructions");
}

}  // namespace ingot::kernels

#endif
