#include "ingot/io/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "ingot/io/safetensors_shards.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"
#include "tests/support/message.h"
#include "tests/support/paths.h"

namespace ingot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::message_of;
using testing::TemporaryFolder;

// The bytes of a file with this header, built by hand.
std::string file_bytes(const std::string& json, const std::string& data) {
  std::string out(8, '\0');
  const uint64_t length = json.size();
  std::memcpy(out.data(), &length, 8);
  return out + json + data;
}

// Without a flush to the disk, which write_file pays thousands of times in the loops below.
void overwrite(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string number_bytes(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

template <class T>
std::vector<T> values(const Tensor& x) {
  const std::span<const T> all = x.values<T>();
  return {all.begin(), all.end()};
}

// What opening a file with this header and so many bytes of data says, without the path.
std::string header_error(const std::string& json, size_t data_bytes = 8) {
  const TemporaryFolder folder;
  const std::string path = (folder / "x").string();
  overwrite(path, file_bytes(json, std::string(data_bytes, '\0')));
  const std::string message = message_of(ErrorKind::format, [&] { SafetensorsFile file(path); });
  EXPECT_EQ(message.substr(0, path.size()), path);
  return message.substr(std::min(message.size(), path.size()));
}

std::string entry_json(const std::string& dtype, const std::string& shape,
                       const std::string& offsets) {
  return concat(R"({"w": {"dtype": ")", dtype, R"(", "shape": )", shape, R"(, "data_offsets": )",
                offsets, "}}");
}

TensorDict every_dtype() {
  TensorDict dict;
  dict.add("flags", tensor_of(std::vector<uint8_t>{1, 2, 255}, {3}));
  dict.add("small", tensor_of(std::vector<int8_t>{-1, 127}, {2}));
  dict.add("ids", tensor_of(std::vector<int32_t>{1, -2, 3, 4}, {2, 2}));
  dict.add("long", tensor_of(std::vector<int64_t>{INT64_MIN, 7}, {2, 1}));
  dict.add("half", tensor_of(std::vector<F16>{F16(0.5F), F16(-3.0F)}, {2}));
  dict.add("brain", tensor_of(std::vector<BF16>{BF16(1.5F), BF16(-8.0F), BF16(0.0F)}, {1, 3}));
  dict.add("single", tensor_of(std::vector<float>{1.25F, -0.0F, 3e38F}, {3}));
  dict.add("double", tensor_of(std::vector<double>{0.1}, {}));
  dict.add("nothing", empty({0, 4}, DType::f32));
  Tensor truth = empty({2}, DType::bool_);
  truth.mutable_values<bool>()[0] = true;
  truth.mutable_values<bool>()[1] = false;
  dict.add("truth", truth);
  return dict;
}

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() &&
         (a.bytes() == 0 ||
          std::memcmp(a.view().data, b.view().data, static_cast<size_t>(a.bytes())) == 0);
}

TEST(Safetensors, ReadsAFileBuiltByHand) {
  const TemporaryFolder folder;
  const std::string json =
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]},)"
      R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}   )";
  overwrite(folder / "x", file_bytes(json, number_bytes({1.5F, -2.0F, 3.0F})));
  const SafetensorsFile file(folder / "x");
  EXPECT_EQ(file.metadata().at("format"), "pt");
  ASSERT_EQ(file.entries().size(), 2U);
  EXPECT_EQ(file.entries()[0].name, "a");
  EXPECT_EQ(file.tensor("a").item(), 1.5);
  EXPECT_THAT(values<float>(file.tensor("b")), ElementsAre(-2.0F, 3.0F));
}

TEST(Safetensors, WritesExactlyTheFormat) {
  const TemporaryFolder folder;
  TensorDict dict;
  dict.add("z", tensor_of(std::vector<float>{2.0F}, {1}));
  dict.add("i", tensor_of(std::vector<uint8_t>{9}, {1, 1}));
  dict.add("a", tensor_of(std::vector<float>{1.0F}, {}));
  write_safetensors(folder / "x", dict, {{"format", "pt"}});
  std::string json =
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
      R"("z":{"dtype":"F32","shape":[1],"data_offsets":[4,8]},)"
      R"("i":{"dtype":"U8","shape":[1,1],"data_offsets":[8,9]}})";
  json.resize((json.size() + 7) / 8 * 8, ' ');
  EXPECT_EQ(read_file(folder / "x"), file_bytes(json, number_bytes({1.0F, 2.0F}) + "\x09"));
}

