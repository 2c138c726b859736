#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

namespace ingot {

// How a file's bytes are packed, told by its first bytes and not by its name.
enum class Compression : uint8_t { none, gzip, zstd };
std::string_view name(Compression compression);

// The bytes of a file from its start to its end, unpacked on the way, in constant memory.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Fills `out` from its start; fewer bytes than asked for, 0 at last, only at the end. Throws
  // Error(io) where the system refuses, Error(format) where a packed file is damaged or cut off.
  virtual size_t read(std::span<char> out) = 0;
  virtual Compression compression() const = 0;
  virtual int64_t position() const = 0;  // bytes of the file itself that were read
};

// Opens a file (also one of several gzip members or zstd frames). Throws Error(io) naming it.
std::unique_ptr<ByteSource> open_bytes(const std::filesystem::path& path);

}  // namespace ingot
