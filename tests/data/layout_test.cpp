#include "ingot/data/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ingot/data/example_reader.h"
#include "tests/support/message.h"
#include "tests/support/paths.h"

namespace ingot::testing {
namespace {

using ::testing::HasSubstr;

std::vector<Example> read(const std::string& json, LayoutOptions options = {}) {
  const jinja::Value row = json_row(json, "rows.jsonl:7");
  const auto layout = layout_of(*row.mapping());
  EXPECT_TRUE(layout.has_value()) << json;
  return examples_of(row, *layout, {"rows.jsonl", 7}, options);
}

Example one(const std::string& json) {
  const std::vector<Example> all = read(json);
  EXPECT_EQ(all.size(), 1u);
  return all.at(0);
}

std::string spelled(const std::vector<Message>& messages) {
  std::string out;
  for (const Message& message : messages) {
    const jinja::Value* content = message.fields.find("content");
    out += concat(role_of(message), ":", content == nullptr ? "" : *content->text(), ";");
  }
  return out;
}

std::string fault_of(const std::string& json) {
  try {
    read(json);
  } catch (const RowError& error) {
    EXPECT_THAT(error.what(), HasSubstr("rows.jsonl:7"));
    return std::string(name(error.fault())) + ": " + error.what();
  }
  return "none";
}

TEST(Layouts, OfGeneratedAnswersPutThemInThePlaceOfTheOldOnes) {
  EXPECT_EQ(
      spelled(
          one(R"({"row": 3, "input": {"messages": [{"role": "user", "content": "U"}, {"role": "assistant", "content": "old"}]}, "output": "A", "finish": "stop"})")
              .conversation.messages),
      "user:U;assistant:A;");
  EXPECT_EQ(
      spelled(
          one(R"({"input": {"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "U"}]}, "output": "A"})")
              .conversation.messages),
      "system:S;user:U;assistant:A;");
  const Example plain = one(R"({"input": {"prompt": "U"}, "output": "A", "finish": "stop"})");
  EXPECT_TRUE(plain.plain);
  EXPECT_EQ(spelled(plain.conversation.messages), "user:U;assistant:A;");
  for (const char* finish : {"length", "context", "interrupted", "failed"}) {
    EXPECT_THAT(fault_of(concat(R"({"input": {"prompt": "U"}, "output": "A", "finish": ")", finish,
                                R"("})")),
                HasSubstr(concat("answer cut off: rows.jsonl:7: the answer ends before its end "
                                 "(finish: ",
                                 finish, ")")));
  }
  EXPECT_THAT(fault_of(R"({"input": {"prompt": [1, 2]}, "output": "A"})"),
              HasSubstr("bad message"));
  EXPECT_THAT(fault_of(R"({"input": {"messages": []}, "output": ""})"), HasSubstr("empty text"));
}

TEST(Layouts, OfConversationsBecomeMessages) {
  const std::string wanted = "user:U;assistant:A;";
  EXPECT_EQ(
      spelled(
          one(R"({"messages": [{"role": "user", "content": "U"}, {"role": "assistant", "content": "A"}]})")
              .conversation.messages),
      wanted);
  EXPECT_EQ(
      spelled(
          one(R"({"conversations": [{"from": "human", "value": "U"}, {"from": "gpt", "value": "A"}]})")
              .conversation.messages),
      wanted);
  EXPECT_EQ(
      spelled(one(R"({"instruction": "U", "input": "", "output": "A"})").conversation.messages),
      wanted);
  EXPECT_EQ(
      spelled(
          one(R"({"instruction": "I", "input": "x", "output": "A", "system": "S", "history": [["a", "b"]]})")
              .conversation.messages),
      "system:S;user:a;assistant:b;user:I\n\nx;assistant:A;");
  const Example plain = one(R"({"prompt": "U", "response": "A"})");
  EXPECT_TRUE(plain.plain);
  EXPECT_EQ(spelled(plain.conversation.messages), wanted);
  const Example chat = one(
      R"({"prompt": [{"role": "user", "content": "U"}], "completion": [{"role": "assistant", "content": "A"}]})");
  EXPECT_FALSE(chat.plain);
  EXPECT_EQ(spelled(chat.conversation.messages), wanted);
  EXPECT_EQ(one(R"({"text": "T"})").text, "T");
  EXPECT_EQ(
      read(
          R"({"instruction": "I", "instances": [{"input": "a", "output": "b"}, {"input": "", "output": "d"}], "id": "s"})")
          .size(),
      2u);
}

