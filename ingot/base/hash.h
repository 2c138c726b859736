#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace ingot {

// XXH3, 128 bits, as 32 hexadecimal digits, most significant first (as `xxh128sum` prints it).
// Finds accidental damage; it is no defence against someone who wants two files to agree.

std::string hash_hex(std::span<const std::byte> bytes);
std::string hash_hex(std::string_view text);
std::string hash_file(const std::filesystem::path& path);  // throws Error(io)

// The same over bytes that arrive in parts.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(const Hasher&) = delete;
  Hasher& operator=(const Hasher&) = delete;

  void update(std::span<const std::byte> bytes);
  std::string hex() const;  // of everything so far

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ingot
