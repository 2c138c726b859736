#include "ingot/cli/chat_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "ingot/base/files.h"
#include "ingot/base/json_library.h"
#include "tests/cli/byte_chat_model.h"
#include "tests/cli/program.h"

namespace ingot::testing {
namespace {

using ::testing::HasSubstr;

class Chat : public ::testing::Test {
 protected:
  // What is printed for such an input.
  std::string say(const std::string& input) {
    std::istringstream in(input);
    std::ostringstream out;
    options.sampling.config.max_tokens = 12;
    session = std::make_unique<ChatSession>(loaded, options, in, out);
    session->run();
    return out.str();
  }
  std::vector<std::string> roles() const {
    std::vector<std::string> out;
    for (const Message& turn : session->conversation().messages) {
      out.emplace_back(role_of(turn));
    }
    return out;
  }
  std::string content(size_t turn) const {
    return *session->conversation().messages[turn].fields.find("content")->text();
  }

  LoadedModel loaded = byte_chat_model();
  ChatSession::Options options;
  std::unique_ptr<ChatSession> session;
};

TEST_F(Chat, KeepsEveryTurnAsTheTemplateSpellsIt) {
  options.system = "be brief";
  say("one\ntwo\n");
  EXPECT_EQ(roles(), (Words{"system", "user", "assistant", "user", "assistant"}));
  const std::string expected = "<system>be brief<user>one<assistant>" + content(2) + "\n<user>two" +
                               "<assistant>" + content(4) + "\n<assistant>";
  EXPECT_EQ(session->prompt(), loaded.text().prompt(expected));
}

TEST_F(Chat, AnswersAreThoseOfGenerate) {
  options.sampling.config.seed = 6;
  const std::string printed = say("hello\n");
  GenerateConfig config;
  config.max_tokens = 12;
  config.seed = 6;
  const Tokens tokens =
      generate(loaded.decoder(), {loaded.text().prompt("<user>hello<assistant>")}, config)[0];
  CodecStream stream(loaded.text());
  std::string text;
  for (const int64_t token : tokens) {
    text += stream.add(token);
  }
  EXPECT_EQ(printed, text + stream.finish() + "\n");
  EXPECT_EQ(content(1) + "\n", printed);
}

TEST_F(Chat, ReadsMessagesOfSeveralLines) {
  say("a\\\nb\n\"\"\"\n/help\n\nx\n\"\"\"\n  \n\nlast\\\n");
  ASSERT_EQ(roles().size(), 6U);
  EXPECT_EQ(content(0), "a\nb");
  EXPECT_EQ(content(2), "/help\n\nx");
  EXPECT_EQ(content(4), "last\n");
}

TEST_F(Chat, ObeysItsCommands) {
  TemporaryFolder folder;
  const std::string file = folder / "saved.jsonl";
  const std::string printed = say("/undo\n/system first\none\n/system second\ntwo\n/undo\n/save " +
                                  file + "\n/what\n/help\n/save\n/save /absent/x\n/quit\nnever\n");
  EXPECT_EQ(roles(), (Words{"system", "user", "assistant"}));
  EXPECT_EQ(content(0), "second");
  EXPECT_EQ(content(1), "one");
  EXPECT_THAT(printed, HasSubstr("there is nothing to take back"));
  EXPECT_THAT(printed, HasSubstr("/what: no such command; /help lists them"));
  EXPECT_THAT(printed, HasSubstr("/undo          takes back"));
  EXPECT_THAT(printed, HasSubstr("saved " + file));
  EXPECT_THAT(printed, HasSubstr("/save: no file"));
  EXPECT_THAT(printed, HasSubstr("/absent/x"));
  const auto saved = nlohmann::json::parse(read_file(file));
  ASSERT_EQ(saved["messages"].size(), 3U);
  EXPECT_EQ(saved["messages"][1]["content"], "one");
  say("one\n/clear\n");
  EXPECT_TRUE(roles().empty());
}

TEST_F(Chat, SaysWhenTheConversationOutgrowsTheContext) {
  const std::string printed = say(std::string(300, 'x') + "\nshort\n");
  EXPECT_THAT(printed, HasSubstr("the prompt is longer than the model's context"));
  EXPECT_EQ(roles(), (Words{"user", "assistant"}));
  EXPECT_EQ(content(0), "short");
}

TEST_F(Chat, ShowsWhereToWriteOnATerminalOnly) {
  EXPECT_EQ(say("/clear\n"), "");
  options.prompted = true;
  EXPECT_EQ(say("/clear\n"), "> > ");
}

TEST_F(Chat, WithoutATemplateContinuesAScript) {
  loaded.chat.reset();
  options.system = "A talk.";
  say("hello\n");
  const std::string expected = "A talk.\nUser: hello\nAssistant: " + content(2) + "\nAssistant:";
  EXPECT_EQ(session->prompt(), loaded.text().prompt(expected));
  EXPECT_EQ(content(2).find("\nUser:"), std::string::npos);
}

TEST(ChatCommand, WarnsOfABaseModelAndWorksWithoutATerminal) {
  if (const std::string reason = no_program(); !reason.empty()) {
    GTEST_SKIP() << reason;
  }
  const Workplace work;
  ASSERT_EQ(work.run(work.train("run", {"--set", "model.context=128"})).code, 0);
  const auto config = nlohmann::json::parse(content(work / "run/model/config.json"));
  EXPECT_EQ(config["ingot"]["stage"], "base");
  const Outcome continued =
      work.run({"generate", "run/model", "--prompt", "in the ", "--tokens", "8"});
  EXPECT_EQ(continued.code, 0) << continued.err;
  EXPECT_EQ(continued.out.rfind("in the ", 0), 0U);
  put(work / "input", "in the\n/quit\n");
  const std::string command = "cd '" + work.path().string() + "' && '" + program().string() +
                              "' chat run/model --tokens 5 < input > output 2> errors";
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_THAT(content(work / "errors"),
              HasSubstr("no chat template, so it was not trained to converse"));
  EXPECT_FALSE(content(work / "output").empty());
}

}  // namespace
}  // namespace ingot::testing
