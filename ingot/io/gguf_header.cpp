#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_set>

#include "ingot/base/error.h"
#include "ingot/io/gguf.h"

namespace ingot {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are read as they lie");

constexpr std::string_view magic = "GGUF";
constexpr int deepest_array = 4;
constexpr uint32_t most_dimensions = 4;
constexpr size_t longest_name = 64;  // of a tensor, with the zero byte that ggml adds
constexpr uint64_t longest_key = 65535;

// Reads numbers and words off the file, never beyond its end.
class Reader {
 public:
  Reader(std::span<const std::byte> bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  size_t left() const { return bytes_.size() - at_; }
  size_t at() const { return at_; }
  bool wide = true;  // counts of 64 bits

  template <class... Parts>
  void require(Condition condition, const Parts&... parts) const {
    check(condition, ErrorKind::format, file_, ": ", parts...);
  }

  template <class T>
  T number(std::string_view what) {
    T value;
    std::memcpy(&value, take(sizeof(T), what), sizeof(T));
    return value;
  }

  uint64_t count(std::string_view what) {
    return wide ? number<uint64_t>(what) : number<uint32_t>(what);
  }

  // How many things follow, each of which takes at least `least` bytes.
  size_t count_of(size_t least, std::string_view what) {
    const uint64_t stated = count(what);
    require(stated <= left() / least, what, ": there cannot be ", stated, ": ", left(),
            " bytes are left in the file; it is damaged or truncated");
    return stated;
  }

  std::string text(std::string_view what) {
    const size_t length = count_of(1, what);
    return {reinterpret_cast<const char*>(take(length, what)), length};
  }

 private:
  const std::byte* take(size_t bytes, std::string_view what) {
    require(bytes <= left(), what, ": ends before its end: ", bytes, " bytes are needed, ", left(),
            " are left; the file is truncated");
    const std::byte* here = bytes_.data() + at_;
    at_ += bytes;
    return here;
  }

  std::span<const std::byte> bytes_;
  const std::string& file_;
  size_t at_ = 0;
};

GgufKind kind_numbered(uint32_t number, const std::string& key, const Reader& reader) {
  reader.require(number <= static_cast<uint32_t>(GgufKind::f64), key, ": no type has the number ",
                 number);
  return static_cast<GgufKind>(number);
}

bool truth(uint8_t byte, const std::string& key, const Reader& reader) {
  reader.require(byte <= 1, key, ": a boolean is neither 0 nor 1: it is ", int{byte});
  return byte == 1;
}

template <class T>
GgufArray numbers(Reader& reader, const std::string& key) {
  std::vector<T> all(reader.count_of(sizeof(T), key));
  for (T& one : all) {
    one = reader.number<T>(key);
  }
  return {std::move(all)};
}

GgufArray read_array(Reader& reader, const std::string& key, int depth);

template <class T, class F>
GgufArray elements(Reader& reader, const std::string& key, size_t least, F&& read) {
  std::vector<T> all;
  const size_t count = reader.count_of(least, key);
  for (size_t i = 0; i < count; ++i) {
    all.push_back(read());
  }
  return {std::move(all)};
}

GgufArray read_array(Reader& reader, const std::string& key, int depth) {
  reader.require(depth <= deepest_array, key, ": arrays are nested more than ", deepest_array,
                 " deep");
  switch (kind_numbered(reader.number<uint32_t>(key), key, reader)) {
    case GgufKind::u8: return numbers<uint8_t>(reader, key);
    case GgufKind::i8: return numbers<int8_t>(reader, key);
    case GgufKind::u16: return numbers<uint16_t>(reader, key);
    case GgufKind::i16: return numbers<int16_t>(reader, key);
    case GgufKind::u32: return numbers<uint32_t>(reader, key);
    case GgufKind::i32: return numbers<int32_t>(reader, key);
    case GgufKind::f32: return numbers<float>(reader, key);
    case GgufKind::u64: return numbers<uint64_t>(reader, key);
    case GgufKind::i64: return numbers<int64_t>(reader, key);
    case GgufKind::f64: return numbers<double>(reader, key);
    case GgufKind::bool_:
      return elements<bool>(reader, key, 1,
                            [&] { return truth(reader.number<uint8_t>(key), key, reader); });
    case GgufKind::string:
      return elements<std::string>(reader, key, reader.wide ? 8 : 4,
                                   [&] { return reader.text(key); });
    case GgufKind::array:
      return elements<GgufArray>(reader, key, reader.wide ? 12 : 8,
                                 [&] { return read_array(reader, key, depth + 1); });
  }
  throw Error(ErrorKind::internal, "gguf: a kind of value was forgotten");
}

GgufValue read_value(Reader& reader, const std::string& key) {
  switch (kind_numbered(reader.number<uint32_t>(key), key, reader)) {
    case GgufKind::u8: return {reader.number<uint8_t>(key)};
    case GgufKind::i8: return {reader.number<int8_t>(key)};
    case GgufKind::u16: return {reader.number<uint16_t>(key)};
    case GgufKind::i16: return {reader.number<int16_t>(key)};
    case GgufKind::u32: return {reader.number<uint32_t>(key)};
    case GgufKind::i32: return {reader.number<int32_t>(key)};
    case GgufKind::f32: return {reader.number<float>(key)};
    case GgufKind::u64: return {reader.number<uint64_t>(key)};
    case GgufKind::i64: return {reader.number<int64_t>(key)};
    case GgufKind::f64: return {reader.number<double>(key)};
    case GgufKind::bool_: return {truth(reader.number<uint8_t>(key), key, reader)};
    case GgufKind::string: return {reader.text(key)};
    case GgufKind::array: return {read_array(reader, key, 1)};
  }
  throw Error(ErrorKind::internal, "gguf: a kind of value was forgotten");
}

uint32_t read_version(Reader& reader) {
  char start[4] = {};
  for (char& letter : start) {
    letter = reader.number<char>("magic");
  }
  reader.require(std::string_view(start, 4) == magic,
                 "not a GGUF file: it does not start with the letters GGUF");
  const auto version = reader.number<uint32_t>("version");
  reader.require(
      (version & 0xffffU) != 0 || version == 0,
      "the file is big-endian; Ingot reads and writes little-endian files: convert it with "
      "the program that made it");
  reader.require(version >= 1 && version <= 3, "version ", version,
                 " is not known; Ingot reads 1, 2 and 3");
  return version;
}

int64_t read_alignment(const GgufMetadata& metadata, const std::string& file) {
  const int64_t alignment = metadata.integer_or("general.alignment", 32, file);
  check(alignment > 0 && alignment <= (int64_t{1} << 30) &&
            std::has_single_bit(static_cast<uint64_t>(alignment)),
        ErrorKind::format, file, ": general.alignment: must be a power of two: it is ", alignment);
  return alignment;
}

// Dimensions and type of one tensor, and the bytes they make; `file_bytes` bounds the product, so
// that nothing overflows.
GgufTensor read_tensor(Reader& reader, int64_t file_bytes) {
  GgufTensor tensor;
  tensor.name = reader.text("a tensor's name");
  const std::string& name = tensor.name;
  reader.require(
      !name.empty() && name.size() <= longest_name && name.find('\0') == std::string::npos,
      "a tensor's name must have 1 to ", longest_name, " bytes, none of them 0: it has ",
      name.size());
  const auto dimensions = reader.number<uint32_t>(name);
  reader.require(dimensions >= 1 && dimensions <= most_dimensions, name,
                 ": must have 1 to 4 dimensions: it has ", dimensions);
  std::vector<int64_t> sizes;
  int64_t values = 1;
  for (uint32_t i = 0; i < dimensions; ++i) {
    const uint64_t size = reader.count(name);
    reader.require(size >= 1 && size <= static_cast<uint64_t>(INT64_MAX), name, ": dimension ", i,
                   " cannot be ", size);
    reader.require(!__builtin_mul_overflow(values, static_cast<int64_t>(size), &values), name,
                   ": its dimensions multiply to more than 63 bits");
    sizes.insert(sizes.begin(), static_cast<int64_t>(size));
  }
  tensor.shape = Shape(sizes);
  const auto number = reader.number<uint32_t>(name);
  const GgmlLayout* layout = ggml_layout_numbered(number);
  reader.require(layout != nullptr, name, ": no type that Ingot knows has the number ", number);
  tensor.type = layout->type;
  reader.require(sizes.back() % layout->block_values == 0, name, ": rows of ", sizes.back(),
                 " values are no whole blocks of ", layout->name, ", which hold ",
                 layout->block_values);
  const int64_t blocks = values / layout->block_values;
  reader.require(blocks <= file_bytes / layout->block_bytes, name, ": ", tensor.shape, " in ",
                 layout->name, " is larger than the file of ", file_bytes, " bytes");
  const auto offset = reader.number<uint64_t>(name);
  tensor.end = blocks * layout->block_bytes;
  reader.require(offset <= static_cast<uint64_t>(file_bytes), name,
                 ": begins beyond the end: byte ", offset, " of the data, the file has ",
                 file_bytes, " bytes");
  tensor.begin = static_cast<int64_t>(offset);
  tensor.end += tensor.begin;
  return tensor;
}

void check_places(const GgufHeader& header, int64_t file_bytes, const std::string& file) {
  const int64_t data = file_bytes - header.data_begin;
  std::vector<const GgufTensor*> order;
  for (const GgufTensor& tensor : header.tensors) {
    check(tensor.begin % header.alignment == 0, ErrorKind::format, file, ": ", tensor.name,
          ": not aligned: begins at byte ", tensor.begin, " of the data, the alignment is ",
          header.alignment);
    check(tensor.end <= data, ErrorKind::format, file, ": ", tensor.name, ": ends at byte ",
          tensor.end, " of the data, of which the file has ", std::max<int64_t>(data, 0),
          "; it is truncated");
    order.push_back(&tensor);
  }
  std::sort(order.begin(), order.end(),
            [](const GgufTensor* a, const GgufTensor* b) { return a->begin < b->begin; });
  for (size_t i = 1; i < order.size(); ++i) {
    check(order[i - 1]->end <= order[i]->begin, ErrorKind::format, file, ": ", order[i]->name,
          ": overlaps ", order[i - 1]->name, ": begins at byte ", order[i]->begin,
          ", the other ends at ", order[i - 1]->end);
  }
}

int64_t rounded_up(int64_t value, int64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

// The bytes of a header as they are written.
struct Text {
  std::string bytes;

  template <class T>
  void number(T value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(std::string_view value) {
    number(uint64_t{value.size()});
    bytes += value;
  }
  void kind(GgufKind value) { number(static_cast<uint32_t>(value)); }
  void element(const std::string& value) { text(value); }
  void element(const GgufArray& array) {
    kind(array.element());
    std::visit(
        [&](const auto& all) {
          number(uint64_t{all.size()});
          for (const auto& one : all) {
            element(one);
          }
        },
        array.values);
  }
  void element(bool value) { number(static_cast<uint8_t>(value)); }
  template <class T>
    requires std::is_arithmetic_v<T>
  void element(T value) {
    number(value);
  }
};

void check_writable(const GgufTensor& tensor, std::unordered_set<std::string_view>& names) {
  check(!tensor.name.empty() && tensor.name.size() < longest_name, ErrorKind::argument,
        "gguf: ", tensor.name, ": a tensor's name must have 1 to ", longest_name - 1,
        " bytes: it has ", tensor.name.size());
  check(names.insert(tensor.name).second, ErrorKind::argument, "gguf: ", tensor.name,
        ": this name is used twice");
  const int64_t rank = tensor.shape.rank();
  check(rank >= 1 && rank <= int64_t{most_dimensions} && tensor.shape.elements() > 0,
        ErrorKind::argument, "gguf: ", tensor.name,
        ": must have 1 to 4 dimensions, none of them 0: got ", tensor.shape);
  check(tensor.shape.size(-1) % layout_of(tensor.type).block_values == 0, ErrorKind::argument,
        "gguf: ", tensor.name, ": rows of ", tensor.shape.size(-1),
        " values are no whole blocks of ", name(tensor.type));
}

}  // namespace

GgufHeader parse_gguf_header(std::span<const std::byte> file, const std::string& name) {
  Reader reader(file, name);
  GgufHeader header;
  header.version = read_version(reader);
  reader.wide = header.version > 1;
  // A tensor takes a name's length, a count, a dimension, a type and an offset at least.
  const size_t tensors = reader.count_of(reader.wide ? 32 : 24, "the number of tensors");
  const size_t keys = reader.count_of(reader.wide ? 13 : 9, "the number of metadata values");
  for (size_t i = 0; i < keys; ++i) {
    const std::string key = reader.text("a metadata key");
    reader.require(!key.empty() && key.size() <= longest_key, "a metadata key must have 1 to ",
                   longest_key, " bytes: it has ", key.size());
    reader.require(!header.metadata.contains(key), key, ": this key is in the metadata twice");
    header.metadata.set(key, read_value(reader, key));
  }
  header.alignment = read_alignment(header.metadata, name);
  const auto file_bytes = static_cast<int64_t>(file.size());
  std::unordered_set<std::string> names;
  for (size_t i = 0; i < tensors; ++i) {
    header.tensors.push_back(read_tensor(reader, file_bytes));
    reader.require(names.insert(header.tensors.back().name).second, header.tensors.back().name,
                   ": this name is in the file twice");
  }
  header.data_begin = rounded_up(static_cast<int64_t>(reader.at()), header.alignment);
  check_places(header, file_bytes, name);
  return header;
}

std::string gguf_header_text(GgufHeader& header) {
  check(header.alignment >= 8 && std::has_single_bit(static_cast<uint64_t>(header.alignment)),
        ErrorKind::argument, "gguf: the alignment must be a power of two from 8 on: got ",
        header.alignment);
  header.version = 3;
  if (header.alignment != 32 || header.metadata.contains("general.alignment")) {
    header.metadata.set_u32("general.alignment", header.alignment);
  }
  Text out;
  out.bytes = magic;
  out.number(header.version);
  out.number(uint64_t{header.tensors.size()});
  out.number(uint64_t{header.metadata.size()});
  for (const auto& [key, value] : header.metadata) {
    out.text(key);
    out.kind(value.kind());
    std::visit([&](const auto& one) { out.element(one); }, value.value);
  }
  int64_t end = 0;
  std::unordered_set<std::string_view> names;
  for (GgufTensor& tensor : header.tensors) {
    check_writable(tensor, names);
    tensor.begin = rounded_up(end, header.alignment);
    end = tensor.end = tensor.begin + bytes_of(tensor.type, tensor.shape.elements());
    out.text(tensor.name);
    out.number(static_cast<uint32_t>(tensor.shape.rank()));
    for (int64_t i = tensor.shape.rank() - 1; i >= 0; --i) {
      out.number(static_cast<uint64_t>(tensor.shape[i]));
    }
    out.number(static_cast<uint32_t>(tensor.type));
    out.number(static_cast<uint64_t>(tensor.begin));
  }
  header.data_begin = rounded_up(static_cast<int64_t>(out.bytes.size()), header.alignment);
  out.bytes.resize(static_cast<size_t>(header.data_begin), '\0');
  return std::move(out.bytes);
}

}  // namespace ingot
