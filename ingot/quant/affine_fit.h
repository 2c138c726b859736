#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "ingot/quant/symmetric_fit.h"

namespace ingot::quant {

// Scale and offset for x ≈ d·q + m with q = 0 … top and the least Σ(x − d·q − m)².

struct Affine {
  float d = 0;
  float m = 0;
};

template <int top>
float code_of(float x, float inverse, float m) {
  return std::clamp(std::nearbyint((x - m) * inverse), 0.0F, static_cast<float>(top));
}

template <int top, int n>
float squared_error(const float* x, Affine fit) {
  const float inverse = inverse_of(fit.d);
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int i = 0; i < n; ++i) {
    const float rest = x[i] - fit.m - fit.d * code_of<top>(x[i], inverse, fit.m);
    sum += rest * rest;
  }
  return sum;
}

// The straight line through (q, x), q being the codes under `fit`. With `negative_offset`, m ≤ 0.
template <int top, int n>
Affine refitted(const float* x, Affine fit, bool negative_offset) {
  const float inverse = inverse_of(fit.d);
  float q_sum = 0;
  float q_squares = 0;
  float x_sum = 0;
  float products = 0;
#pragma omp simd reduction(+ : q_sum, q_squares, x_sum, products)
  for (int i = 0; i < n; ++i) {
    const float q = code_of<top>(x[i], inverse, fit.m);
    q_sum += q;
    q_squares += q * q;
    x_sum += x[i];
    products += x[i] * q;
  }
  const float determinant = n * q_squares - q_sum * q_sum;
  if (determinant <= 0) {
    return fit;
  }
  Affine out;
  out.d = (n * products - x_sum * q_sum) / determinant;
  out.m = (x_sum - out.d * q_sum) / n;
  if (negative_offset && out.m > 0) {
    out = {q_squares > 0 ? products / q_squares : 0.0F, 0.0F};
  }
  return out.d > 0 ? out : fit;
}

// Real scale and offset: the range of x is laid over a few numbers of steps around `top`, and each
// is fitted once more.
template <int top, int n>
Affine best_affine(const float* x, bool negative_offset, int steps) {
  float low = x[0];
  float high = x[0];
#pragma omp simd reduction(min : low) reduction(max : high)
  for (int i = 1; i < n; ++i) {
    low = std::min(low, x[i]);
    high = std::max(high, x[i]);
  }
  low = negative_offset ? std::min(low, 0.0F) : low;
  Affine best{0, low};
  float least = squared_error<top, n>(x, best);
  const auto consider = [&](Affine fit) {
    const float error = squared_error<top, n>(x, fit);
    if (error < least) {
      least = error;
      best = fit;
    }
  };
  if (high - low < 1e-30F) {
    return best;
  }
  for (int step = 0; step <= steps; ++step) {
    const float spread = static_cast<float>(step) / static_cast<float>(std::max(steps, 1));
    const float d = (high - low) / (static_cast<float>(top) - 0.6F + 1.5F * spread);
    consider({d, low});
    const Affine once = refitted<top, n>(x, {d, low}, negative_offset);
    consider(once);
    consider(refitted<top, n>(x, once, negative_offset));
  }
  consider({(high - low) / top, low});
  return best;
}

// Scales and offsets of `parts` neighbours of `n` values each, stored as x ≈ d·s·q − m·o with
// halves d and m and whole numbers s and o from 0 to `most`.
template <int parts>
struct SharedAffine {
  float d = 0;
  float m = 0;
  std::array<int, parts> s = {};
  std::array<int, parts> o = {};
  float error = 0;
};