TEST(Safetensors, RoundTripsEveryDtype) {
  const TemporaryFolder folder;
  const TensorDict dict = every_dtype();
  write_safetensors(folder / "x", dict);
  EXPECT_EQ(static_cast<int64_t>(read_file(folder / "x").size()), safetensors_bytes(dict));
  const TensorDict back = SafetensorsFile(folder / "x").tensors();
  EXPECT_EQ(back.size(), dict.size());
  for (const auto& [name, tensor] : dict) {
    EXPECT_TRUE(same_bytes(back.at(name), tensor)) << name;
  }
}

TEST(Safetensors, WritesTheSameBytesWhateverTheOrder) {
  const TemporaryFolder folder;
  const TensorDict dict = every_dtype();
  TensorDict reversed;
  for (int64_t i = dict.size() - 1; i >= 0; --i) {
    const auto& [name, tensor] = *(dict.begin() + i);
    reversed.add(name, tensor);
  }
  write_safetensors(folder / "a", dict);
  write_safetensors(folder / "b", reversed);
  EXPECT_EQ(read_file(folder / "a"), read_file(folder / "b"));
}

TEST(Safetensors, WritesViewsDense) {
  const TemporaryFolder folder;
  TensorDict dict;
  dict.add("t", transposed(tensor_of(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3}), 0, 1));
  write_safetensors(folder / "x", dict);
  EXPECT_THAT(values<float>(SafetensorsFile(folder / "x").tensor("t")),
              ElementsAre(1, 4, 2, 5, 3, 6));
}

TEST(Safetensors, MapsTensorsWithoutCopyAndReadOnly) {
  const TemporaryFolder folder;
  TensorDict dict;
  dict.add("w", tensor_of(std::vector<float>{1, 2, 3}, {3}));
  write_safetensors(folder / "x", dict);
  Tensor w;
  {
    const SafetensorsFile file(folder / "x");
    w = file.tensor("w");
    EXPECT_EQ(w.view().data, file.tensor("w").view().data);
  }
  EXPECT_THAT(values<float>(w), ElementsAre(1, 2, 3));  // the mapping outlives its reader
  EXPECT_THAT(message_of(ErrorKind::argument, [&] { w.mutable_view(); }),
              HasSubstr("read-only mapping"));
}

TEST(Safetensors, ReadsTensorsThatAreNotAligned) {
  const TemporaryFolder folder;
  const std::string json = R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                           R"("w":{"dtype":"F32","shape":[2],"data_offsets":[1,9]}})";
  overwrite(folder / "x", file_bytes(json, concat("\x05", number_bytes({7.0F, 8.0F}))));
  EXPECT_THAT(values<float>(SafetensorsFile(folder / "x").tensor("w")), ElementsAre(7, 8));
}

TEST(Safetensors, ReadsAndWritesAFileWithoutTensors) {
  const TemporaryFolder folder;
  write_safetensors(folder / "x", {});
  EXPECT_TRUE(SafetensorsFile(folder / "x").tensors().empty());
}

TEST(Safetensors, RefusesEveryTruncation) {
  const TemporaryFolder folder;
  write_safetensors(folder / "x", every_dtype());
  const std::string whole = read_file(folder / "x");
  const std::string path = (folder / "cut").string();
  for (size_t length = 0; length < whole.size(); ++length) {
    overwrite(path, whole.substr(0, length));
    const std::string message = message_of(ErrorKind::format, [&] { SafetensorsFile file(path); });
    ASSERT_THAT(message, HasSubstr(path)) << length;
    ASSERT_THAT(message, HasSubstr("truncated")) << length;
  }
  overwrite(path, whole + "x");
  EXPECT_EQ(message_of(ErrorKind::format, [&] { SafetensorsFile file(path); }),
            path + ": 1 bytes follow the last tensor; the format allows none");
}

TEST(Safetensors, SurvivesEveryBitFlipOfTheHeader) {
  const TemporaryFolder folder;
  write_safetensors(folder / "x", every_dtype(), {{"format", "pt"}});
  const std::string whole = read_file(folder / "x");
  const size_t header = SafetensorsFile(folder / "x").header_bytes().size();
  const std::string path = (folder / "flipped").string();
  int64_t refused = 0;
  for (size_t bit = 0; bit < header * 8; bit += 7) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    overwrite(path, flipped);
    try {
      SafetensorsFile(path).tensors();  // a letter of a name may change unseen
    } catch (const Error& error) {
      ASSERT_EQ(name(error.kind()), "format") << error.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, static_cast<int64_t>(header / 2));
}

