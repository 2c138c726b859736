#include "ingot/io/gguf_value.h"

#include <algorithm>
#include <array>
#include <limits>

#include "ingot/base/edit_distance.h"
#include "ingot/base/error.h"

namespace ingot {
namespace {

constexpr std::array<std::string_view, 13> kind_names = {
    "u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "string", "array", "u64", "i64", "f64"};

// The value as an integer of 64 bits with sign, where it is one and fits.
std::optional<int64_t> as_integer(const GgufValue& value) {
  return std::visit(
      []<class T>(const T& one) -> std::optional<int64_t> {
        if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
          if (std::in_range<int64_t>(one)) {
            return static_cast<int64_t>(one);
          }
        }
        return std::nullopt;
      },
      value.value);
}

std::optional<double> as_number(const GgufValue& value) {
  if (const auto* single = std::get_if<float>(&value.value)) {
    return *single;
  }
  if (const auto* twice = std::get_if<double>(&value.value)) {
    return *twice;
  }
  const auto whole = as_integer(value);
  return whole ? std::optional<double>(static_cast<double>(*whole)) : std::nullopt;
}

void wrong_kind(const std::string& file, std::string_view key, std::string_view wanted,
                const GgufValue& value) {
  throw Error(ErrorKind::format, concat(file, ": ", key, ": must be ", wanted, ": it is ",
                                        name(value.kind()), " ", shown(value)));
}

std::string shown_element(const std::string& text) { return "\"" + text + "\""; }
std::string shown_element(const GgufArray& array) {
  return concat("[", array.size(), " elements]");
}
std::string shown_element(bool value) { return value ? "true" : "false"; }
template <class T>
std::string shown_element(const T& number) {
  return concat(+number);
}

}  // namespace

std::string_view name(GgufKind kind) { return kind_names.at(static_cast<size_t>(kind)); }

int64_t GgufArray::size() const {
  return std::visit([](const auto& all) { return static_cast<int64_t>(all.size()); }, values);
}

std::string shown(const GgufValue& value) {
  if (const auto* array = std::get_if<GgufArray>(&value.value)) {
    std::string out = "[";
    std::visit(
        [&](const auto& all) {
          for (size_t i = 0; i < std::min<size_t>(all.size(), 4); ++i) {
            out += (i > 0 ? ", " : "") + shown_element(all[i]);
          }
        },
        array->values);
    return out + (array->size() > 4 ? concat(", … ", array->size(), " in all]") : "]");
  }
  if (const auto* text = std::get_if<std::string>(&value.value)) {
    return text->size() <= 80 ? *text : text->substr(0, 60) + concat("… ", text->size(), " bytes");
  }
  return std::visit(
      []<class T>(const T& one) -> std::string {
        if constexpr (std::is_arithmetic_v<T>) {
          return shown_element(one);
        } else {
          return "";
        }
      },
      value.value);
}

void GgufMetadata::set(std::string_view key, GgufValue value) {
  const auto [at, is_new] = index_.emplace(std::string(key), entries_.size());
  if (is_new) {
    entries_.emplace_back(std::string(key), std::move(value));
  } else {
    entries_[at->second].second = std::move(value);
  }
}

void GgufMetadata::set(std::string_view key, std::string_view text) {
  set(key, GgufValue{std::string(text)});
}

void GgufMetadata::set_u32(std::string_view key, int64_t value) {
  check(std::in_range<uint32_t>(value), ErrorKind::argument, "gguf: ", key,
        ": does not fit 32 bits: ", value);
  set(key, GgufValue{static_cast<uint32_t>(value)});
}

void GgufMetadata::set_f32(std::string_view key, double value) {
  set(key, GgufValue{static_cast<float>(value)});
}

void GgufMetadata::set_bool(std::string_view key, bool value) { set(key, GgufValue{value}); }

void GgufMetadata::erase(std::string_view key) {
  const auto at = index_.find(std::string(key));
  if (at == index_.end()) {
    return;
  }
  entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(at->second));
  index_.clear();
  for (size_t i = 0; i < entries_.size(); ++i) {
    index_.emplace(entries_[i].first, i);
  }
}

const GgufValue* GgufMetadata::find(std::string_view key) const {
  const auto at = index_.find(std::string(key));
  return at == index_.end() ? nullptr : &entries_[at->second].second;
}

const GgufValue& GgufMetadata::required(std::string_view key, const std::string& file) const {
  const GgufValue* value = find(key);
  if (value == nullptr) {
    std::vector<std::string> keys;
    for (const Entry& entry : entries_) {
      keys.push_back(entry.first);
    }
    throw Error(ErrorKind::format,
                concat(file, ": no key '", key, "'", keys.empty() ? "" : "; the nearest is ",
                       nearest_path(key, keys)));
  }
  return *value;
}

int64_t GgufMetadata::integer(std::string_view key, const std::string& file) const {
  const GgufValue& value = required(key, file);
  const auto found = as_integer(value);
  if (!found) {
    wrong_kind(file, key, "an integer of at most 63 bits", value);
  }
  return *found;
}

double GgufMetadata::number(std::string_view key, const std::string& file) const {
  const GgufValue& value = required(key, file);
  const auto found = as_number(value);
  if (!found) {
    wrong_kind(file, key, "a number", value);
  }
  return *found;
}

std::string GgufMetadata::text(std::string_view key, const std::string& file) const {
  const GgufValue& value = required(key, file);
  const auto* found = std::get_if<std::string>(&value.value);
  if (found == nullptr) {
    wrong_kind(file, key, "a string", value);
  }
  return *found;
}

std::vector<std::string> GgufMetadata::texts(std::string_view key, const std::string& file) const {
  const GgufValue& value = required(key, file);
  const auto* array = std::get_if<GgufArray>(&value.value);
  const auto* found =
      array == nullptr ? nullptr : std::get_if<std::vector<std::string>>(&array->values);
  if (found == nullptr) {
    wrong_kind(file, key, "an array of strings", value);
  }
  return *found;
}

int64_t GgufMetadata::integer_or(std::string_view key, int64_t otherwise,
                                 const std::string& file) const {
  return contains(key) ? integer(key, file) : otherwise;
}

double GgufMetadata::number_or(std::string_view key, double otherwise,
                               const std::string& file) const {
  return contains(key) ? number(key, file) : otherwise;
}

bool GgufMetadata::flag_or(std::string_view key, bool otherwise, const std::string& file) const {
  const GgufValue* value = find(key);
  if (value == nullptr) {
    return otherwise;
  }
  const auto* found = std::get_if<bool>(&value->value);
  if (found == nullptr) {
    wrong_kind(file, key, "true or false", *value);
  }
  return *found;
}

std::string GgufMetadata::text_or(std::string_view key, std::string_view otherwise,
                                  const std::string& file) const {
  return contains(key) ? text(key, file) : std::string(otherwise);
}

}  // namespace ingot
