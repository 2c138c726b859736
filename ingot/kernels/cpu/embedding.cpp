#include "ingot/kernels/embedding.h"

#include <cstring>
#include <type_traits>

#include "ingot/kernels/cpu/parallel.h"

namespace ingot::kernels {

void embedding(const Cpu&, const ConstView& weight, const ConstView& ids, const View& y) {
  const auto row_bytes = static_cast<size_t>(weight.size(1) * size_of(weight.dtype));
  const auto* table = weight.as<std::byte>();
  auto* out = y.as<std::byte>();
  const auto* index = ids.as<int64_t>();
  parallel_for(ids.elements(), 64, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      std::memcpy(out + static_cast<size_t>(n) * row_bytes,
                  table + static_cast<size_t>(index[n]) * row_bytes, row_bytes);
    }
  });
}

void embedding_backward(const Cpu&, const ConstView& ids, const ConstView& dy,
                        const View& dweight) {
  const int64_t width = dweight.size(1);
  const int64_t count = ids.elements();
  const auto* index = ids.as<int64_t>();
  visit_float(dy.dtype, "embedding", [&]<class T>() {
    using Sum = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const T* from = dy.as<T>();
    Sum* to = dweight.as<Sum>();
    constexpr int64_t cache_line = 64 / static_cast<int64_t>(sizeof(Sum));
    parallel_for(width, cache_line, [&](int64_t begin, int64_t end) {
      for (int64_t n = 0; n < count; ++n) {
        const T* in = from + n * width;
        Sum* row = to + index[n] * width;
        for (int64_t d = begin; d < end; ++d) {
          row[d] += static_cast<Sum>(in[d]);
        }
      }
    });
  });
}

}  // namespace ingot::kernels
