#include "ingot/train/console.h"

#include <fmt/format.h>

#include <numbers>

#include "ingot/base/text_size.h"
#include "ingot/device/allocator.h"

namespace ingot {

Console::Console(int64_t from_step, int64_t steps, double peak_flops, bool byte_tokens,
                 ProgressStyle style)
    : progress_("train", steps, "steps", std::move(style)),
      peak_flops_(peak_flops),
      byte_tokens_(byte_tokens) {
  progress_.start_at(from_step);
}

void Console::after_step(const TrainState& state, const StepReport& report) {
  constexpr double keep = 0.95;
  const auto blend = [&](double& sum, double value) { sum = keep * sum + (1 - keep) * value; };
  blend(smooth_loss_, report.loss);
  blend(smooth_tokens_, static_cast<double>(report.tokens));
  blend(smooth_seconds_, report.seconds);
  blend(smooth_flops_, static_cast<double>(report.flops));
  blend(weight_, 1);
  const double loss = smooth_loss_ / weight_;
  std::string note = fmt::format("loss {:.4f}", loss);
  if (byte_tokens_) {
    note += fmt::format("  {:.3f} bits/byte", loss / std::numbers::ln2);
  }
  note += fmt::format("  {} tokens/s", text_count(smooth_tokens_ / smooth_seconds_));
  if (peak_flops_ > 0) {
    note += fmt::format("  {:.0f}% of peak", 100 * smooth_flops_ / smooth_seconds_ / peak_flops_);
  }
  note += "  " + text_bytes(allocator(cpu_device).stats().peak_total);
  progress_.note(note);
  progress_.set(state.step);
}

}  // namespace ingot
