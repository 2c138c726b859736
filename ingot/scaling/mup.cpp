#include "ingot/scaling/mup.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "ingot/base/error.h"
#include "ingot/ops/elementwise.h"
#include "ingot/tensor/copy.h"

namespace ingot {

MupNumbers mup_numbers(MupForm form, MupRule rule, MupPart part, double m) {
  MupNumbers out;
  const bool in_output = part == MupPart::output && form == MupForm::table3;
  switch (part) {
    case MupPart::hidden: out.deviation = 1 / std::sqrt(m); break;
    case MupPart::output:
      out.deviation = in_output ? 1 / m : 1;
      out.forward = in_output ? 1 : 1 / m;
      break;
    default: break;
  }
  if (rule == MupRule::adam) {
    out.rate = part == MupPart::hidden || in_output ? 1 / m : 1;
    out.decay = 1 / out.rate;
  } else {
    out.rate = part == MupPart::hidden ? 1 : in_output ? 1 / m : m;
  }
  return out;
}

double mup_attention_scale(int64_t head_width, int64_t base_head_width) {
  return std::sqrt(static_cast<double>(base_head_width)) / static_cast<double>(head_width);
}

MupPart mup_part(std::string_view name, int64_t rank) {
  if (name.starts_with("embedding.") || name.starts_with("positions.")) {
    return MupPart::embedding;
  }
  if (name.starts_with("head.")) {
    return MupPart::output;
  }
  return rank >= 2 ? MupPart::hidden : MupPart::vector;
}

MupRule mup_rule(std::string_view optimizer) {
  constexpr std::array<std::string_view, 14> adaptive = {"adamw",
                                                         "adam",
                                                         "adamw_8bit",
                                                         "ademamix",
                                                         "lion",
                                                         "adamax",
                                                         "nadam",
                                                         "radam",
                                                         "adagrad",
                                                         "rmsprop",
                                                         "sophia_g",
                                                         "sophia_h",
                                                         "schedule_free_adamw",
                                                         "adadelta"};
  if (std::ranges::find(adaptive, optimizer) != adaptive.end()) {
    return MupRule::adam;
  }
  check(optimizer == "sgd" || optimizer == "schedule_free_sgd", ErrorKind::config,
        "mup: its tables are for rules like Adam and SGD: optim.kind is ", optimizer,
        ", which follows the size of weights or matrices itself; choose adamw, or leave mup out");
  return MupRule::sgd;
}

void scale_initial(TensorDict& values, const MupConfig& config, int64_t width,
                   std::string_view scheme) {
  const double m = static_cast<double>(width) / static_cast<double>(config.base_width);
  const bool by_fan_in = scheme != "gpt2" && scheme != "normal";
  for (const auto& [name, value] : values) {
    const MupPart part = mup_part(name, value.rank());
    double factor = mup_numbers(MupForm::table3, MupRule::adam, part, m).deviation;
    if (by_fan_in && (part == MupPart::hidden || part == MupPart::output)) {
      factor *= std::sqrt(m);  // which the scheme has taken out
    }
    if (factor != 1) {
      Tensor target = value;
      copy_into(target, value * factor);
    }
  }
}

std::string mup_group(std::string_view name, int64_t rank, const MupConfig& config, int64_t width,
                      MupRule rule) {
  const double m = static_cast<double>(width) / static_cast<double>(config.base_width);
  const MupNumbers numbers = mup_numbers(MupForm::table3, rule, mup_part(name, rank), m);
  if (numbers.rate == 1) {
    return "";
  }
  return rank >= 2 ? fmt::format("{} lr={} decay={}", name, numbers.rate, numbers.decay)
                   : fmt::format("{} lr={}", name, numbers.rate);
}

}  // namespace ingot