TEST(Safetensors, NamesTheTensorWhoseHeaderIsWrong) {
  EXPECT_EQ(
      header_error(entry_json("F32", "[2]", "[0, 400]")),
      ": w: its bytes [0, 400) lie outside the file, which holds 8 bytes of data; the file is "
      "truncated or damaged");
  EXPECT_EQ(header_error(entry_json("F32", "[3]", "[0, 8]")),
            ": w: size differs: f32 [3] takes 12 bytes, data_offsets span 8");
  EXPECT_EQ(header_error(entry_json("F32", "[2]", "[8, 0]")),
            ": w: data_offsets are no interval: [8, 0)");
  EXPECT_EQ(header_error(entry_json("F32", "[2]", "[0, 8, 8]")),
            ": w: data_offsets must be two numbers: got 3");
  EXPECT_EQ(header_error(entry_json("F8_E4M3", "[8]", "[0, 8]")),
            ": w: unknown dtype F8_E4M3; Ingot reads BOOL, U8, I8, I32, I64, F16, BF16, F32, F64");
  EXPECT_EQ(header_error(entry_json("F32", "[-2]", "[0, 8]")),
            ": w: negative size in its shape: -2");
  EXPECT_EQ(header_error(entry_json("F32", "[1,1,1,1,1,1,1,1,2]", "[0, 8]")),
            ": w: has 9 dimensions; Ingot reads at most 8");
  EXPECT_EQ(header_error(entry_json("F32", "[4294967296, 4294967296]", "[0, 8]")),
            ": w: the sizes of its shape multiply to more than 63 bits");
  EXPECT_EQ(header_error(entry_json("F32", "[0, 4294967296, 4294967296]", "[0, 0]"), 0),
            ": w: the sizes of its shape multiply to more than 63 bits");
  EXPECT_EQ(header_error(R"({"w": {"dtype": "F32", "data_offsets": [0, 8]}})"),
            ": w: shape: missing key: expected a list, each item an integer");
  EXPECT_EQ(header_error(entry_json("F32", "[2.0]", "[0, 8]")),
            ": w: shape: wrong type: expected a list, each item an integer, got [2.0]");
  EXPECT_EQ(header_error(R"({"w": 3})"), ": w: dtype: looked up in what is not an object: 3");
}

TEST(Safetensors, RefusesTensorsThatOverlapOrLeaveGaps) {
  const auto two = [](const std::string& a, const std::string& b) {
    return concat(R"({"a": {"dtype": "U8", "shape": [4], "data_offsets": )", a,
                  R"(}, "b": {"dtype": "U8", "shape": [4], "data_offsets": )", b, "}}");
  };
  EXPECT_EQ(header_error(two("[0, 4]", "[3, 7]")), ": b: its bytes overlap those of a");
  EXPECT_EQ(header_error(two("[0, 4]", "[0, 4]")), ": b: its bytes overlap those of a");
  EXPECT_EQ(header_error(two("[0, 4]", "[5, 9]"), 9),
            ": b: gap of 1 bytes before it; the format allows none");
  EXPECT_EQ(header_error(two("[1, 5]", "[5, 9]"), 9),
            ": a: gap of 1 bytes before it; the format allows none");
}

TEST(Safetensors, RefusesHeadersThatAreNoHeader) {
  EXPECT_EQ(header_error(R"({"w": {"dtype": "U8", "shape": [8], "data_offsets": [0, 8]},)"
                         R"("w": {"dtype": "U8", "shape": [8], "data_offsets": [0, 8]}})"),
            ": w: this name is in the header twice");
  EXPECT_EQ(header_error("[]"), ": not a safetensors file: the header does not start with {");
  EXPECT_EQ(header_error(""), ": not a safetensors file: the header does not start with {");
  EXPECT_THAT(header_error("{\"w"), HasSubstr(": header: not valid JSON: "));
  EXPECT_THAT(header_error("{\"\xff\": 1}"), HasSubstr("ill-formed UTF-8"));
  EXPECT_EQ(header_error(R"({"__metadata__": {"a": 1}})"), ": __metadata__: a: not a text");
  EXPECT_EQ(header_error(R"({"__metadata__": []})"), ": __metadata__: not an object");
  std::string deep;
  for (int i = 0; i < 100000; ++i) {
    deep += "{\"a\":";
  }
  EXPECT_EQ(header_error(deep), ": header: nested too deep");
}

TEST(Safetensors, AllocatesNothingForAHugeHeaderLength) {
  const TemporaryFolder folder;
  const std::string path = (folder / "x").string();
  overwrite(path, std::string(8, '\xff') + "{}");
  EXPECT_EQ(message_of(ErrorKind::format, [&] { SafetensorsFile file(path); }),
            path +
                ": not a safetensors file: the header would have 18446744073709551615 bytes; at "
                "most 100000000 are allowed");
  overwrite(path, std::string("\x00\x00\x10\x00\x00\x00\x00\x00", 8) + "{}");
  EXPECT_EQ(message_of(ErrorKind::format, [&] { SafetensorsFile file(path); }),
            path +
                ": truncated: the header has 1048576 bytes, 2 follow; fetch or write the file "
                "again");
}

