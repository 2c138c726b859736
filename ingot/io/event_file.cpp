#include "ingot/io/event_file.h"

#include <unistd.h>

#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>

#include "ingot/base/error.h"
#include "ingot/base/files.h"

namespace ingot {
namespace {

double now_seconds() {  // since 1970
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

constexpr std::array<uint32_t, 256> crc_table = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) {
      value = (value & 1) != 0 ? (value >> 1) ^ 0x82F63B78U : value >> 1;
    }
    table[i] = value;
  }
  return table;
}();

// TFRecord stores checksums so that a checksum of them is none of zeros.
uint32_t masked(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xA282EAD8U; }

template <class T>
void append_bytes(std::string& out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

void append_varint(std::string& out, uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

enum class Wire : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

void append_key(std::string& out, int field, Wire wire) {
  append_varint(out, static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(wire));
}

void append_text(std::string& out, int field, std::string_view text) {
  append_key(out, field, Wire::bytes);
  append_varint(out, text.size());
  out.append(text);
}

// Event { double wall_time = 1; int64 step = 2; … }
std::string begun_event(int64_t step) {
  std::string out;
  append_key(out, 1, Wire::fixed64);
  append_bytes(out, now_seconds());
  append_key(out, 2, Wire::varint);
  append_varint(out, static_cast<uint64_t>(step));
  return out;
}

// Summary.Value { string tag = 1; float simple_value = 2; }
std::string value_message(const std::string& tag, double value) {
  std::string out;
  append_text(out, 1, tag);
  append_key(out, 2, Wire::fixed32);
  append_bytes(out, static_cast<float>(value));
  return out;
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t crc = ~0U;
  for (const char byte : bytes) {
    crc = crc_table[(crc ^ static_cast<uint8_t>(byte)) & 0xFF] ^ (crc >> 8);
  }
  return ~crc;
}

EventFile::EventFile(const std::filesystem::path& folder, int64_t from_step) {
  make_directories(folder);
  path_ = folder / concat("events.out.tfevents.", static_cast<int64_t>(now_seconds()), ".",
                          host_name(), ".", ::getpid());
  file_.open(path_, std::ios::binary | std::ios::app);
  check(file_.good(), ErrorKind::io, path_.string(), ": cannot be opened for writing");
  std::string version = begun_event(0);
  append_text(version, 3, "brain.Event:2");  // Event.file_version
  write_record(version);
  if (from_step > 0) {
    std::string start = begun_event(from_step + 1);
    append_text(start, 7, std::string{0x08, 0x01});  // Event.session_log { status = START }
    write_record(start);
  }
}

void EventFile::write(int64_t step, const Scalars& scalars) {
  std::string summary;
  for (const auto& [tag, value] : scalars) {
    append_text(summary, 1, value_message(tag, value));  // Summary.value
  }
  std::string event = begun_event(step);
  append_text(event, 5, summary);  // Event.summary
  write_record(event);
}

void EventFile::write_record(std::string_view message) {
  static_assert(std::endian::native == std::endian::little);
  std::string header;
  append_bytes(header, static_cast<uint64_t>(message.size()));
  std::string record = header;
  append_bytes(record, masked(crc32c(header)));
  record.append(message);
  append_bytes(record, masked(crc32c(message)));
  file_.write(record.data(), static_cast<std::streamsize>(record.size()));
  file_.flush();
  check(file_.good(), ErrorKind::io, path_.string(),
        ": an event could not be written; is the disk full?");
}

}  // namespace ingot
