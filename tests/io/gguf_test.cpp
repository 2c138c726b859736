#include "ingot/io/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <set>

#include "ingot/base/hash.h"
#include "tests/support/message.h"
#include "tests/support/paths.h"

namespace ingot {
namespace {

using testing::data_folder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::message_of;
using testing::no_data_folder;
using testing::TemporaryFolder;

// Bytes put together by hand, in the widths of a version.
struct Bytes {
  std::string all;
  bool wide = true;

  template <class T>
  Bytes& number(T value) {
    all.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Bytes& count(uint64_t value) {
    return wide ? number(value) : number(static_cast<uint32_t>(value));
  }
  Bytes& text(const std::string& value) {
    count(value.size());
    all += value;
    return *this;
  }
  Bytes& start(uint32_t version, uint64_t tensors, uint64_t keys) {
    all = "GGUF";
    wide = version > 1;
    return number(version).count(tensors).count(keys);
  }
  Bytes& tensor(const std::string& name, const std::vector<uint64_t>& dimensions, uint32_t type,
                uint64_t offset) {
    text(name).number(static_cast<uint32_t>(dimensions.size()));
    for (const uint64_t one : dimensions) {
      count(one);
    }
    return number(type).number(offset);
  }
  Bytes& data(size_t bytes) {
    all.resize((all.size() + 31) / 32 * 32 + bytes, '\x3c');
    return *this;
  }
};

GgufHeader parsed(const Bytes& bytes) {
  return parse_gguf_header(std::as_bytes(std::span(bytes.all)), "x.gguf");
}

std::string refusal(const Bytes& bytes) {
  return message_of(ErrorKind::format, [&] { parsed(bytes); });
}

Bytes small_file(uint32_t version) {
  Bytes out;
  out.start(version, 2, 3);
  out.text("general.architecture").number(8U).text("llama");
  out.text("some.words").number(9U).number(8U).count(2).text("a").text("bc");
  out.text("some.flag").number(7U).number(uint8_t{1});
  out.tensor("a", {3, 2}, 0, 0).tensor("b", {32}, 2, 32);
  return out.data(32 + 18);
}

TEST(Gguf, ReadsFilesBuiltByHandOfAllVersions) {
  for (const uint32_t version : {1U, 2U, 3U}) {
    const GgufHeader header = parsed(small_file(version));
    EXPECT_EQ(header.version, version);
    EXPECT_EQ(header.metadata.text("general.architecture", "x"), "llama");
    EXPECT_THAT(header.metadata.texts("some.words", "x"), ElementsAre("a", "bc"));
    EXPECT_TRUE(header.metadata.flag_or("some.flag", false, "x"));
    ASSERT_EQ(header.tensors.size(), 2U);
    EXPECT_EQ(header.tensors[0].shape, (Shape{2, 3}));
    EXPECT_EQ(header.tensors[0].end, 24);
    EXPECT_EQ(header.tensors[1].type, GgmlType::q4_0);
    EXPECT_EQ(header.tensors[1].end, 32 + 18);
  }
}

TEST(Gguf, RefusesEveryTruncation) {
  for (const uint32_t version : {1U, 3U}) {
    const Bytes whole = small_file(version);
    for (size_t length = 0; length < whole.all.size(); ++length) {
      Bytes cut = whole;
      cut.all.resize(length);
      // Bytes in a block of its own size, so that a sanitizer sees a read beyond the end.
      const std::vector<std::byte> exact(
          reinterpret_cast<const std::byte*>(cut.all.data()),
          reinterpret_cast<const std::byte*>(cut.all.data()) + length);
      EXPECT_THROW(parse_gguf_header(exact, "x.gguf"), Error) << length;
    }
  }
}

TEST(Gguf, RefusesOtherFilesAndVersions) {
  Bytes bytes;
  bytes.all = "GGML\3\0\0\0aaaaaaaaaaaaaaaa";
  EXPECT_EQ(refusal(bytes), "x.gguf: not a GGUF file: it does not start with the letters GGUF");
  EXPECT_EQ(
      refusal(Bytes()),
      "x.gguf: magic: ends before its end: 1 bytes are needed, 0 are left; the file is truncated");
  EXPECT_EQ(refusal(Bytes().start(4, 0, 0)),
            "x.gguf: version 4 is not known; Ingot reads 1, 2 and 3");
  EXPECT_EQ(refusal(Bytes().start(0, 0, 0)),
            "x.gguf: version 0 is not known; Ingot reads 1, 2 and 3");
  EXPECT_THAT(refusal(Bytes().start(3U << 24, 0, 0)), HasSubstr("the file is big-endian"));
}

TEST(Gguf, RefusesCountsThatTheFileCannotHold) {
  const uint64_t huge = uint64_t{1} << 63;
  EXPECT_EQ(
      refusal(Bytes().start(3, huge, 0)),
      "x.gguf: the number of tensors: there cannot be 9223372036854775808: 8 bytes are left in "
      "the file; it is damaged or truncated");
  EXPECT_THAT(refusal(Bytes().start(3, 0, huge)), HasSubstr("the number of metadata values"));
  EXPECT_THAT(refusal(Bytes().start(3, 0, 1).count(huge).data(64)), HasSubstr("a metadata key"));
  Bytes text = Bytes().start(3, 0, 1).text("k").number(8U).count(UINT64_MAX);
  EXPECT_THAT(refusal(text), HasSubstr("x.gguf: k: there cannot be 18446744073709551615"));
  for (const uint32_t kind : {0U, 6U, 7U, 8U, 9U, 12U}) {
    Bytes array = Bytes().start(3, 0, 1).text("k").number(9U).number(kind).count(huge).data(99);
    EXPECT_THAT(refusal(array), HasSubstr("x.gguf: k: there cannot be")) << kind;
  }
  Bytes deep = Bytes().start(3, 0, 1).text("k").number(9U);
  for (int i = 0; i < 100000; ++i) {
    deep.number(9U).count(1);
  }
  EXPECT_EQ(refusal(deep), "x.gguf: k: arrays are nested more than 4 deep");
}

TEST(Gguf, RefusesTensorsThatCannotBe) {
  const auto one = [](const std::vector<uint64_t>& dimensions, uint32_t type, uint64_t offset) {
    return refusal(Bytes().start(3, 1, 0).tensor("w", dimensions, type, offset).data(64));
  };
  EXPECT_EQ(one({}, 0, 0), "x.gguf: w: must have 1 to 4 dimensions: it has 0");
  EXPECT_EQ(one({1, 1, 1, 1, 1}, 0, 0), "x.gguf: w: must have 1 to 4 dimensions: it has 5");
  EXPECT_EQ(one({4, 0}, 0, 0), "x.gguf: w: dimension 1 cannot be 0");
  EXPECT_THAT(one({uint64_t{1} << 62, 4}, 0, 0),
              HasSubstr("w: its dimensions multiply to more than 63 bits"));
  EXPECT_THAT(one({uint64_t{1} << 63}, 0, 0), HasSubstr("w: dimension 0 cannot be"));
  EXPECT_THAT(one({uint64_t{1} << 61}, 0, 0), HasSubstr("is larger than the file of"));
  EXPECT_EQ(one({4}, 777, 0), "x.gguf: w: no type that Ingot knows has the number 777");
  EXPECT_EQ(one({33}, 2, 0),
            "x.gguf: w: rows of 33 values are no whole blocks of Q4_0, which hold 32");
  EXPECT_THAT(one({4}, 0, uint64_t{1} << 63), HasSubstr("w: begins beyond the end: byte 9223"));
  EXPECT_EQ(one({4}, 0, 8),
            "x.gguf: w: not aligned: begins at byte 8 of the data, the alignment is 32");
  EXPECT_EQ(one({4}, 0, 64),
            "x.gguf: w: ends at byte 80 of the data, of which the file has 64; it is "
            "truncated");
  EXPECT_EQ(
      refusal(Bytes().start(3, 2, 0).tensor("v", {16}, 0, 0).tensor("w", {4}, 0, 32).data(64)),
      "x.gguf: w: overlaps v: begins at byte 32, the other ends at 64");
  EXPECT_EQ(refusal(Bytes().start(3, 2, 0).tensor("w", {4}, 0, 0).tensor("w", {4}, 0, 32).data(64)),
            "x.gguf: w: this name is in the file twice");
  EXPECT_EQ(refusal(Bytes().start(3, 1, 0).tensor(std::string(65, 'n'), {4}, 0, 0).data(64)),
            "x.gguf: a tensor's name must have 1 to 64 bytes, none of them 0: it has 65");
}

TEST(Gguf, RefusesMetadataThatCannotBe) {
  const auto start = [](uint64_t keys) { return Bytes().start(3, 0, keys); };
  EXPECT_EQ(refusal(start(1).text("k").number(13U).number(uint64_t{0})),
            "x.gguf: k: no type has the number 13");
  EXPECT_EQ(refusal(start(1).text("k").number(7U).number(uint8_t{2})),
            "x.gguf: k: a boolean is neither 0 nor 1: it is 2");
  EXPECT_EQ(
      refusal(
          start(2).text("k").number(0U).number(uint8_t{2}).text("k").number(0U).number(uint8_t{2})),
      "x.gguf: k: this key is in the metadata twice");
  for (const uint32_t alignment : {0U, 3U, 0xffffffffU}) {
    EXPECT_EQ(refusal(start(1).text("general.alignment").number(4U).number(alignment)),
              concat("x.gguf: general.alignment: must be a power of two: it is ", alignment));
  }
  GgufMetadata metadata;
  metadata.set("some.text", "word");
  metadata.set("some.big", GgufValue{UINT64_MAX});
  EXPECT_EQ(message_of(ErrorKind::format, [&] { metadata.integer("some.text", "f"); }),
            "f: some.text: must be an integer of at most 63 bits: it is string word");
  EXPECT_EQ(message_of(ErrorKind::format, [&] { metadata.integer("some.big", "f"); }),
            "f: some.big: must be an integer of at most 63 bits: it is u64 18446744073709551615");
  EXPECT_EQ(message_of(ErrorKind::format, [&] { metadata.text("some.tex", "f"); }),
            "f: no key 'some.tex'; the nearest is some.text");
  EXPECT_EQ(message_of(ErrorKind::argument, [&] { metadata.set_u32("k", -1); }),
            "gguf: k: does not fit 32 bits: -1");
}

GgufHeader every_kind() {
  GgufHeader header;
  header.alignment = 64;
  GgufMetadata& m = header.metadata;
  m.set("u8", GgufValue{uint8_t{255}});
  m.set("i8", GgufValue{int8_t{-128}});
  m.set("u16", GgufValue{uint16_t{65535}});
  m.set("i16", GgufValue{int16_t{-5}});
  m.set("u32", GgufValue{uint32_t{1}});
  m.set("i32", GgufValue{INT32_MIN});
  m.set("f32", GgufValue{1.5F});
  m.set("yes", GgufValue{true});
  m.set("text", std::string_view("ä\0b", 4));
  m.set("u64", GgufValue{UINT64_MAX});
  m.set("i64", GgufValue{INT64_MIN});
  m.set("f64", GgufValue{0.1});
  m.set("flags", GgufValue{GgufArray{std::vector<bool>{true, false}}});
  m.set("words", GgufValue{GgufArray{std::vector<std::string>{"", "x"}}});
  m.set("none", GgufValue{GgufArray{std::vector<double>{}}});
  const GgufArray inner{std::vector<int16_t>{-1, 2}};
  m.set("nested", GgufValue{GgufArray{std::vector<GgufArray>{inner, inner}}});
  header.tensors = {{"w", GgmlType::q8_0, Shape{2, 64}}, {"b", GgmlType::f16, Shape{3}}};
  return header;
}

TEST(Gguf, RoundTripsEveryKindOfValue) {
  const TemporaryFolder folder;
  const GgufHeader header = every_kind();
  GgufWriter writer(folder / "x.gguf", header);
  const std::string first(4 * 34, 'q');
  const std::string second = "halves";
  const std::string both = first + second;  // a piece may cross from one tensor to the next
  writer.write(std::as_bytes(std::span(both).first(100)));
  writer.write(std::as_bytes(std::span(both).subspan(100)));
  writer.commit();
  const GgufFile file(folder / "x.gguf");
  EXPECT_EQ(file.header().alignment, 64);
  for (const auto& [key, value] : header.metadata) {
    ASSERT_TRUE(file.metadata().contains(key)) << key;
    EXPECT_EQ(*file.metadata().find(key), value) << key;
  }
  const auto bytes = file.bytes(file.tensor("b"));
  EXPECT_EQ(std::memcmp(bytes.data(), second.data(), second.size()), 0);
  EXPECT_EQ(file.tensor("b").begin, 192);
  EXPECT_EQ(file.bytes(file.tensor("w")).size(), first.size());
  EXPECT_THAT(message_of(ErrorKind::format, [&] { file.tensor("v"); }),
              HasSubstr("v: no such tensor in the file; the nearest is"));
}

TEST(Gguf, WritesNothingUntilAllIsThere) {
  const TemporaryFolder folder;
  {
    GgufWriter writer(folder / "x.gguf", every_kind());
    const std::vector<std::byte> some(7);
    writer.write(some);
    EXPECT_EQ(message_of(ErrorKind::internal, [&] { writer.commit(); }),
              "gguf: 0 of 2 tensors were written");
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  GgufHeader twice = every_kind();
  twice.tensors.push_back(twice.tensors[0]);
  EXPECT_EQ(message_of(ErrorKind::argument, [&] { gguf_header_text(twice); }),
            "gguf: w: this name is used twice");
}

// Other programs' files, written again, have the same header and tensors where they lie the same.
TEST(Gguf, WritesAFilesHeaderAgainAsItWas) {
  if (!data_folder()) {
    GTEST_SKIP() << no_data_folder;
  }
  for (const char* name :
       {"model-stories260k/stories260k-q4_0.gguf", "model-tiny-archs/gpt2/model-f32.gguf",
        "tok-ggml-vocab/ggml-vocab-phi-3.gguf"}) {
    SCOPED_TRACE(name);
    const GgufFile file(*data_folder() / name);
    GgufHeader header = file.header();
    const std::string text = gguf_header_text(header);
    EXPECT_EQ(header.tensors, file.tensors());
    const std::string whole = read_file(*data_folder() / name);
    // A file without tensors need not be padded.
    const size_t compared = std::min(text.size(), whole.size());
    EXPECT_EQ(text.substr(0, compared), whole.substr(0, compared));
  }
  const GgufFile old(*data_folder() / "model-stories260k/stories260k-f32.v1.gguf");
  EXPECT_EQ(old.header().version, 1U);
  EXPECT_EQ(old.tensors().size(), 48U);
  EXPECT_EQ(old.metadata().texts("tokenizer.ggml.tokens", "x").size(), 512U);
}

}  // namespace
}  // namespace ingot
