#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/program.h"

namespace ingot::testing {
namespace {

using ::testing::HasSubstr;

constexpr const char* chatml =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

class ChatCommands : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = no_program(); !reason.empty()) {
      GTEST_SKIP() << reason;
    }
    std::filesystem::create_directory(folder / "work");
    std::filesystem::create_directory(folder / "work/model");
    put(folder / "work/model/chat_template.jinja", chatml);
    put(folder / "work/model/tokenizer_config.json", R"({"eos_token": "<|im_end|>"})");
    put(folder / "work/chats.jsonl",
        R"({"messages": [{"role": "user", "content": "U"}, {"role": "assistant", "content": "A"}]})"
        "\n"
        R"({"messages": [{"role": "user", "content": "U"}]})"
        "\nno json\n");
  }
  Outcome run(const Words& arguments) { return ingot(folder / "work", arguments); }

  TemporaryFolder folder;
};

TEST_F(ChatCommands, DataShowMarksWhatIsLearnt) {
  const Outcome shown = run({"data", "show", "chats.jsonl", "--model", "model"});
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_EQ(shown.out, "<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\n«A<|im_end|>»\n");
  EXPECT_THAT(shown.err, HasSubstr("chats.jsonl row 1: 11 of 63 bytes are learnt"));
  const auto json =
      nlohmann::json::parse(run({"data", "show", "chats.jsonl", "--model", "model", "--json"}).out);
  EXPECT_EQ(json[0]["learnt"][0]["message"], 1);
  const Outcome users =
      run({"data", "show", "chats.jsonl", "--model", "model", "--row", "2", "--roles", "user"});
  EXPECT_THAT(users.out, HasSubstr("«<|im_start|>user\nU<|im_end|>»"));
}

TEST_F(ChatCommands, DataShowNamesTheRowThatIsWrong) {
  const auto refused = [&](const Words& more) {
    const Outcome outcome = run(joined({"data", "show"}, more));
    EXPECT_EQ(outcome.code, 3) << outcome.err;
    EXPECT_EQ(lines_of(outcome.err).size(), 1u) << outcome.err;
    return outcome.err;
  };
  EXPECT_THAT(
      refused({"chats.jsonl", "--model", "model", "--row", "2"}),
      HasSubstr("nothing of it is learnt: the learnt roles are assistant, its roles are user"));
  EXPECT_THAT(refused({"chats.jsonl", "--model", "model", "--row", "2"}),
              HasSubstr("(in chats.jsonl:2)"));
  EXPECT_THAT(refused({"chats.jsonl", "--model", "model", "--row", "3"}),
              HasSubstr("chats.jsonl:3:1:2: not valid JSON"));
  EXPECT_THAT(refused({"chats.jsonl", "--model", "model", "--row", "9"}), HasSubstr("has 3 rows"));
  EXPECT_THAT(refused({"absent.jsonl", "--model", "model"}), HasSubstr("absent.jsonl"));
  EXPECT_THAT(refused({"chats.jsonl", "--model", "."}), HasSubstr("no chat template"));
}

TEST_F(ChatCommands, DoctorChecksTheChatTemplateOfAModel) {
  const Outcome good = run({"doctor", "model"});
  EXPECT_EQ(good.code, 0) << good.err;
  EXPECT_THAT(good.out, HasSubstr("✓ 3 exchanges, system  turn end"));
  EXPECT_THAT(good.out, ::testing::Not(HasSubstr("prefix ids")));
  EXPECT_EQ(run({"tokenizer", "train", "chats.jsonl", "--vocab", "270", "--out", "model"}).code, 0);
  const Outcome with_ids = run({"doctor", "model"});
  EXPECT_EQ(with_ids.code, 0) << with_ids.err;
  EXPECT_THAT(with_ids.out, HasSubstr("✓ 3 exchanges, system  prefix ids"));
  std::filesystem::remove(folder / "work/model/tokenizer.json");
  put(folder / "work/model/tokenizer_config.json", R"({"eos_token": "<|endoftext|>"})");
  const Outcome bad = run({"doctor", "model"});
  EXPECT_EQ(bad.code, 3);
  EXPECT_THAT(bad.out,
              HasSubstr("✗ 1 exchange           turn end  the turn ends in \"<|im_end|>\\n\""));
  EXPECT_THAT(bad.err, HasSubstr("model: the chat template does not fit training"));
}

}  // namespace
}  // namespace ingot::testing
