#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace ingot {

// What a GGUF file says about itself: typed values under names such as "llama.block_count".

// The numbers by which files name the types (ggml: docs/gguf.md); the order of both variants below.
enum class GgufKind : uint32_t {
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  f32,
  bool_,
  string,
  array,
  u64,
  i64,
  f64,
};
std::string_view name(GgufKind kind);

struct GgufArray {
  std::variant<std::vector<uint8_t>, std::vector<int8_t>, std::vector<uint16_t>,
               std::vector<int16_t>, std::vector<uint32_t>, std::vector<int32_t>,
               std::vector<float>, std::vector<bool>, std::vector<std::string>,
               std::vector<GgufArray>, std::vector<uint64_t>, std::vector<int64_t>,
               std::vector<double>>
      values;

  GgufKind element() const { return static_cast<GgufKind>(values.index()); }
  int64_t size() const;
  bool operator==(const GgufArray& other) const = default;
};

struct GgufValue {
  std::variant<uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t, float, bool, std::string,
               GgufArray, uint64_t, int64_t, double>
      value;

  GgufKind kind() const { return static_cast<GgufKind>(value.index()); }
  bool operator==(const GgufValue& other) const = default;
};

// For people: numbers and words as they are, of arrays the first few elements.
std::string shown(const GgufValue& value);

// Names with values, in the order of the file. Where an integer or a float is asked for, every
// width of it will do, as files differ in the widths they choose.
class GgufMetadata {
 public:
  using Entry = std::pair<std::string, GgufValue>;

  // Replaces what the key had.
  void set(std::string_view key, GgufValue value);
  void set(std::string_view key, std::string_view text);
  void set(std::string_view key, const char* text) { set(key, std::string_view(text)); }
  void set_u32(std::string_view key, int64_t value);  // Error(argument) where it does not fit
  void set_f32(std::string_view key, double value);
  void set_bool(std::string_view key, bool value);
  void erase(std::string_view key);

  const GgufValue* find(std::string_view key) const;  // null where absent
  bool contains(std::string_view key) const { return find(key) != nullptr; }

  // All throw Error(format) naming `file` and the key where it has another type; the first four
  // also where it is absent.
  int64_t integer(std::string_view key, const std::string& file) const;
  double number(std::string_view key, const std::string& file) const;
  std::string text(std::string_view key, const std::string& file) const;
  std::vector<std::string> texts(std::string_view key, const std::string& file) const;
  int64_t integer_or(std::string_view key, int64_t otherwise, const std::string& file) const;
  double number_or(std::string_view key, double otherwise, const std::string& file) const;
  bool flag_or(std::string_view key, bool otherwise, const std::string& file) const;
  std::string text_or(std::string_view key, std::string_view otherwise,
                      const std::string& file) const;

  size_t size() const { return entries_.size(); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }

 private:
  const GgufValue& required(std::string_view key, const std::string& file) const;

  std::vector<Entry> entries_;
  std::unordered_map<std::string, size_t> index_;
};

}  // namespace ingot
