#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "ingot/quant/blocks.h"

namespace ingot::quant {

// Scales for x ≈ d·level(q) with the least Σ(x − d·level)². A grid says which levels there are; it
// has `low` and `high`, the outermost ones, nearest(v), the level closest to v, and `spacing`, how
// far apart the scales are that a search tries, as a share of the scale. Differences are fused, so
// that only what is exact counts as exact, and a search ends alike however it is compiled.

template <int first, int last>
struct EvenGrid {  // the whole numbers first … last
  static constexpr float low = first;
  static constexpr float high = last;
  static constexpr float spacing = std::min(0.02F, 1.0F / static_cast<float>(last + 1));
  static float nearest(float v) { return std::clamp(std::nearbyint(v), low, high); }
};

// 1/d, and 0 where d is too small to divide by: every value then takes the level nearest to 0.
inline float inverse_of(float d) { return std::abs(d) < 1e-30F ? 0.0F : 1.0F / d; }

template <class Grid, int n>
float squared_error(const float* x, float d) {
  const float inverse = inverse_of(d);
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int i = 0; i < n; ++i) {
    const float rest = std::fma(-d, Grid::nearest(x[i] * inverse), x[i]);
    sum = std::fma(rest, rest, sum);
  }
  return sum;
}

// The scale that fits best once the levels are those nearest under `d`: Σ x·level / Σ level².
template <class Grid, int n>
float refitted(const float* x, float d) {
  const float inverse = inverse_of(d);
  float products = 0;
  float squares = 0;
#pragma omp simd reduction(+ : products, squares)
  for (int i = 0; i < n; ++i) {
    const float level = Grid::nearest(x[i] * inverse);
    products = std::fma(x[i], level, products);
    squares = std::fma(level, level, squares);
  }
  return squares > 0 ? products / squares : 0.0F;
}

template <int n>
float outermost(const float* x) {  // the value of largest magnitude, with its sign
  float most = 0;
  for (int i = 0; i < n; ++i) {
    most = std::abs(x[i]) > std::abs(most) ? x[i] : most;
  }
  return most;
}

// A real scale: the outermost value is put on the outermost level of either side, and at `steps`
// places inside and outside of it on both sides; each is fitted once more.
template <class Grid, int n>
float best_scale(const float* x, int steps) {
  const float most = outermost<n>(x);
  if (std::abs(most) < 1e-30F) {
    return 0;
  }
  float best = 0;
  float least = squared_error<Grid, n>(x, 0);
  const auto consider = [&](float d) {
    const float error = squared_error<Grid, n>(x, d);
    if (error < least) {
      least = error;
      best = d;
    }
  };
  for (const float edge : {Grid::low, Grid::high}) {
    for (int step = -steps; step <= steps; ++step) {
      const float d = most / (edge * (1 + Grid::spacing * static_cast<float>(step)));
      consider(d);
      consider(refitted<Grid, n>(x, d));
    }
  }
  return best;
}

// The best of the halves around `d`; a scale that would vanish becomes the smallest half.
template <class Grid, int n>
float best_half(const float* x, float d) {
  float best = rounded_to_half(d);
  float least = squared_error<Grid, n>(x, best);
  const float step = std::max(std::abs(best) * 0x1p-10F, 0x1p-24F);
  for (const float other : {best - step, best + step, 0x1p-24F, -0x1p-24F}) {
    const float half = rounded_to_half(other);
    const float error = squared_error<Grid, n>(x, half);
    if (error < least) {
      least = error;
      best = half;
    }
  }
  return best;
}

// Scales of `parts` neighbours of `n` values each, stored as d·s with a half d and whole numbers s.
template <int parts>
struct SharedScales {
  float d = 0;
  std::array<int, parts> s = {};
  float error = 0;
};

// For a given d: of each part the whole number in [low, high] within ±1 of its real scale that fits
// best.
template <class Grid, int parts, int n>
SharedScales<parts> whole_scales(const float* x, float d, const std::array<float, parts>& real,
                                 int low, int high) {
  SharedScales<parts> out;
  out.d = d;
  const float inverse = inverse_of(d);
  for (int part = 0; part < parts; ++part) {
    const int middle = static_cast<int>(std::clamp(
        std::nearbyint(real[part] * inverse), static_cast<float>(low), static_cast<float>(high)));
    float least = INFINITY;
    for (int s = std::max(low, middle - 1); s <= std::min(high, middle + 1); ++s) {
      const float error = squared_error<Grid, n>(x + part * n, d * static_cast<float>(s));
      if (error < least) {
        least = error;
        out.s[part] = s;
      }
    }
    out.error += least;
  }
  return out;
}

// d refitted to the levels that these scales give.
template <class Grid, int parts, int n>
float refitted(const float* x, const SharedScales<parts>& scales) {
  float products = 0;
  float squares = 0;
  for (int part = 0; part < parts; ++part) {
    const auto s = static_cast<float>(scales.s[part]);
    const float inverse = inverse_of(scales.d * s);
#pragma omp simd reduction(+ : products, squares)
    for (int i = 0; i < n; ++i) {
      const float value = x[part * n + i];
      const float level = s * Grid::nearest(value * inverse);
      products = std::fma(value, level, products);
      squares = std::fma(level, level, squares);
    }
  }
  return squares > 0 ? products / squares : 0.0F;
}

// The whole search: real scales, then d from the outermost of them and a few beside it, then d
// refitted while that helps.
template <class Grid, int parts, int n>
SharedScales<parts> fit_shared(const float* x, int low, int high, int steps) {
  std::array<float, parts> real;
  for (int part = 0; part < parts; ++part) {
    real[part] = best_scale<Grid, n>(x + part * n, steps);
  }
  const float most = outermost<parts>(real.data());
  SharedScales<parts> best;
  best.error = INFINITY;
  const auto consider = [&](float d) {
    const auto now = whole_scales<Grid, parts, n>(x, rounded_to_half(d), real, low, high);
    const bool better = now.error < best.error;
    best = better ? now : best;
    return better;
  };
  for (const int edge : {low, high, low + 1, high - 1}) {
    consider(most / static_cast<float>(edge));
  }
  if (best.d == 0 && most != 0) {
    consider(std::copysign(0x1p-24F, most));
  }
  for (int round = 0; round < 3 && consider(refitted<Grid, parts, n>(x, best)); ++round) {
  }
  return best;
}

}  // namespace ingot::quant
