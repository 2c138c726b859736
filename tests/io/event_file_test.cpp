#include "ingot/io/event_file.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "ingot/base/error.h"
#include "ingot/base/files.h"
#include "tests/support/paths.h"

namespace ingot::testing {
namespace {

namespace pb = google::protobuf;
using ::testing::ElementsAre;

// The fields of TensorFlow's event.proto and summary.proto that matter here, with their numbers: as
// a protobuf FileDescriptorProto in its text form.
constexpr const char* definitions = R"(
name: "event.proto" syntax: "proto3"
message_type {
  name: "SessionLog"
  field { name: "status" number: 1 label: LABEL_OPTIONAL type: TYPE_ENUM type_name: ".Status" }
}
message_type {
  name: "Value"
  field { name: "tag" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING }
  field { name: "simple_value" number: 2 label: LABEL_OPTIONAL type: TYPE_FLOAT }
}
message_type {
  name: "Summary"
  field { name: "value" number: 1 label: LABEL_REPEATED type: TYPE_MESSAGE type_name: ".Value" }
}
message_type {
  name: "Event"
  field { name: "wall_time" number: 1 label: LABEL_OPTIONAL type: TYPE_DOUBLE }
  field { name: "step" number: 2 label: LABEL_OPTIONAL type: TYPE_INT64 }
  field { name: "file_version" number: 3 label: LABEL_OPTIONAL type: TYPE_STRING }
  field { name: "summary" number: 5 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".Summary" }
  field {
    name: "session_log" number: 7 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".SessionLog"
  }
}
enum_type {
  name: "Status"
  value { name: "UNSPECIFIED" number: 0 }
  value { name: "START" number: 1 }
}
)";

// The protobuf library's view of these messages, made when the test runs.
class Definitions {
 public:
  Definitions() {
    pb::FileDescriptorProto file;
    if (!pb::TextFormat::ParseFromString(definitions, &file)) {
      throw std::runtime_error("the definitions do not parse");
    }
    event_ = pool_.BuildFile(file)->FindMessageTypeByName("Event");
  }

  std::unique_ptr<pb::Message> event(const std::string& bytes) {
    std::unique_ptr<pb::Message> out(factory_.GetPrototype(event_)->New());
    EXPECT_TRUE(out->ParseFromString(bytes));
    EXPECT_TRUE(out->GetReflection()->GetUnknownFields(*out).empty());
    return out;
  }

 private:
  pb::DescriptorPool pool_;
  pb::DynamicMessageFactory factory_;
  const pb::Descriptor* event_ = nullptr;
};

uint32_t unmasked(uint32_t value) {
  value -= 0xA282EAD8U;
  return (value >> 17) | (value << 15);
}

// The records of a file, their checksums verified.
std::vector<std::string> records_of(const std::filesystem::path& folder) {
  std::vector<std::string> out;
  const std::string file = read_file(folder / list_folder(folder).at(0));
  for (size_t at = 0; at < file.size();) {
    uint64_t length = 0;
    uint32_t crc = 0;
    std::memcpy(&length, file.data() + at, 8);
    std::memcpy(&crc, file.data() + at + 8, 4);
    EXPECT_EQ(unmasked(crc), crc32c(file.substr(at, 8)));
    out.push_back(file.substr(at + 12, length));
    std::memcpy(&crc, file.data() + at + 12 + length, 4);
    EXPECT_EQ(unmasked(crc), crc32c(out.back()));
    at += 16 + length;
  }
  return out;
}

const pb::FieldDescriptor* field(const pb::Message& message, const char* name) {
  return message.GetDescriptor()->FindFieldByName(name);
}
int64_t step_of(const pb::Message& event) {
  return event.GetReflection()->GetInt64(event, field(event, "step"));
}

// "tag=value" of the scalars of an event.
std::vector<std::string> scalars_of(const pb::Message& event) {
  std::vector<std::string> out;
  const auto& summary = event.GetReflection()->GetMessage(event, field(event, "summary"));
  const auto* values = field(summary, "value");
  for (int i = 0; i < summary.GetReflection()->FieldSize(summary, values); ++i) {
    const auto& value = summary.GetReflection()->GetRepeatedMessage(summary, values, i);
    out.push_back(concat(value.GetReflection()->GetString(value, field(value, "tag")), "=",
                         value.GetReflection()->GetFloat(value, field(value, "simple_value"))));
  }
  return out;
}

TEST(EventFile, ParsesWithTheProtobufDefinitions) {
  const TemporaryFolder folder;
  {
    EventFile events(folder.path(), 0);
    events.write(300, {{"train/loss", 2.5}, {"train/grad_norm", 1.5}});
    events.write(70000, {{"validation/loss", 2}});
  }
  const std::vector<std::string> records = records_of(folder.path());
  ASSERT_EQ(records.size(), 3u);
  Definitions definitions_;
  const auto version = definitions_.event(records[0]);
  EXPECT_EQ(version->GetReflection()->GetString(*version, field(*version, "file_version")),
            "brain.Event:2");
  EXPECT_GT(version->GetReflection()->GetDouble(*version, field(*version, "wall_time")), 1.6e9);
  const auto step = definitions_.event(records[1]);
  EXPECT_EQ(step_of(*step), 300);
  EXPECT_THAT(scalars_of(*step), ElementsAre("train/loss=2.5", "train/grad_norm=1.5"));
  const auto evaluation = definitions_.event(records[2]);
  EXPECT_EQ(step_of(*evaluation), 70000);
  EXPECT_THAT(scalars_of(*evaluation), ElementsAre("validation/loss=2"));
}

TEST(EventFile, AResumedRunMakesLaterEventsOfTheFirstVoid) {
  const TemporaryFolder folder;
  EventFile(folder.path(), 40);
  const std::vector<std::string> records = records_of(folder.path());
  ASSERT_EQ(records.size(), 2u);
  Definitions definitions_;
  const auto start = definitions_.event(records[1]);
  EXPECT_EQ(step_of(*start), 41);
  const auto& session = start->GetReflection()->GetMessage(*start, field(*start, "session_log"));
  EXPECT_EQ(session.GetReflection()->GetEnumValue(session, field(session, "status")), 1);
}

TEST(EventFile, TheChecksumIsThatOfTheStandard) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);  // RFC 3720, B.4
  EXPECT_EQ(crc32c(""), 0U);
}

}  // namespace
}  // namespace ingot::testing