// For given d and m: of each part the pair of whole numbers within ±1 of the real ones that fits
// best.
template <int top, int parts, int n>
SharedAffine<parts> whole_affine(const float* x, float d, float m,
                                 const std::array<Affine, parts>& real, int most) {
  SharedAffine<parts> out;
  out.d = d;
  out.m = m;
  const auto nearest = [&](float value, float unit) {
    const float code = std::nearbyint(value * inverse_of(unit));
    return static_cast<int>(std::clamp(code, 0.0F, static_cast<float>(most)));
  };
  for (int part = 0; part < parts; ++part) {
    const int scale = nearest(real[part].d, d);
    const int offset = nearest(-real[part].m, m);
    float least = INFINITY;
    for (int s = std::max(0, scale - 1); s <= std::min(most, scale + 1); ++s) {
      for (int o = std::max(0, offset - 1); o <= std::min(most, offset + 1); ++o) {
        const Affine fit{d * static_cast<float>(s), -m * static_cast<float>(o)};
        const float error = squared_error<top, n>(x + part * n, fit);
        if (error < least) {
          least = error;
          out.s[part] = s;
          out.o[part] = o;
        }
      }
    }
    out.error += least;
  }
  return out;
}

// d and m refitted to the codes that these numbers give: the normal equations of
// x ≈ d·a − m·b with a = s·q, b = o.
template <int top, int parts, int n>
Affine refitted(const float* x, const SharedAffine<parts>& shared) {
  double aa = 0, ab = 0, bb = 0, ax = 0, bx = 0;
  for (int part = 0; part < parts; ++part) {
    const auto s = static_cast<float>(shared.s[part]);
    const auto b = static_cast<float>(shared.o[part]);
    const float inverse = inverse_of(shared.d * s);
    float q_squares = 0, q_sum = 0, products = 0, x_sum = 0;
#pragma omp simd reduction(+ : q_sum, q_squares, x_sum, products)
    for (int i = 0; i < n; ++i) {
      const float value = x[part * n + i];
      const float q = code_of<top>(value, inverse, -shared.m * b);
      q_squares += q * q;
      q_sum += q;
      products += q * value;
      x_sum += value;
    }
    aa += double{s} * s * q_squares;
    ab += double{s} * b * q_sum;
    bb += double{b} * b * n;
    ax += double{s} * products;
    bx += double{b} * x_sum;
  }
  const double determinant = aa * bb - ab * ab;
  if (determinant > 1e-9 * aa * bb) {
    const double d = (ax * bb - bx * ab) / determinant;
    const double m = (ax * ab - bx * aa) / determinant;
    return {static_cast<float>(std::max(d, 0.0)), static_cast<float>(std::max(m, 0.0))};
  }
  return {aa > 0 ? static_cast<float>(std::max((ax + shared.m * ab) / aa, 0.0)) : shared.d,
          shared.m};
}

template <int top, int parts, int n>
SharedAffine<parts> fit_shared_affine(const float* x, int most, int steps) {
  std::array<Affine, parts> real;
  float largest_scale = 0;
  float largest_offset = 0;
  for (int part = 0; part < parts; ++part) {
    real[part] = best_affine<top, n>(x + part * n, true, steps);
    largest_scale = std::max(largest_scale, real[part].d);
    largest_offset = std::max(largest_offset, -real[part].m);
  }
  SharedAffine<parts> best;
  best.error = INFINITY;
  const auto consider = [&](float d, float m) {
    const auto now =
        whole_affine<top, parts, n>(x, rounded_to_half(d), rounded_to_half(m), real, most);
    const bool better = now.error < best.error;
    best = better ? now : best;
    return better;
  };
  const auto shared = [&](float largest, int part) {
    return largest > 0 ? std::max(largest / static_cast<float>(part), 0x1p-24F) : 0.0F;
  };
  consider(shared(largest_scale, most), shared(largest_offset, most));
  consider(shared(largest_scale, most - 1), shared(largest_offset, most));
  consider(shared(largest_scale, most), shared(largest_offset, most - 1));
  for (int round = 0; round < 3; ++round) {
    const Affine next = refitted<top, parts, n>(x, best);
    if (!consider(next.d, next.m)) {
      break;
    }
  }
  return best;
}

}  // namespace ingot::quant
