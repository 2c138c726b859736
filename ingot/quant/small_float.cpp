#include "ingot/quant/small_float.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ingot/base/error.h"

namespace ingot::quant {
namespace {

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

// |x| in units of the spacing of numbers around it, and the code of the first number there: the
// code of x is `base` + the rounded count. Dividing by a power of two is exact.
struct Steps {
  double count = 0;
  int base = 0;
};

Steps steps_of(const SmallFloat& format, double magnitude) {
  const int lowest = 1 - format.bias;  // exponent of subnormal numbers
  const int exponent = magnitude == 0 ? lowest : std::max(std::ilogb(magnitude), lowest);
  const double count = std::ldexp(magnitude, format.fraction_bits - exponent);
  return {count, (exponent - lowest) << format.fraction_bits};
}

uint8_t nan_code(const SmallFloat& format) {
  check(format.top != Top::finite, ErrorKind::numeric, format.name,
        ": NaN has no code in this format");
  return static_cast<uint8_t>((1 << (format.exponent_bits + format.fraction_bits)) - 1);
}

uint8_t overflow_code(const SmallFloat& format, Overflow overflow) {
  const uint8_t largest = format.largest_code();
  return overflow == Overflow::saturate || format.top == Top::finite
             ? largest
             : static_cast<uint8_t>(largest + 1);  // infinity, or the NaN of E4M3
}

uint8_t with_sign(const SmallFloat& format, uint8_t code, double x) {
  return std::signbit(x) ? static_cast<uint8_t>(code | format.sign()) : code;
}

}  // namespace

double SmallFloat::largest() const { return decoded(*this, largest_code()); }
int SmallFloat::largest_exponent() const { return std::ilogb(largest()); }

std::optional<SmallFloat> small_float_named(std::string_view name) {
  for (const SmallFloat& format : {e4m3, e5m2, e3m2, e2m3, e2m1}) {
    if (format.name == name) {
      return format;
    }
  }
  return name == "e4m3fn" ? std::optional(e4m3) : std::nullopt;
}

double decoded(const SmallFloat& format, uint8_t code) {
  const int magnitude = code & (format.sign() - 1);
  const int exponent = magnitude >> format.fraction_bits;
  const int fraction = magnitude & ((1 << format.fraction_bits) - 1);
  double value = 0;
  if (magnitude > format.largest_code()) {
    const bool infinite = format.top == Top::infinity && fraction == 0;
    value = infinite ? std::numeric_limits<double>::infinity() : nan_value;
  } else if (exponent == 0) {
    value = std::ldexp(fraction, 1 - format.bias - format.fraction_bits);
  } else {
    value = std::ldexp(fraction + (1 << format.fraction_bits),
                       exponent - format.bias - format.fraction_bits);
  }
  return (code & format.sign()) != 0 ? -value : value;
}

uint8_t encoded(const SmallFloat& format, double x, Overflow overflow) {
  if (std::isnan(x)) {
    return with_sign(format, nan_code(format), x);
  }
  if (std::isinf(x)) {
    return with_sign(format, overflow_code(format, overflow), x);
  }
  const Steps steps = steps_of(format, std::abs(x));
  const double code = steps.base + std::nearbyint(steps.count);  // halves to even
  return with_sign(
      format,
      code > format.largest_code() ? overflow_code(format, overflow) : static_cast<uint8_t>(code),
      x);
}

uint8_t encoded_stochastically(const SmallFloat& format, double x, double u) {
  if (!std::isfinite(x)) {
    return encoded(format, x);
  }
  const Steps steps = steps_of(format, std::abs(x));
  const double code = steps.base + std::floor(steps.count + u);
  return with_sign(format, static_cast<uint8_t>(std::min<double>(code, format.largest_code())), x);
}

double decoded_e8m0(uint8_t code) { return code == 255 ? nan_value : std::ldexp(1.0, code - 127); }

uint8_t encoded_e8m0(int exponent) {
  return static_cast<uint8_t>(std::clamp(exponent, -127, 127) + 127);
}

}  // namespace ingot::quant
