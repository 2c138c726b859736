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
  const auto original =
      static_cast<double>(config.original_context > 0 ? config.original_context : context);
  std::vector<double> out = powers(config.base, rotated);
  if (config.scaling == "linear") {
    for (double& f : out) {
      f /= config.factor;
    }
  } else if (config.scaling == "dynamic" && length > context) {
    const double excess = static_cast<double>(length) / static_cast<double>(context);
    const auto n = static_cast<double>(rotated);
    const double grown = config.factor * excess - (config.factor - 1);
    out = powers(config.base * std::pow(grown, n / (n - 2)), rotated);
  } else if (config.scaling == "llama3") {
    stretch_llama3(out, config, original);
  } else if (config.scaling == "yarn") {
    stretch_yarn(out, config, original);
  }
  return out;
}

double rotary_amplitude(const RotaryConfig& config) {
  if (config.scaling != "yarn") {
    return 1;
  }
  if (config.attention_factor > 0) {
    return config.attention_factor;
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
  const double amplitude = rotary_amplitude(config);
  const Tensor rates = moved(tensor_of(frequencies, {rotated / 2}), positions.device());
  const Tensor angles = unsqueeze(converted(positions, DType::f64), -1) * rates;  // [..., n/2]
  return {converted(cos(angles) * amplitude, dtype), converted(sin(angles) * amplitude, dtype)};
}

RopeLayout rotary_layout(const RotaryConfig& config) {
  return config.layout == "interleaved" ? RopeLayout::interleaved : RopeLayout::half_split;
}

}  // namespace ingot::nn
