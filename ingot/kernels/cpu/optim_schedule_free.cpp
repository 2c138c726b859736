// The update of schedule-free optimizers.
#include "ingot/kernels/optim.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ingot/kernels/cpu/optim_schedule_free.cpp"
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/highway.h>
#include "ingot/kernels/cpu/update-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace {

// s: z, v and m, as far as they are there.
template <bool adaptive, bool averaged>
void form(const ScheduleFreeNumbers& numbers, const ConstView& g, const View& y,
          const std::array<View, 1 + adaptive + averaged>& state, const View& rounded) {
  constexpr size_t count = 1 + adaptive + averaged;
  one_pass<count>(g, y, state, rounded, [a = numbers](auto d, auto w, auto gradient, auto* s) {
    const auto grad = hn::Mul(all(d, a.scale), gradient);
    auto step = grad;
    if constexpr (averaged) {
      auto& m = s[count - 1];
      m = hn::MulAdd(all(d, 1 - a.inner), grad, hn::Mul(all(d, a.inner), m));
      step = hn::Mul(all(d, a.correct), m);
    }
    if constexpr (adaptive) {
      s[1] = hn::MulAdd(hn::Mul(all(d, 1 - a.beta2), grad), grad, hn::Mul(all(d, a.beta2), s[1]));
      step = hn::Div(step, hn::MulAdd(all(d, a.root_scale), hn::Sqrt(s[1]), all(d, a.eps)));
    }
    const auto z = s[0];
    const auto decayed = hn::NegMulAdd(all(d, a.decay), a.decay_at_z ? z : w, z);
    s[0] = hn::NegMulAdd(all(d, a.rate), step, decayed);
    const auto without_z = hn::NegMulAdd(all(d, 1 - a.beta), z, w);
    return hn::MulAdd(all(d, a.beta * a.mix + 1 - a.beta), s[0],
                      hn::Mul(all(d, 1 - a.mix), without_z));
  });
}

void schedule_free_all(const ScheduleFreeNumbers& numbers, const ConstView& g, const View& y,
                       const View& z, const View& v, const View& m, const View& rounded) {
  if (v.data == nullptr) {
    form<false, false>(numbers, g, y, {z}, rounded);
  } else if (m.data == nullptr) {
    form<true, false>(numbers, g, y, {z, v}, rounded);
  } else {
    form<true, true>(numbers, g, y, {z, v, m}, rounded);
  }
}

}  // namespace
}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {

HWY_EXPORT(schedule_free_all);

void schedule_free(const Cpu&, const ScheduleFreeNumbers& numbers, const ConstView& g,
                   const View& y, const View& z, const View& v, const View& m,
                   const View& rounded) {
  HWY_DYNAMIC_DISPATCH(schedule_free_all)(numbers, g, y, z, v, m, rounded);
}

}  // namespace ingot::kernels
#endif
