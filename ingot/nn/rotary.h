#pragma once

#include <string>
#include <vector>

#include "ingot/base/range.h"
#include "ingot/ops/rope.h"

namespace ingot::nn {

// The angles of rotary position embeddings, and how they are stretched beyond the length a model
// was trained on:
//   linear   every frequency divided by `factor` (Chen et al. 2023, arXiv:2306.15595)
//   ntk      a larger base, base · factor^(n/(n−2)) ("NTK-aware")
//   dynamic  the same once the text is longer than the context, growing with it
//   llama3   low frequencies divided, high ones kept, a ramp between (Llama 3.1)
//   yarn     the same by number of turns, and larger scores (Peng et al. 2023, arXiv:2309.00071)
//   longrope a divisor of its own for every pair, one list up to the trained length and one beyond,
//            and larger scores (Ding et al. 2024, arXiv:2402.13753)
struct RotaryConfig {
  double base = 10000;
  double local_base = 0;
  double fraction = 1;
  std::string layout = "half_split";
  std::string scaling = "none";
  double factor = 1;
  int64_t original_context = 0;
  double low_frequency = 1, high_frequency = 4;
  double beta_fast = 32, beta_slow = 1;
  double attention_factor = 0, mscale = 0, mscale_all_dim = 0;
  std::vector<double> short_factors, long_factors;

  template <class V>
  void describe(V& v) {
    v("base", base, above(0), "pair p of n features turns by base^(-2p/n) radians per position");
    v("local_base", local_base, at_least(0),
      "base in windowed layers, whose angles then never stretch; 0: as in the others");
    v("fraction", fraction, in(0, 1), "of each head's features that turn");
    v("layout", layout, one_of({"half_split", "interleaved"}), "which features form a pair");
    v("scaling", scaling,
      one_of({"none", "linear", "ntk", "dynamic", "llama3", "yarn", "longrope"}),
      "how angles stretch beyond the trained length");
    v("factor", factor, at_least(1), "of the stretch");
    v("original_context", original_context, at_least(0),
      "trained length that llama3, yarn and longrope stretch from; 0: the model's context");
    v("low_frequency", low_frequency, above(0), "llama3: turns below which an angle is divided");
    v("high_frequency", high_frequency, above(0), "llama3: turns above which an angle is kept");
    v("beta_fast", beta_fast, above(0), "yarn: turns above which an angle is kept");
    v("beta_slow", beta_slow, above(0), "yarn: turns below which an angle is divided");
    v("attention_factor", attention_factor, at_least(0),
      "yarn, longrope: of cos and sin; 0: from factor");
    v("mscale", mscale, at_least(0), "yarn: weight of the factor's logarithm; 0: 1");
    v("mscale_all_dim", mscale_all_dim, at_least(0), "yarn: divisor of the same form; 0: none");
    v("short_factors", short_factors, above(0), "longrope: divisors up to original_context");
    v("long_factors", long_factors, above(0), "longrope: divisors beyond it");
  }
};

// Features of a head of `head_dim` that turn: an even number.
int64_t rotated_features(const RotaryConfig& config, int64_t head_dim);

// Radians per position of each pair, n/2 of them. `context` is the length the model is made for,
// `length` that of the text (which only dynamic and longrope ask for).
std::vector<double> rotary_frequencies(const RotaryConfig& config, int64_t rotated, int64_t context,
                                       int64_t length);
// What cos and sin are multiplied by.
double rotary_amplitude(const RotaryConfig& config, int64_t context);
// Whether a text that grows from one length to another turns all its positions anew, so that cached
// keys are no longer those of the whole text.
bool turns_anew(const RotaryConfig& config, int64_t context, int64_t from, int64_t to);

// The angles of windowed layers where local_base is set: of that base, never stretched.
RotaryConfig local_rotary(const RotaryConfig& config);
// The same angles said in the plainest way: ntk as the base it amounts to, and without what the
// kind of scaling does not read.
RotaryConfig plain_rotary(const RotaryConfig& config, int64_t head_dim);

// cos and sin for positions [T] or [B, T] i64: [..., n/2] in `dtype`, computed in f64.
RopeTables rotary_tables(const RotaryConfig& config, const Tensor& positions, int64_t rotated,
                         int64_t context, int64_t length, DType dtype);

RopeLayout rotary_layout(const RotaryConfig& config);

}  // namespace ingot::nn
