#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <fstream>

#include "ingot/data/example_reader.h"
#include "ingot/data/row_reader.h"
#include "tests/support/message.h"
#include "tests/support/paths.h"

namespace ingot::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Rows : public ::testing::Test {
 protected:
  std::string put(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder / name, std::ios::binary) << bytes;
    return (folder / name).string();
  }

  // The rows of a file as (line, JSON).
  static std::vector<std::pair<int64_t, std::string>> rows_of(const std::string& path,
                                                              RowOptions options = {},
                                                              int64_t bytes = 1) {
    RowReader reader(path, std::move(options));
    std::vector<std::pair<int64_t, std::string>> out;
    std::vector<RawRow> block;
    while (reader.next(block, bytes)) {
      for (const RawRow& row : block) {
        out.emplace_back(row.line, json_of(reader.value(row)));
      }
    }
    return out;
  }

  std::string refused(const std::string& path, ReadOptions options = {}) const {
    return message_of(ErrorKind::format, [&] { read_examples({path}, options); });
  }

  TemporaryFolder folder;
};

std::string gzipped(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY);
  std::string out(text.size() + 1000, '\0');
  std::string in = text;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string zstd_packed(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

TEST_F(Rows, OfJsonLinesAreObjectsWithTheirLines) {
  const std::string path = put("a.jsonl",
                               "\xef\xbb\xbf{\"text\": \"a\"}\r\n\n  \n{\"text\": \"é😀\", \"n\": "
                               "[1, 2.5, null, true]}\r\n");
  EXPECT_THAT(rows_of(path),
              ElementsAre(std::pair<int64_t, std::string>(1, "{\"text\": \"a\"}"),
                          std::pair<int64_t, std::string>(
                              4, "{\"text\": \"é😀\", \"n\": [1, 2.5, null, true]}")));
}

TEST_F(Rows, OfAListAreFoundWithoutReadingItWhole) {
  const std::string path = put(
      "a.json",
      "\n[\n {\"text\": \"a ] , } \\\" [\"},\n {\"x\": [{\"y\": \"\\\\\"}],\n\"text\":\"b\"} ]\n");
  EXPECT_THAT(rows_of(path),
              ElementsAre(std::pair<int64_t, std::string>(3, "{\"text\": \"a ] , } \\\" [\"}"),
                          std::pair<int64_t, std::string>(
                              4, "{\"x\": [{\"y\": \"\\\\\"}], \"text\": \"b\"}")));
  EXPECT_TRUE(rows_of(put("none.json", "[ ]")).empty());
}

TEST_F(Rows, OfCsvFilesTakeQuotesAndLineEnds) {
  const std::string path =
      put("a.csv", "prompt,completion\r\n\"a, \"\"b\"\"\",\"two\nlines\"\r\n\r\nc,d\n");
  EXPECT_THAT(rows_of(path),
              ElementsAre(std::pair<int64_t, std::string>(
                              2, "{\"prompt\": \"a, \\\"b\\\"\", \"completion\": \"two\\nlines\"}"),
                          std::pair<int64_t, std::string>(
                              5, "{\"prompt\": \"c\", \"completion\": \"d\"}")));
  RowOptions named;
  named.columns = {"q", "a"};
  EXPECT_EQ(rows_of(put("b.csv", "x,y\n"), named).front().second, "{\"q\": \"x\", \"a\": \"y\"}");
}

TEST_F(Rows, OfTextFilesAreDocumentsCutWhereTheyGrowLong) {
  const std::string path = put("a.txt", "one\n\ntwo\n<|endoftext|>\n\n<|endoftext|>\nthree");
  EXPECT_THAT(rows_of(path),
              ElementsAre(std::pair<int64_t, std::string>(1, "{\"text\": \"one\\n\\ntwo\\n\"}"),
                          std::pair<int64_t, std::string>(7, "{\"text\": \"three\\n\"}")));
  RowOptions short_ones;
  short_ones.largest_text = 4;
  EXPECT_EQ(rows_of(path, short_ones).size(), 3u);
}

TEST_F(Rows, ArePackedByGzipAndZstdWhateverTheFilesName) {
  std::string text;
  for (int i = 0; i < 3000; ++i) {
    text += "{\"text\": \"row " + std::to_string(i) + "\"}\n";
  }
  const auto plain = rows_of(put("plain.jsonl", text));
  ASSERT_EQ(plain.size(), 3000u);
  const std::string half = text.substr(0, text.size() / 2);
  const std::string rest = text.substr(text.size() / 2);
  EXPECT_EQ(rows_of(put("one.jsonl.gz", gzipped(text))), plain);
  EXPECT_EQ(rows_of(put("members", gzipped(half) + gzipped(rest))), plain);
  EXPECT_EQ(rows_of(put("one.zst", zstd_packed(text))), plain);
  EXPECT_EQ(rows_of(put("frames.zst", zstd_packed(half) + zstd_packed(rest))), plain);
  EXPECT_THAT(RowReader(folder / "one.jsonl.gz").describe(), HasSubstr("jsonl, gzip"));
  const std::string cut = gzipped(text).substr(0, 2000);
  EXPECT_THAT(refused(put("cut.jsonl.gz", cut)),
              HasSubstr("cut.jsonl.gz: the gzip data is cut off"));
  EXPECT_THAT(refused(put("cut.zst", zstd_packed(text).substr(0, 500))),
              HasSubstr("the zstd data is cut off"));
  std::string damaged = gzipped(text);
  damaged[damaged.size() / 2] ^= 0x55;
  EXPECT_THAT(refused(put("bad.gz", damaged)), HasSubstr("the gzip data is damaged"));
}

TEST_F(Rows, OfManyMegabytesAreRead) {
  const std::string path =
      put("big.jsonl", "{\"text\": \"" + std::string(10 << 20, 'x') + "\"}\n{\"text\": \"y\"}\n");
  const std::vector<Example> examples = read_examples({path}, {});
  ASSERT_EQ(examples.size(), 2u);
  EXPECT_EQ(examples[0].text.size(), size_t{10} << 20);
  EXPECT_EQ(examples[1].place.line, 2);
}

TEST_F(Rows, ThatCannotBeReadAreNamedByFileAndLine) {
  const std::string good = "{\"text\": \"a\"}\n";
  EXPECT_THAT(refused(put("a.jsonl", good + "{\"text\": \"b\",}\n")),
              ::testing::AllOf(HasSubstr("a.jsonl:2"), HasSubstr("not valid JSON"),
                               HasSubstr("remove the comma before the bracket")));
  EXPECT_THAT(refused(put("b.jsonl", good + "{\"text\": \"\xff\"}\n")),
              HasSubstr("b.jsonl:2: not valid UTF-8 at byte 11 of the row"));
  EXPECT_THAT(refused(put("c.jsonl", good + "[1]\n")),
              HasSubstr("c.jsonl:2: a row is no object: list"));
  EXPECT_THAT(refused(put("d.jsonl", good + "{\"text\": \"  \"}\n")),
              HasSubstr("d.jsonl:2: \"text\" or \"content\": the text is empty"));
  EXPECT_THAT(refused(put("e.jsonl", good + "{\"instruction\": \"a\", \"output\": \"b\"}\n")),
              HasSubstr("e.jsonl:2: the row is of the layout alpaca, expected is text: its keys "
                        "are instruction, output"));
  EXPECT_THAT(refused(put("f.jsonl", "{\"foo\": 1}\n")), HasSubstr("f.jsonl:1: no known layout"));
  EXPECT_THAT(refused(put("g.json", "[{\"text\": \"a\"},]")),
              HasSubstr("a comma stands before the end of the list"));
  EXPECT_THAT(refused(put("h.json", "[{\"text\": \"a\"}")),
              HasSubstr("the file ends within its list"));
  EXPECT_THAT(refused(put("i.json", "[{\"text\": \"a\"} {\"text\": \"b\"}]")),
              HasSubstr("put a comma between rows"));
  EXPECT_THAT(refused(put("j.json", "[{\"text\": \"a\"}] x")),
              HasSubstr("something follows the list"));
  EXPECT_THAT(refused(put("k.csv", "text\n\"a")),
              HasSubstr("k.csv:2: a quoted field does not end"));
  EXPECT_THAT(refused(put("l.csv", "text,id\na\n")),
              HasSubstr("l.csv:2: the row has 1 fields, the first line names 2"));
  EXPECT_THAT(refused(put("m.jsonl", "")), HasSubstr("m.jsonl: the file is empty"));
  EXPECT_THAT(refused(put("n.jsonl", "\xff\xfe{")), HasSubstr("the file is UTF-16"));
  EXPECT_THAT(message_of(ErrorKind::io, [&] { read_examples({"absent.jsonl"}, {}); }),
              HasSubstr("absent.jsonl: cannot open"));
  ReadOptions wrong;
  wrong.layout = "alpacca";
  EXPECT_THAT(message_of(ErrorKind::config, [&] { read_examples({put("o.jsonl", good)}, wrong); }),
              HasSubstr("layout: there is no 'alpacca'"));
}

TEST_F(Rows, AreDroppedWithACountByReason) {
  const std::string path =
      put("a.jsonl",
          "{\"text\": \"a\"}\nno json\n{\"text\": \"\"}\n{\"text\": 3}\n{\"text\": \" \"}\n"
          "{\"text\": \"\xc3\"}\n{\"chosen\": 1}\n{\"text\": \"z\"}\n");
  ReadOptions options;
  options.policy = RowPolicy::drop;
  RowCounts counts;
  const std::vector<Example> examples = read_examples({path}, options, ExampleKind::text, &counts);
  ASSERT_EQ(examples.size(), 3u);
  EXPECT_EQ(examples[1].text, "3");
  EXPECT_EQ(counts.rows, 8);
  EXPECT_EQ(counts.dropped[static_cast<size_t>(RowFault::json)], 1);
  EXPECT_EQ(counts.dropped[static_cast<size_t>(RowFault::empty)], 2);
  EXPECT_EQ(counts.dropped[static_cast<size_t>(RowFault::utf8)], 1);
  EXPECT_EQ(counts.dropped[static_cast<size_t>(RowFault::layout)], 1);
  EXPECT_THAT(counts.text(), HasSubstr("5 dropped: 1 not JSON"));
  EXPECT_THAT(counts.text(), HasSubstr("2 empty text"));
  EXPECT_THAT(counts.text(), HasSubstr("a.jsonl:3: "));
  EXPECT_THAT(
      message_of(ErrorKind::config, [&] { read_examples({path}, options, ExampleKind::pair); }),
      HasSubstr("a.jsonl:1: holds a text, needed is a pair"));
}

}  // namespace
}  // namespace ingot::testing
