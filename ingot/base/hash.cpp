#include "ingot/base/hash.h"

#include <fmt/format.h>
#include <xxhash.h>

#include "ingot/base/error.h"
#include "ingot/base/files.h"

namespace ingot {
namespace {

std::string hex(const XXH128_hash_t& hash) {
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace

std::string hash_hex(std::span<const std::byte> bytes) {
  return hex(XXH3_128bits(bytes.data(), bytes.size()));
}

std::string hash_hex(std::string_view text) {
  return hash_hex(std::as_bytes(std::span(text.data(), text.size())));
}

std::string hash_file(const std::filesystem::path& path) {
  return hash_hex(MappedFile(path).bytes());
}

struct Hasher::State {
  XXH3_state_t* value = XXH3_createState();

  State() {
    check(value != nullptr && XXH3_128bits_reset(value) == XXH_OK, ErrorKind::internal,
          "hash: no memory for the state");
  }
  ~State() { XXH3_freeState(value); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

Hasher::Hasher() : state_(std::make_unique<State>()) {}
Hasher::~Hasher() = default;

void Hasher::update(std::span<const std::byte> bytes) {
  if (!bytes.empty()) {
    XXH3_128bits_update(state_->value, bytes.data(), bytes.size());
  }
}

std::string Hasher::hex() const { return ingot::hex(XXH3_128bits_digest(state_->value)); }

}  // namespace ingot
