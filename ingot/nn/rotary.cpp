#include "ingot/nn/rotary.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "ingot/ops/elementwise.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot::nn {
namespace {

std::vector<double> powers(double base, int64_t rotated) {
  std::vector<double> out;
  for (int64_t i = 0; i < rotated; i += 2) {
    out.push_back(std::pow(base, -static_cast<double>(i) / static_cast<double>(rotated)));
  }
  return out;
}

double ntk_base(double base, double growth, int64_t rotated) {
  const auto n = static_cast<double>(rotated);
  return base * std::pow(growth, n / (n - 2));
}

int64_t trained_length(const RotaryConfig& c, int64_t context) {
  return c.original_context > 0 ? c.original_context : context;
}

double mix(double a, double b, double share_of_b) { return a + (b - a) * share_of_b; }

// With turns r = length · f / 2π over the original length:
//   f/factor for r < low, f for r > high, and a ramp between.
void stretch_llama3(std::vector<double>& frequencies, const RotaryConfig& c, double original) {
  for (double& f : frequencies) {
    const double turns = original * f / (2 * std::numbers::pi);
    const double ramp = (turns - c.low_frequency) / (c.high_frequency - c.low_frequency);
    f = mix(f / c.factor, f, std::clamp(ramp, 0.0, 1.0));
  }
}

// arXiv:2309.00071, section 3.2: the ramp runs over the pair's number p, between the pairs that
// make beta_fast and beta_slow turns over the original length, rounded outwards.
void stretch_yarn(std::vector<double>& frequencies, const RotaryConfig& c, double original) {
  const double rotated = 2 * static_cast<double>(frequencies.size());
  const auto pair_of = [&](double turns) {
    return rotated * std::log(original / (turns * 2 * std::numbers::pi)) / (2 * std::log(c.base));
  };
  const double low = std::max(std::floor(pair_of(c.beta_fast)), 0.0);
  double high = std::min(std::ceil(pair_of(c.beta_slow)), rotated - 1);
  high = high == low ? low + 0.001 : high;
  for (size_t p = 0; p < frequencies.size(); ++p) {
    const double ramp = std::clamp((static_cast<double>(p) - low) / (high - low), 0.0, 1.0);
    frequencies[p] = mix(frequencies[p], frequencies[p] / c.factor, ramp);
  }
}

}  // namespace

int64_t rotated_features(const RotaryConfig& config, int64_t head_dim) {
  return static_cast<int64_t>(static_cast<double>(head_dim) * config.fraction) / 2 * 2;
}

std::vector<double> rotary_frequencies(const RotaryConfig& config, int64_t rotated, int64_t context,
                                       int64_t length) {
  const int64_t trained = trained_length(config, context);
  const auto original = static_cast<double>(trained);
  std::vector<double> out = powers(config.base, rotated);
  if (config.scaling == "linear") {
    for (double& f : out) {
      f /= config.factor;
    }
  } else if (config.scaling == "dynamic" && length > context) {
    const double excess = static_cast<double>(length) / static_cast<double>(context);
    const double grown = config.factor * excess - (config.factor - 1);
    out = powers(ntk_base(config.base, grown, rotated), rotated);
  } else if (config.scaling == "ntk") {
    out = powers(ntk_base(config.base, config.factor, rotated), rotated);
  } else if (config.scaling == "llama3") {
    stretch_llama3(out, config, original);
  } else if (config.scaling == "yarn") {
    stretch_yarn(out, config, original);
  } else if (config.scaling == "longrope") {
    const std::vector<double>& divisors =
        length > trained ? config.long_factors : config.short_factors;
    check(divisors.size() == out.size(), ErrorKind::config,
          "rope: longrope needs a divisor for every pair: ", out.size(), " pairs, ",
          divisors.size(), " divisors");
    for (size_t p = 0; p < out.size(); ++p) {
      out[p] /= divisors[p];
    }
  }
  return out;
}

double rotary_amplitude(const RotaryConfig& config, int64_t context) {
  if (config.scaling != "yarn" && config.scaling != "longrope") {
    return 1;
  }
  if (config.attention_factor > 0) {
    return config.attention_factor;
  }
  if (config.scaling == "longrope") {  // equation 5 with the length the model is made for
    const auto original = static_cast<double>(trained_length(config, context));
    const double factor =
        config.original_context > 0 ? static_cast<double>(context) / original : config.factor;
    return factor <= 1 ? 1 : std::sqrt(1 + std::log(factor) / std::log(original));
  }
  const auto growth = [&](double weight) { return 0.1 * weight * std::log(config.factor) + 1; };
  return config.mscale > 0 && config.mscale_all_dim > 0
             ? growth(config.mscale) / growth(config.mscale_all_dim)
             : growth(1);
}

RopeTables rotary_tables(const RotaryConfig& config, const Tensor& positions, int64_t rotated,
                         int64_t context, int64_t length, DType dtype) {
  if (config.scaling == "none") {
    return rope_tables(positions, rotated, config.base, dtype);
  }
  const std::vector<double> frequencies = rotary_frequencies(config, rotated, context, length);
  const double amplitude = rotary_amplitude(config, context);
  const Tensor rates = moved(tensor_of(frequencies, {rotated / 2}), positions.device());
  const Tensor angles = unsqueeze(converted(positions, DType::f64), -1) * rates;  // [..., n/2]
  return {converted(cos(angles) * amplitude, dtype), converted(sin(angles) * amplitude, dtype)};
}

bool turns_anew(const RotaryConfig& config, int64_t context, int64_t from, int64_t to) {
  if (config.scaling == "dynamic") {
    return from != to && std::max(from, to) > context;
  }
  const int64_t trained = trained_length(config, context);
  return config.scaling == "longrope" && (from > trained) != (to > trained);
}

RotaryConfig local_rotary(const RotaryConfig& config) {
  RotaryConfig out;
  out.base = config.local_base;
  out.fraction = config.fraction;
  out.layout = config.layout;
  return out;
}

RotaryConfig plain_rotary(const RotaryConfig& config, int64_t head_dim) {
  RotaryConfig out;
  out.base = config.base;
  out.local_base = config.local_base;
  out.fraction = config.fraction;
  out.layout = config.layout;
  const std::string& kind = config.scaling;
  if (kind == "ntk") {
    out.base = ntk_base(config.base, config.factor, rotated_features(config, head_dim));
  } else if (kind != "none") {
    out.scaling = kind;
    out.factor = config.factor;
    out.original_context = config.original_context;
  }
  if (kind == "llama3") {
    out.low_frequency = config.low_frequency;
    out.high_frequency = config.high_frequency;
  } else if (kind == "yarn") {
    out.beta_fast = config.beta_fast;
    out.beta_slow = config.beta_slow;
    out.attention_factor = config.attention_factor;
    out.mscale = config.mscale;
    out.mscale_all_dim = config.mscale_all_dim;
  } else if (kind == "longrope") {
    out.attention_factor = config.attention_factor;
    out.short_factors = config.short_factors;
    out.long_factors = config.long_factors;
  }
  return out;
}

RopeLayout rotary_layout(const RotaryConfig& config) {
  return config.layout == "interleaved" ? RopeLayout::interleaved : RopeLayout::half_split;
}

}  // namespace ingot::nn