TEST(Safetensors, RefusesBooleansThatAreNeither) {
  const TemporaryFolder folder;
  const std::string path = (folder / "x").string();
  overwrite(path, file_bytes(entry_json("BOOL", "[3]", "[0, 3]"), std::string("\x00\x01\x02", 3)));
  const SafetensorsFile file(path);
  EXPECT_EQ(message_of(ErrorKind::format, [&] { file.tensor("w"); }),
            path + ": w: a boolean is neither 0 nor 1: element 2 is 2");
}

TEST(Safetensors, NamesTheNearestOfAMissingTensor) {
  const TemporaryFolder folder;
  write_safetensors(folder / "x", every_dtype());
  const SafetensorsFile file(folder / "x");
  EXPECT_EQ(message_of(ErrorKind::format, [&] { file.tensor("duble"); }),
            file.name() + ": duble: no such tensor in the file; the nearest is double");
}

TEST(Safetensors, RefusesWhatItCannotWrite) {
  const TemporaryFolder folder;
  TensorDict meta;
  meta.add("w", empty({2}, DType::f32, meta_device));
  EXPECT_EQ(message_of(ErrorKind::device, [&] { write_safetensors(folder / "x", meta); }),
            (folder / "x").string() + ": w: cannot be written: it is on the device meta");
  TensorDict reserved;
  reserved.add("__metadata__", scalar(1, DType::f32));
  EXPECT_EQ(message_of(ErrorKind::argument, [&] { write_safetensors(folder / "x", reserved); }),
            "safetensors: __metadata__ is no name for a tensor");
  EXPECT_TRUE(list_folder(folder.path()).empty());
}

TEST(SafetensorsSet, RoundTripsOneFileAndSeveral) {
  const TensorDict dict = every_dtype();
  for (const int64_t shard_bytes : {1, 16, 1000000}) {
    const TemporaryFolder folder;
    write_safetensors_set(folder.path(), dict, shard_bytes, {{"format", "pt"}});
    const SafetensorsSet set(folder.path());
    EXPECT_EQ(set.files().size() == 1, shard_bytes == 1000000);
    const TensorDict back = set.tensors();
    EXPECT_EQ(back.size(), dict.size());
    for (const auto& [name, tensor] : dict) {
      EXPECT_TRUE(set.contains(name));
      EXPECT_TRUE(same_bytes(back.at(name), tensor)) << name;
    }
    EXPECT_THAT(message_of(ErrorKind::format, [&] { set.tensor("doubles"); }),
                HasSubstr("doubles: no such tensor; the nearest is double"));
  }
}

TEST(SafetensorsSet, OpensASingleFileByName) {
  const TemporaryFolder folder;
  write_safetensors(folder / "any.safetensors", every_dtype());
  EXPECT_EQ(SafetensorsSet(folder / "any.safetensors").names().size(), 10U);
}

TEST(SafetensorsSet, ExplainsWhatIsWrongWithAnIndex) {
  const TemporaryFolder folder;
  const std::string index = (folder / "model.safetensors.index.json").string();
  const auto error = [&](const std::string& json) {
    overwrite(index, json);
    return message_of(ErrorKind::format, [&] { SafetensorsSet set(folder.path()); });
  };
  EXPECT_EQ(message_of(ErrorKind::io, [&] { SafetensorsSet set(folder.path()); }),
            folder.path().string() +
                ": no tensors here: the folder has neither model.safetensors nor "
                "model.safetensors.index.json");
  write_safetensors(folder / "a.safetensors", every_dtype());
  EXPECT_EQ(error("{}"), index + ": weight_map: missing key: expected an object");
  EXPECT_EQ(error(R"({"weight_map": {"w": "../a.safetensors"}})"),
            index + ": w: not the name of a file beside the index: \"../a.safetensors\"");
  EXPECT_EQ(error(R"({"weight_map": {"w": "a.safetensors"}})"),
            index +
                ": w: the index places it in a.safetensors, which does not hold it; index and "
                "files do not belong together");
  overwrite(index, R"({"weight_map": {"w": "b.safetensors"}})");
  EXPECT_THAT(message_of(ErrorKind::io, [&] { SafetensorsSet set(folder.path()); }),
              HasSubstr("b.safetensors: cannot open the file"));
}

}  // namespace
}  // namespace ingot
