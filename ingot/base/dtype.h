#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string_view>
#include <utility>

#include "ingot/base/error.h"
#include "ingot/base/half.h"

namespace ingot {

// The type of a tensor's elements.
enum class DType : uint8_t { bool_, u8, i8, i32, i64, f16, bf16, f32, f64 };

int64_t size_of(DType type);        // bytes of one element
std::string_view name(DType type);  // "bf16"
std::optional<DType> dtype_named(std::string_view name);
std::ostream& operator<<(std::ostream& out, DType type);

constexpr bool is_float(DType type) { return type >= DType::f16; }
constexpr bool is_half(DType type) { return type == DType::f16 || type == DType::bf16; }

// The type in which sums over elements of `type` are kept, and gradients of parameters
// accumulated: f32 for the half types, itself otherwise.
constexpr DType accumulator(DType type) { return is_half(type) ? DType::f32 : type; }

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<bool> {
  static constexpr DType value = DType::bool_;
};
template <>
struct DTypeOf<uint8_t> {
  static constexpr DType value = DType::u8;
};
template <>
struct DTypeOf<int8_t> {
  static constexpr DType value = DType::i8;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct DTypeOf<int64_t> {
  static constexpr DType value = DType::i64;
};
template <>
struct DTypeOf<F16> {
  static constexpr DType value = DType::f16;
};
template <>
struct DTypeOf<BF16> {
  static constexpr DType value = DType::bf16;
};
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
};
template <class T>
inline constexpr DType dtype_of = DTypeOf<T>::value;

// Calls f.template operator()<T>() with the C++ type of a floating-point dtype:
//   visit_float(x.dtype, "softmax", [&]<class T>() { … });
// Throws Error(dtype) naming `op` for the other types.
template <class F>
decltype(auto) visit_float(DType type, std::string_view op, F&& f) {
  switch (type) {
    case DType::f16: return std::forward<F>(f).template operator()<F16>();
    case DType::bf16: return std::forward<F>(f).template operator()<BF16>();
    case DType::f32: return std::forward<F>(f).template operator()<float>();
    case DType::f64: return std::forward<F>(f).template operator()<double>();
    default: break;
  }
  throw Error(ErrorKind::dtype, concat(op, ": takes floating-point tensors: got ", name(type)));
}

// The same for every dtype.
template <class F>
decltype(auto) visit_any(DType type, F&& f) {
  switch (type) {
    case DType::bool_: return std::forward<F>(f).template operator()<bool>();
    case DType::u8: return std::forward<F>(f).template operator()<uint8_t>();
    case DType::i8: return std::forward<F>(f).template operator()<int8_t>();
    case DType::i32: return std::forward<F>(f).template operator()<int32_t>();
    case DType::i64: return std::forward<F>(f).template operator()<int64_t>();
    case DType::f16: return std::forward<F>(f).template operator()<F16>();
    case DType::bf16: return std::forward<F>(f).template operator()<BF16>();
    case DType::f32: return std::forward<F>(f).template operator()<float>();
    case DType::f64: return std::forward<F>(f).template operator()<double>();
  }
  throw Error(ErrorKind::internal, "dtype: not one of the known types");
}

}  // namespace ingot
