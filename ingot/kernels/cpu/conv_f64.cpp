#include <algorithm>

#include "ingot/kernels/cpu/conv_routes.h"
#include "ingot/kernels/cpu/parallel.h"

namespace ingot::kernels {
namespace {

// One (image, output channel, input channel) of a convolution: where its planes start, and the
// plane sizes.
struct Planes {
  const ConvSteps& steps;
  Shape x;  // [B, C, Y, X]
  Shape w;  // [O, C/groups, P, Q]
  Shape y;  // [B, O, Y', X']

  int64_t inputs() const { return w[1]; }  // per group
  int64_t outputs() const { return w[0] / steps.groups; }
  int64_t x_at(int64_t b, int64_t o, int64_t c) const {
    return (b * x[1] + o / outputs() * inputs() + c) * x[2] * x[3];
  }
  int64_t w_at(int64_t o, int64_t c) const { return (o * w[1] + c) * w[2] * w[3]; }
  int64_t y_at(int64_t b, int64_t o) const { return (b * y[1] + o) * y[2] * y[3]; }

  // f(x offset, w offset, y offset) for each product of a term, within the planes.
  template <class F>
  void each_term(F&& f) const {
    for (int64_t i = 0; i < y[2]; ++i) {
      for (int64_t j = 0; j < y[3]; ++j) {
        for (int64_t p = 0; p < w[2]; ++p) {
          for (int64_t q = 0; q < w[3]; ++q) {
            const int64_t row = i * steps.stride[0] + p * steps.dilation[0] - steps.padding[0];
            const int64_t column = j * steps.stride[1] + q * steps.dilation[1] - steps.padding[1];
            if (row >= 0 && row < x[2] && column >= 0 && column < x[3]) {
              f(row * x[3] + column, p * w[3] + q, i * y[3] + j);
            }
          }
        }
      }
    }
  }
};

}  // namespace

void conv_f64(const ConstView& x, const ConstView& w, const ConstView& bias, const ConvSteps& steps,
              const View& y) {
  const Planes planes{steps, x.shape, w.shape, y.shape};
  parallel_for(y.shape[0] * y.shape[1], 1, [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      const int64_t b = plane / y.shape[1];
      const int64_t o = plane % y.shape[1];
      double* to = y.as<double>() + planes.y_at(b, o);
      const double start = bias.data == nullptr ? 0 : bias.as<double>()[o];
      std::fill(to, to + y.shape[2] * y.shape[3], start);
      for (int64_t c = 0; c < planes.inputs(); ++c) {
        const double* from = x.as<double>() + planes.x_at(b, o, c);
        const double* taps = w.as<double>() + planes.w_at(o, c);
        planes.each_term(
            [&](int64_t ix, int64_t iw, int64_t iy) { to[iy] += from[ix] * taps[iw]; });
      }
    }
  });
}

void conv_input_gradient_f64(const ConstView& dy, const ConstView& w, const ConvSteps& steps,
                             const View& dx) {
  const Planes planes{steps, dx.shape, w.shape, dy.shape};
  parallel_for(dx.shape[0] * steps.groups, 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      const int64_t b = part / steps.groups;
      const int64_t first = part % steps.groups * planes.outputs();
      double* group = dx.as<double>() + planes.x_at(b, first, 0);
      std::fill(group, group + planes.inputs() * dx.shape[2] * dx.shape[3], 0.0);
      for (int64_t o = first; o < first + planes.outputs(); ++o) {
        const double* from = dy.as<double>() + planes.y_at(b, o);
        for (int64_t c = 0; c < planes.inputs(); ++c) {
          double* to = dx.as<double>() + planes.x_at(b, o, c);
          const double* taps = w.as<double>() + planes.w_at(o, c);
          planes.each_term(
              [&](int64_t ix, int64_t iw, int64_t iy) { to[ix] += from[iy] * taps[iw]; });
        }
      }
    }
  });
}

void conv_weight_gradient_f64(const ConstView& dy, const ConstView& x, const ConvSteps& steps,
                              const View& dw) {
  const Planes planes{steps, x.shape, dw.shape, dy.shape};
  parallel_for(dw.shape[0] * dw.shape[1], 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      const int64_t o = part / dw.shape[1];
      const int64_t c = part % dw.shape[1];
      double* to = dw.as<double>() + planes.w_at(o, c);
      std::fill(to, to + dw.shape[2] * dw.shape[3], 0.0);
      for (int64_t b = 0; b < x.shape[0]; ++b) {
        const double* from = x.as<double>() + planes.x_at(b, o, c);
        const double* back = dy.as<double>() + planes.y_at(b, o);
        planes.each_term(
            [&](int64_t ix, int64_t iw, int64_t iy) { to[iw] += from[ix] * back[iy]; });
      }
    }
  });
}

}  // namespace ingot::kernels
