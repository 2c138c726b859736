#include "ingot/base/hash.h"

#include <gtest/gtest.h>

#include "ingot/base/files.h"
#include "tests/support/message.h"
#include "tests/support/paths.h"

namespace ingot {
namespace {

// Known values of XXH3-128 with seed 0.
TEST(Hash, GivesThePublishedAnswers) {
  EXPECT_EQ(hash_hex(""), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(hash_hex("abc"), "06b05ab6733a618578af5f94892f3950");
}

TEST(Hash, IsTheSameInPartsAndInFiles) {
  const std::string text(100000, 'x');
  Hasher hasher;
  const auto bytes = std::as_bytes(std::span(text));
  hasher.update(bytes.first(12345));
  hasher.update({});
  hasher.update(bytes.subspan(12345));
  EXPECT_EQ(hasher.hex(), hash_hex(text));
  const testing::TemporaryFolder folder;
  write_file(folder / "a", text);
  EXPECT_EQ(hash_file(folder / "a"), hash_hex(text));
  write_file(folder / "a", "");
  EXPECT_EQ(hash_file(folder / "a"), hash_hex(""));
  testing::message_of(ErrorKind::io, [&] { hash_file(folder / "absent"); });
}

}  // namespace
}  // namespace ingot
