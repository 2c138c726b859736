#include "ingot/io/safetensors_header.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

#include "ingot/base/error.h"
#include "ingot/base/json.h"
#include "ingot/base/json_library.h"

namespace ingot {
namespace {

using nlohmann::json;

constexpr std::array<std::pair<std::string_view, DType>, 9> dtypes = {{{"BOOL", DType::bool_},
                                                                       {"U8", DType::u8},
                                                                       {"I8", DType::i8},
                                                                       {"I32", DType::i32},
                                                                       {"I64", DType::i64},
                                                                       {"F16", DType::f16},
                                                                       {"BF16", DType::bf16},
                                                                       {"F32", DType::f32},
                                                                       {"F64", DType::f64}}};
constexpr std::string_view metadata_key = "__metadata__";

// What is wrong with one tensor of one file.
struct Subject {
  const std::string& file;
  const std::string& tensor;

  template <class... Parts>
  void require(Condition condition, const Parts&... parts) const {
    check(condition, ErrorKind::format, file, ": ", tensor, ": ", parts...);
  }
};

// JSON parsers keep the last of two equal keys in silence, which hides one of two tensors.
class DuplicateKeys {
 public:
  explicit DuplicateKeys(const std::string& file) : file_(file) {}

  bool operator()(int, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::object_start || event == json::parse_event_t::array_start) {
      keys_.emplace_back();
      check(keys_.size() <= 4, ErrorKind::format, file_, ": header: nested too deep");
    } else if (event == json::parse_event_t::object_end ||
               event == json::parse_event_t::array_end) {
      keys_.pop_back();
    } else if (event == json::parse_event_t::key) {
      const auto& key = value.get_ref<const std::string&>();
      check(keys_.back().insert(key).second, ErrorKind::format, file_, ": ", key,
            ": this name is in the header twice");
    }
    return true;
  }

 private:
  const std::string& file_;
  std::vector<std::set<std::string>> keys_;
};

json parse(std::string_view text, const std::string& file) {
  check(text.starts_with('{'), ErrorKind::format, file,
        ": not a safetensors file: the header does not start with {");
  try {
    return json::parse(text, DuplicateKeys(file));
  } catch (const json::exception& error) {
    throw Error(ErrorKind::format, concat(file, ": header: not valid JSON: ", error.what()));
  }
}

DType dtype_of_name(const std::string& name, const Subject& subject) {
  for (const auto& [known, type] : dtypes) {
    if (known == name) {
      return type;
    }
  }
  subject.require(false, "unknown dtype ", name,
                  "; Ingot reads BOOL, U8, I8, I32, I64, F16, BF16, F32, F64");
  return DType::f32;
}

// Sizes whose product may overflow are refused even where one of them is zero.
Shape shape_of(const std::vector<int64_t>& sizes, const Subject& subject) {
  subject.require(static_cast<int64_t>(sizes.size()) <= Shape::max_rank, "has ", sizes.size(),
                  " dimensions; Ingot reads at most ", Shape::max_rank);
  int64_t product = 8;  // the most bytes an element has
  for (const int64_t size : sizes) {
    subject.require(size >= 0, "negative size in its shape: ", size);
    subject.require(!__builtin_mul_overflow(product, std::max<int64_t>(size, 1), &product),
                    "the sizes of its shape multiply to more than 63 bits");
  }
  return Shape(std::span<const int64_t>(sizes));
}

SafetensorsEntry entry_of(const std::string& name, const json& about, const std::string& file) {
  const Subject subject{file, name};
  const std::string where = concat(file, ": ", name);
  SafetensorsEntry entry;
  entry.name = name;
  entry.dtype = dtype_of_name(json_field<std::string>(about, "dtype", where), subject);
  entry.shape = shape_of(json_field<std::vector<int64_t>>(about, "shape", where), subject);
  const auto offsets = json_field<std::vector<int64_t>>(about, "data_offsets", where);
  subject.require(offsets.size() == 2, "data_offsets must be two numbers: got ", offsets.size());
  entry.begin = offsets[0];
  entry.end = offsets[1];
  return entry;
}

void check_bytes(const SafetensorsEntry& entry, int64_t data_bytes, const std::string& file) {
  const Subject subject{file, entry.name};
  subject.require(entry.begin >= 0 && entry.begin <= entry.end, "data_offsets are no interval: [",
                  entry.begin, ", ", entry.end, ")");
  subject.require(entry.end <= data_bytes, "its bytes [", entry.begin, ", ", entry.end,
                  ") lie outside the file, which holds ", data_bytes,
                  " bytes of data; the file is truncated or damaged");
  const int64_t expected = entry.shape.elements() * size_of(entry.dtype);
  subject.require(entry.end - entry.begin == expected, "size differs: ", name(entry.dtype), " ",
                  entry.shape, " takes ", expected, " bytes, data_offsets span ",
                  entry.end - entry.begin);
}

// Sorted by place, each tensor must begin where the one before ends.
void check_cover(std::vector<SafetensorsEntry>& entries, int64_t data_bytes,
                 const std::string& file) {
  std::sort(entries.begin(), entries.end(),
            [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
              return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
            });
  int64_t end = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    const Subject subject{file, entries[i].name};
    subject.require(entries[i].begin >= end, "its bytes overlap those of ",
                    i > 0 ? entries[i - 1].name : "");
    subject.require(entries[i].begin == end, "gap of ", entries[i].begin - end,
                    " bytes before it; the format allows none");
    end = entries[i].end;
  }
  check(end == data_bytes, ErrorKind::format, file, ": ", data_bytes - end,
        " bytes follow the last tensor; the format allows none");
}

}  // namespace

std::string_view safetensors_name(DType type) {
  return std::find_if(dtypes.begin(), dtypes.end(),
                      [&](const auto& row) { return row.second == type; })
      ->first;
}

SafetensorsHeader parse_safetensors_header(std::string_view text, int64_t data_bytes,
                                           const std::string& file) {
  const json root = parse(text, file);
  SafetensorsHeader header;
  for (const auto& [key, about] : root.items()) {
    if (key == metadata_key) {
      check(about.is_object(), ErrorKind::format, file, ": __metadata__: not an object");
      for (const auto& [word, value] : about.items()) {
        check(value.is_string(), ErrorKind::format, file, ": __metadata__: ", word, ": not a text");
        header.metadata[word] = value.get<std::string>();
      }
      continue;
    }
    header.entries.push_back(entry_of(key, about, file));
    check_bytes(header.entries.back(), data_bytes, file);
  }
  check_cover(header.entries, data_bytes, file);
  return header;
}

std::string safetensors_header_text(const SafetensorsHeader& header) {
  nlohmann::ordered_json root = nlohmann::ordered_json::object();
  if (!header.metadata.empty()) {
    root[std::string(metadata_key)] = header.metadata;
  }
  for (const SafetensorsEntry& entry : header.entries) {
    nlohmann::ordered_json about;
    about["dtype"] = safetensors_name(entry.dtype);
    about["shape"] = std::vector<int64_t>(entry.shape.begin(), entry.shape.end());
    about["data_offsets"] = {entry.begin, entry.end};
    root[entry.name] = std::move(about);
  }
  std::string text = root.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

}  // namespace ingot