TEST(Layouts, OfToolCallsKeepThem) {
  const Example example = one(
      R"({"conversations": [{"from": "human", "value": "U"}, {"from": "function_call", "value": "{\"name\": \"f\", \"arguments\": {\"x\": 1}}"},
          {"from": "observation", "value": "1"}, {"from": "gpt", "value": "A"}], "tools": "[{\"name\": \"f\"}]"})");
  ASSERT_EQ(example.conversation.messages.size(), 4u);
  EXPECT_EQ(json_of(*example.conversation.messages[1].fields.find("tool_calls")),
            R"([{"type": "function", "function": {"name": "f", "arguments": {"x": 1}}}])");
  EXPECT_EQ(role_of(example.conversation.messages[2]), "tool");
  EXPECT_EQ(json_of(example.conversation.tools), R"([{"name": "f"}])");
}

TEST(Layouts, OfTreesGiveAConversationForEachLeaf) {
  const auto all =
      read(R"({"message_tree_id": "t", "prompt": {"text": "U", "role": "prompter", "replies": [
    {"text": "A", "role": "assistant", "replies": []},
    {"text": "B", "role": "assistant", "replies": [{"text": "V", "role": "prompter", "replies": []}]}]}})");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(spelled(all[0].conversation.messages), "user:U;assistant:A;");
  EXPECT_EQ(spelled(all[1].conversation.messages), "user:U;assistant:B;");
  EXPECT_EQ(all[1].id, "t/1");
}

TEST(Layouts, OfPreferencesTellPromptChosenAndRejected) {
  for (
      const char* row :
      {R"({"prompt": "U", "chosen": "A", "rejected": "B"})",
       R"({"prompt": [{"role": "user", "content": "U"}], "chosen": [{"role": "assistant", "content": "A"}], "rejected": [{"role": "assistant", "content": "B"}]})",
       R"({"chosen": [{"role": "user", "content": "U"}, {"role": "assistant", "content": "A"}], "rejected": [{"role": "user", "content": "U"}, {"role": "assistant", "content": "B"}]})",
       R"({"prompt": "U", "chosen": [{"role": "user", "content": "U"}, {"role": "assistant", "content": "A"}], "rejected": [{"role": "user", "content": "U"}, {"role": "assistant", "content": "B"}]})",
       R"({"conversations": [{"from": "human", "value": "U"}], "chosen": {"from": "gpt", "value": "A"}, "rejected": {"from": "gpt", "value": "B"}})",
       R"({"instruction": "U", "input": "", "chosen": "A", "rejected": "B"})",
       R"({"chosen": "\n\nHuman: U\n\nAssistant: A", "rejected": "\n\nHuman: U\n\nAssistant: B"})"}) {
    const Example pair = one(row);
    EXPECT_EQ(pair.kind, ExampleKind::pair) << row;
    EXPECT_EQ(spelled(pair.conversation.messages), "user:U;") << row;
    ASSERT_EQ(pair.answers.size(), 2u);
    EXPECT_EQ(spelled(pair.answers[0]), "assistant:A;") << row;
    EXPECT_EQ(spelled(pair.answers[1]), "assistant:B;") << row;
  }
  EXPECT_TRUE(one(R"({"prompt": "U", "chosen": "A", "rejected": "B"})").plain);
  const Example chat =
      with_answer(one(R"({"instruction": "U", "chosen": "A", "rejected": "B"})"), 1);
  EXPECT_EQ(spelled(chat.conversation.messages), "user:U;assistant:B;");
  EXPECT_EQ(chat.conversation.messages[0].train, false);
  EXPECT_EQ(chat.conversation.messages[1].train, true);
}

