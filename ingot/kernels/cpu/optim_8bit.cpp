#include "ingot/kernels/optim_8bit.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ingot/kernels/cpu/optim_8bit.cpp"
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/highway.h>
#include "ingot/kernels/cpu/update-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace {

constexpr int64_t largest_block = 4096;

// The map, and the bounds between neighbours: x has the code that counts the bounds below it.
template <class T>
struct Codebook {
  explicit Codebook(bool is_signed) {
    const float* map = dynamic_map(is_signed);
    for (size_t i = 0; i < 256; ++i) {
      values[i] = map[i];
      bounds[i] = i < 255 ? (static_cast<T>(map[i]) + map[i + 1]) / 2 : hwy::HighestValue<T>();
    }
  }
  HWY_ALIGN T values[256];
  HWY_ALIGN T bounds[256];
};

// One moment of one block in full.
template <class T>
struct Unpacked {
  HWY_ALIGN T values[largest_block + 64];  // whole vectors beyond the last element
  T most = 0;
};

template <class T>
void unpack(const Codebook<T>& book, const uint8_t* codes, T scale, int64_t n, Unpacked<T>& out) {
  for (int64_t i = 0; i < n; ++i) {
    out.values[i] = book.values[codes[i]] * scale;
  }
}

// codes ← the nearest of the map to value/most, by bisection in eight steps of all lanes.
template <class T>
void pack(const Codebook<T>& book, const Unpacked<T>& moment, int64_t n, bool is_signed,
          uint8_t* codes) {
  const Lanes<T> d;
  using Index = hwy::MakeSigned<T>;
  const hn::RebindToSigned<Lanes<T>> di;
  HWY_ALIGN Index found[hn::MaxLanes(Lanes<T>())];
  const auto inverse = all(d, moment.most > 0 ? 1.0 / static_cast<double>(moment.most) : 0);
  const auto most = all(d, moment.most > 0 ? static_cast<double>(moment.most) : 1);
  each(d, n, [&](int64_t begin, int64_t count) {
    const auto value = hn::Load(d, moment.values + begin);
    const auto x = sizeof(T) == 8 ? hn::Div(value, most) : hn::Mul(value, inverse);
    auto code = hn::Zero(di);
    for (int half = 128; half > 0; half /= 2) {
      const auto step = hn::Set(di, static_cast<Index>(half));
      const auto below =
          hn::GatherIndex(d, book.bounds, hn::Add(code, hn::Set(di, static_cast<Index>(half - 1))));
      const auto above = hn::RebindMask(di, hn::Gt(x, below));
      code = hn::Add(code, hn::IfThenElseZero(above, step));
    }
    if (is_signed) {  // −0 apart, what is below 0 stays below
      const auto lost = hn::And(hn::RebindMask(di, hn::Lt(value, hn::Zero(d))),
                                hn::Eq(code, hn::Set(di, Index{signed_zero_code})));
      code = hn::Sub(code, hn::IfThenElseZero(lost, hn::Set(di, Index{1})));
    }
    hn::Store(code, di, found);
    for (int64_t i = 0; i < count; ++i) {
      codes[begin + i] = static_cast<uint8_t>(found[i]);
    }
  });
}

template <class T, class R>
void move(const AdamNumbers& numbers, const T* g, T* p, R* rounded, int64_t n, Unpacked<T>& first,
          Unpacked<T>& second) {
  const Lanes<T> d;
  const AdamNumbers a = numbers;
  auto most_m = hn::Zero(d);
  auto most_v = hn::Zero(d);
  each(d, n, [&](int64_t i, int64_t count) {
    const auto grad = hn::Mul(all(d, a.scale), load_some(d, g + i, count));
    const auto w = load_some(d, p + i, count);
    const auto within = hn::FirstN(d, static_cast<size_t>(count));
    const auto old_m = hn::IfThenElseZero(within, hn::Load(d, first.values + i));
    const auto old_v = hn::IfThenElseZero(within, hn::Load(d, second.values + i));
    const auto m = hn::MulAdd(all(d, 1 - a.beta1), grad, hn::Mul(all(d, a.beta1), old_m));
    const auto v =
        hn::MulAdd(hn::Mul(all(d, 1 - a.beta2), grad), grad, hn::Mul(all(d, a.beta2), old_v));
    hn::Store(m, d, first.values + i);
    hn::Store(v, d, second.values + i);
    most_m = hn::Max(most_m, hn::Abs(m));
    most_v = hn::Max(most_v, v);
    const auto divisor = hn::MulAdd(all(d, a.root_scale), hn::Sqrt(v), all(d, a.eps));
    const auto next =
        hn::NegMulAdd(all(d, a.rate), hn::Div(m, divisor), hn::Mul(all(d, a.keep), w));
    store_some(d, next, p + i, count);
    if constexpr (!std::is_same_v<T, R>) {
      store_some(d, next, rounded + i, count);
    }
  });
  first.most = hn::GetLane(hn::MaxOfLanes(d, most_m));
  second.most = hn::GetLane(hn::MaxOfLanes(d, most_v));
}

void adam_8bit_all(const AdamNumbers& numbers, int64_t block, const ConstView& g, const View& p,
                   const Moment8bit& m, const Moment8bit& v, const View& rounded) {
  with_types(p, rounded, [&]<class T, class R>() {
    const Codebook<T> signed_book(true);
    const Codebook<T> unsigned_book(false);
    const int64_t count = p.elements();
    const int64_t blocks = (count + block - 1) / block;
    parallel_for(blocks, std::max<int64_t>(1, update_grain / block), [&](int64_t from, int64_t to) {
      Unpacked<T> first;
      Unpacked<T> second;
      for (int64_t b = from; b < to; ++b) {
        const int64_t at = b * block;
        const int64_t n = std::min(block, count - at);
        T& scale_m = m.scales.as<T>()[b];
        T& scale_v = v.scales.as<T>()[b];
        unpack(signed_book, m.codes.as<uint8_t>() + at, scale_m, n, first);
        unpack(unsigned_book, v.codes.as<uint8_t>() + at, scale_v, n, second);
        R* const copy = static_cast<R*>(rounded.data) + (rounded.data == nullptr ? 0 : at);
        move<T, R>(numbers, g.as<T>() + at, p.as<T>() + at, copy, n, first, second);
        pack(signed_book, first, n, true, m.codes.as<uint8_t>() + at);
        pack(unsigned_book, second, n, false, v.codes.as<uint8_t>() + at);
        scale_m = first.most;
        scale_v = second.most;
      }
    });
  });
}

}  // namespace
}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {

HWY_EXPORT(adam_8bit_all);

void adam_8bit(const Cpu&, const AdamNumbers& numbers, int64_t block, const ConstView& g,
               const View& p, const Moment8bit& m, const Moment8bit& v, const View& rounded) {
  HWY_DYNAMIC_DISPATCH(adam_8bit_all)(numbers, block, g, p, m, v, rounded);
}

}  // namespace ingot::kernels
#endif