TEST(Layouts, OfLabelsAndRanksAreRead) {
  const Example label = one(
      R"({"messages": [{"role": "user", "content": "U"}, {"role": "assistant", "content": "A"}], "label": false})");
  EXPECT_EQ(label.kind, ExampleKind::label);
  EXPECT_FALSE(label.wanted);
  EXPECT_EQ(spelled(label.conversation.messages), "user:U;");
  EXPECT_EQ(spelled(label.answers.at(0)), "assistant:A;");
  EXPECT_TRUE(one(R"({"prompt": "U", "completion": "A", "label": true})").wanted);
  const Example ranked =
      one(R"({"prompt": "U", "responses": ["worst", "best", "middle"], "ranks": [3, 1, 2]})");
  EXPECT_EQ(spelled(ranked.answers.at(0)), "assistant:best;");
  EXPECT_EQ(spelled(ranked.answers.at(2)), "assistant:worst;");
  EXPECT_EQ(
      spelled(one(R"({"prompt": "U", "responses": ["a", "b"], "scores": [0.1, 7]})").answers.at(0)),
      "assistant:b;");
}

TEST(Layouts, NameWhatIsWrongInARow) {
  const auto chat = [](const std::string& messages) {
    return "{\"messages\": [" + messages + "]}";
  };
  const std::string user = R"({"role": "user", "content": "U"})";
  const std::string assistant = R"({"role": "assistant", "content": "A"})";
  EXPECT_THAT(fault_of(chat(R"({"role": "asistant", "content": "A"})")),
              HasSubstr("unknown role: rows.jsonl:7: messages[0]: unknown role 'asistant'; the "
                        "nearest is 'assistant'"));
  EXPECT_THAT(
      fault_of(chat(assistant + "," + user)),
      HasSubstr(
          "roles out of order: rows.jsonl:7: messages[0]: assistant cannot follow the start"));
  EXPECT_THAT(fault_of(chat(user + "," + user)), HasSubstr("messages[1]: user cannot follow user"));
  EXPECT_THAT(fault_of(chat(user + R"(,{"role": "system", "content": "S"})")),
              HasSubstr("messages[1]: system cannot follow user"));
  EXPECT_THAT(fault_of(chat(user + R"(,{"role": "assistant", "content": " "})")),
              HasSubstr("empty text: rows.jsonl:7: messages[1] (assistant): the content is empty"));
  EXPECT_THAT(fault_of(chat(user + R"(,{"role": "assistant"})")),
              HasSubstr("bad message: rows.jsonl:7: messages[1]: no content"));
  EXPECT_THAT(fault_of(chat(R"({"content": "U"})")), HasSubstr("no role"));
  EXPECT_THAT(fault_of(chat("")), HasSubstr("messages: empty"));
  EXPECT_THAT(fault_of(R"({"prompt": "U", "chosen": "A", "rejected": "A"})"),
              HasSubstr("identical answers: rows.jsonl:7: chosen and rejected are the same"));
  EXPECT_THAT(fault_of(R"({"prompt": "U", "chosen": "A"})"), HasSubstr("no \"rejected\""));
  EXPECT_THAT(fault_of(R"({"prompt": "U", "chosen": "A", "rejected": ""})"),
              HasSubstr("rejected: the text is empty"));
  EXPECT_THAT(fault_of(R"({"instruction": "I", "output": ""})"), HasSubstr("the text is empty"));
  EXPECT_THAT(fault_of(R"({"prompt": "U", "responses": ["a", "b"], "ranks": [1]})"),
              HasSubstr("2 responses, 1 ranks"));
  EXPECT_THAT(fault_of(R"({"messages": [{"role": "user", "content": "U"}], "label": "x"})"),
              HasSubstr("label: neither true nor false"));
  EXPECT_EQ(read(chat(assistant + "," + user), {RoleOrder::any}).size(), 1u);
}

TEST(Layouts, AreConvertedWithoutLoss) {
  const std::string row =
      R"({"id": "x", "messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "U"}, {"role": "assistant", "content": "A"}, {"role": "user", "content": "V"}, {"role": "assistant", "content": "B"}]})";
  const Example example = one(row);
  EXPECT_EQ(json_of(row_of(example, Layout::messages)), row);
  for (const Layout layout : {Layout::alpaca, Layout::sharegpt, Layout::completion}) {
    const Example again = one(json_of(row_of(example, layout)));
    EXPECT_EQ(content_hash(again), content_hash(example)) << name(layout);
    EXPECT_EQ(again.id, "x");
  }
  const Example pair = one(
      R"({"prompt": [{"role": "user", "content": "U"}], "chosen": [{"role": "assistant", "content": "A"}], "rejected": [{"role": "assistant", "content": "B"}]})");
  EXPECT_EQ(content_hash(one(json_of(row_of(pair, Layout::preference)))), content_hash(pair));
  EXPECT_EQ(spelled(one(json_of(row_of(pair, Layout::messages))).conversation.messages),
            "user:U;assistant:A;");
  EXPECT_THAT(message_of(ErrorKind::format, [&] { row_of(example, Layout::preference); }),
              HasSubstr("rows.jsonl:7: the layout preference cannot say a chat"));
  const Example tools = one(
      R"({"messages": [{"role": "user", "content": "U"}, {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": {}}}]}], "tools": [{"name": "f"}]})");
  EXPECT_EQ(content_hash(one(json_of(row_of(tools, Layout::sharegpt)))), content_hash(tools));
  EXPECT_THAT(message_of(ErrorKind::format, [&] { row_of(tools, Layout::alpaca); }),
              HasSubstr("cannot say tools"));
}

// Every file of the data folder in these layouts, by the number of its rows.
TEST(Layouts, OfPublishedDataAreRecognised) {
  if (!data_folder()) {
    GTEST_SKIP() << no_data_folder;
  }
  struct Case {
    const char* file;
    Layout layout;
  };
  for (const Case& one : std::initializer_list<Case>{
           {"instruct-dolly-hhrlhf/alpaca.json", Layout::alpaca},
           {"instruct-dolly-hhrlhf/prompt_response.jsonl", Layout::completion},
           {"instruct-oasst/messages.jsonl", Layout::messages},
           {"instruct-oasst/trees.jsonl", Layout::tree},
           {"instruct-self-instruct/seed_tasks.jsonl", Layout::alpaca},
           {"instruct-self-instruct/seed_tasks_alpaca.json", Layout::alpaca},
           {"instruct-sharegpt/dummy_conversation.json", Layout::sharegpt},
           {"instruct-sharegpt/glaive_toolcall.json", Layout::sharegpt},
           {"pref-dpo-sharegpt/dpo_en.json", Layout::preference},
           {"pref-dpo-sharegpt/dpo_en_messages.jsonl", Layout::preference},
           {"pref-hh/hh_converted.jsonl", Layout::preference},
           {"pref-hh/hh_native.jsonl", Layout::preference},
           {"pref-kto/kto_en.json", Layout::label},
           {"corpus-wikipedia/wiki.jsonl", Layout::text},
           {"corpus-code/code.jsonl", Layout::text}}) {
    ReadOptions options;
    options.policy = RowPolicy::drop;
    ExampleReader reader(*data_folder() / one.file, options);
    std::vector<Example> block;
    int64_t examples = 0;
    while (reader.next(block)) {
      examples += static_cast<int64_t>(block.size());
    }
    EXPECT_EQ(reader.layout(), one.layout) << one.file;
    EXPECT_GT(examples, 0) << one.file;
    EXPECT_LE(reader.counts().all_dropped(), reader.counts().rows / 20)
        << one.file << ": " << reader.counts().text();
  }
}

}  // namespace
}  // namespace ingot::testing
