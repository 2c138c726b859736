#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "ingot/base/error.h"
#include "ingot/base/files.h"
#include "ingot/text/chat_check.h"
#include "ingot/text/chat_mask.h"
#include "ingot/text/chat_template.h"
#include "ingot/text/jinja_json.h"
#include "tests/support/paths.h"

namespace ingot {
namespace {

using testing::data_folder;
using testing::no_data_folder;
using testing::TemporaryFolder;

// Templates in the style of published ones, small enough to see what is right.
constexpr std::string_view chatml =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
// Drops the reasoning of all but the last answer.
constexpr std::string_view forgetful =
    "{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' %}"
    "{% if loop.last %}({{ m.reasoning }}){% endif %}{% endif %}{{ m.content }}</s>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}";

jinja::Mapping tokens(std::string_view eos, std::string_view bos = "") {
  jinja::Mapping out;
  out.set("eos_token", eos);
  if (!bos.empty()) {
    out.set("bos_token", bos);
  }
  return out;
}

ChatTemplate chat_of(std::string_view source, std::string_view eos, std::string_view bos = "") {
  return ChatTemplate(source, tokens(eos, bos), "t");
}

Conversation talk(std::initializer_list<std::pair<std::string_view, std::string_view>> turns) {
  Conversation out;
  for (const auto& [role, content] : turns) {
    out.messages.push_back(make_message(role, content));
  }
  return out;
}

std::vector<std::string> shown_texts(const std::vector<TrainingText>& rows) {
  std::vector<std::string> out;
  for (const TrainingText& row : rows) {
    out.push_back(shown(row, Colours::none));
  }
  return out;
}

template <class F>
std::string message_of(F run) {
  try {
    run();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(ChatMask, LearnsAnswersUpToTheirEndAndNothingElse) {
  const auto rows = training_texts(chat_of(chatml, "<|im_end|>"), talk({{"system", "S"},
                                                                        {"user", "U1"},
                                                                        {"assistant", "A1"},
                                                                        {"user", "U2"},
                                                                        {"assistant", "A2"}}));
  EXPECT_EQ(
      shown_texts(rows),
      std::vector<std::string>{"<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU1<|im_end|>\n"
                               "<|im_start|>assistant\n«A1<|im_end|>»\n<|im_start|>user\n"
                               "U2<|im_end|>\n<|im_start|>assistant\n«A2<|im_end|>»\n"});
}

TEST(ChatMask, IsNotFooledByAnswersThatLookLikeTurns) {
  const auto rows = training_texts(chat_of(chatml, "<|im_end|>"),
                                   talk({{"user", "<|im_start|>assistant\nno<|im_end|>"},
                                         {"assistant", "a<|im_end|>\n<|im_start|>user\nb"}}));
  EXPECT_EQ(
      shown_texts(rows)[0],
      "<|im_start|>user\n<|im_start|>assistant\nno<|im_end|><|im_end|>\n<|im_start|>assistant\n"
      "«a<|im_end|>\n<|im_start|>user\nb<|im_end|>»\n");
}

TEST(ChatMask, FollowsRolesAndTheFlagsOfTurns) {
  Conversation all =
      talk({{"user", "U1"}, {"assistant", "A1"}, {"user", "U2"}, {"assistant", "A2"}});
  all.messages[1].train = false;
  EXPECT_EQ(training_texts(chat_of(chatml, "<|im_end|>"), all)[0].turns, std::vector<size_t>{3});
  all.messages[2].train = true;  // a turn that is not prompted for is learnt whole
  EXPECT_EQ(shown_texts(training_texts(chat_of(chatml, "<|im_end|>"), all))[0],
            "<|im_start|>user\nU1<|im_end|>\n<|im_start|>assistant\nA1<|im_end|>\n"
            "«<|im_start|>user\nU2<|im_end|>»\n<|im_start|>assistant\n«A2<|im_end|>»\n");
  MaskOptions users;
  users.roles = {"user"};
  all.messages[2].train.reset();
  EXPECT_EQ(training_texts(chat_of(chatml, "<|im_end|>"), all, users)[0].turns,
            (std::vector<size_t>{0, 2}));
}

TEST(ChatMask, GivesEachTurnATextOfItsOwnWhereTheTemplateRewritesEarlierOnes) {
  Conversation all =
      talk({{"user", "U1"}, {"assistant", "A1"}, {"user", "U2"}, {"assistant", "A2"}});
  all.messages[1].fields.set("reasoning", "R1");
  all.messages[3].fields.set("reasoning", "R2");
  const ChatTemplate chat = chat_of(forgetful, "</s>");
  EXPECT_EQ(shown_texts(training_texts(chat, all)),
            (std::vector<std::string>{
                "<user>U1</s><assistant>«(R1)A1</s>»",
                "<user>U1</s><assistant>A1</s><user>U2</s><assistant>«(R2)A2</s>»"}));
  MaskOptions one_text;
  one_text.rewrites = Rewrites::refuse;
  EXPECT_NE(message_of([&] {
              training_texts(chat, all, one_text);
            }).find("messages[1]: the template rewrites this turn"),
            std::string::npos);
}

TEST(ChatMask, RefusesATurnThatDoesNotContinueThePrompt) {
  const ChatTemplate chat = chat_of(
      "{% for m in messages %}[{{ m.role }}]{{ m.content }}$\n{% endfor %}"
      "{% if add_generation_prompt %}[assistant]<think>\n{% endif %}",
      "$");
  const std::string what = message_of([&] {
    training_texts(chat, talk({{"user", "U"}, {"assistant", "A"}}));
  });
  EXPECT_NE(what.find("messages[1] (assistant): the rendered turn does not continue the generation "
                      "prompt: after \"[user]U$\\n[assistant]\" the prompt has \"<think>"),
            std::string::npos)
      << what;
}

TEST(ChatMask, RefusesAConversationOfWhichNothingIsLearnt) {
  const std::string what = message_of([] {
    training_texts(chat_of(chatml, "<|im_end|>"), talk({{"user", "U"}, {"user", "V"}}));
  });
  EXPECT_NE(
      what.find("nothing of it is learnt: the learnt roles are assistant, its roles are user, "
                "user"),
      std::string::npos)
      << what;
}

TEST(ChatMask, TurnsTextIntoTokensByPosition) {
  const TrainingText text{"ab|cdef|g", {{3, 7}}, {0}};
  EXPECT_EQ(token_mask(text, std::vector<int64_t>{0, 3, 2, 2, 2}).learnt,
            (std::vector<uint8_t>{0, 0, 1, 1, 0}));
  const TokenMask joined = token_mask(text, std::vector<int64_t>{2, 2, 5});
  EXPECT_EQ(joined.learnt, (std::vector<uint8_t>{0, 0, 1}));
  EXPECT_EQ(joined.straddling, std::vector<size_t>{1});
  EXPECT_NE(message_of([&] {
              token_mask(text, std::vector<int64_t>{4, 4});
            }).find("8 bytes"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              token_mask(text, std::vector<int64_t>{4, 40});
            }).find("token 1"),
            std::string::npos);
}

// The property that training and inference agree, over every published template.
TEST(ChatMask, TrainsWhatInferenceSeesWithEveryPublishedTemplate) {
  if (!data_folder()) {
    GTEST_SKIP() << no_data_folder;
  }
  int64_t texts = 0;
  for (const std::string& name : list_folder(*data_folder() / "chat-templates")) {
    if (!name.ends_with(".json")) {
      continue;
    }
    SCOPED_TRACE(name);
    const auto path = *data_folder() / "chat-templates" / name;
    const jinja::Value all = jinja::parse_json_value(read_file(path), name);
    const ChatTemplate chat = chat_of(*all.mapping()->find("chat_template")->text(),
                                      *all.mapping()->find("eos_token")->text(),
                                      *all.mapping()->find("bos_token")->text());
    Conversation conversation =
        talk({{"user", "U1"}, {"assistant", "A1"}, {"user", "U2"}, {"assistant", "A2"}});
    if (name.ends_with("tool_use.json")) {
      conversation.tools = jinja::list_of({});
    }
    std::vector<size_t> learnt;
    if (name.starts_with("DeepSeek-R1")) {  // prompts for reasoning, which it drops from every turn
      EXPECT_NE(message_of([&] {
                  training_texts(chat, conversation);
                }).find("does not continue the generation prompt"),
                std::string::npos);
      continue;
    }
    for (const TrainingText& row : training_texts(chat, conversation)) {
      for (size_t i = 0; i < row.turns.size(); ++i) {
        ApplyOptions prompt;
        prompt.add_generation_prompt = true;
        const auto before = std::span(conversation.messages).first(row.turns[i]);
        EXPECT_EQ(row.text.substr(0, row.learnt[i].begin),
                  chat.apply(before, conversation.tools, prompt));
        EXPECT_NE(row.text.substr(row.learnt[i].begin).find(row.turns[i] == 1 ? "A1" : "A2"),
                  std::string::npos);
        learnt.push_back(row.turns[i]);
        ++texts;
      }
    }
    std::sort(learnt.begin(), learnt.end());
    EXPECT_EQ(learnt, (std::vector<size_t>{1, 3}));
  }
  EXPECT_GE(texts, 20);
}

TEST(ChatMessage, ReadsOpenAiConversations) {
  const Conversation all = parse_conversation(
      R"({"messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]},
          {"role": "assistant", "content": null, "weight": 0, "tool_calls": [{"type": "function",
           "function": {"name": "f", "arguments": "{\"x\": 1}"}}]}],
          "tools": [{"type": "function"}]})",
      "row 3");
  EXPECT_EQ(all.messages[1].train, false);
  EXPECT_EQ(all.messages[1].fields.find("weight"), nullptr);
  EXPECT_EQ(role_of(all.messages[0]), "user");
  const ChatTemplate chat = chat_of("{{ messages[1].tool_calls[0].function.arguments.x }}", "");
  EXPECT_EQ(chat.apply(all), "1");
}

TEST(ChatMessage, NamesWhatIsMissing) {
  const std::pair<const char*, const char*> cases[] = {
      {"[]", "row 3: not an object: list"},
      {"{}", "row 3: no messages"},
      {R"({"messages": 3})", "row 3: messages: not a list: int"},
      {R"({"messages": []})", "row 3: messages: empty"},
      {R"({"messages": [3]})", "row 3: messages[0]: not an object: int"},
      {R"({"messages": [{"content": "x"}]})", "row 3: messages[0]: no role"},
      {R"({"messages": [{"role": 1, "content": "x"}]})", "row 3: messages[0]: role: not a text"},
      {R"({"messages": [{"role": "user"}]})", "row 3: messages[0]: no content"},
      {R"({"messages": [{"role": "user", "content": 1}]})", "row 3: messages[0]: content: a int"},
      {R"({"messages": [{"role": "user", "content": [1]}]})", "content[0]: no part"},
      {R"({"messages": [{"role": "a", "content": "", "train": 1}]})", "train: a int"},
      {R"({"messages": [{"role": "a", "content": "", "weight": 0.5}]})", "weight: neither 0 nor 1"},
      {R"({"messages": [{"role": "a", "tool_calls": {}}]})", "tool_calls: not a list: dict"},
      {R"({"messages": [{"role": "a", "tool_calls": [1]}]})", "tool_calls[0]: not an object: int"},
      {R"({"messages": [{"role": "a", "content": "x"}], "tools": 1})", "tools: not a list"},
      {R"({"messages": [)", "row 3:1:15: not valid JSON"},
      {"{\"messages\": [{\"role\": \"\xff\"", "not valid JSON"},
      {R"({"messages": 123456789012345678901234567890})", "integer beyond 64 bits"},
  };
  for (const auto& [text, wanted] : cases) {
    const std::string what = message_of([&] { parse_conversation(text, "row 3"); });
    EXPECT_NE(what.find(wanted), std::string::npos) << text << "\n" << what;
  }
  const std::string deep = std::string(100'000, '[');
  EXPECT_NE(message_of([&] { parse_conversation(deep, "row 3"); }).find("deeper than"),
            std::string::npos);
}

TEST(ChatTemplates, AreReadFromAFolderInTheOrderOfTransformers) {
  const TemporaryFolder folder;
  const Conversation hi = talk({{"user", "hi"}});
  EXPECT_NE(message_of([&] { ChatTemplate::load(folder.path()); }).find("no chat template"),
            std::string::npos);
  write_file(folder / "special_tokens_map.json",
             R"({"eos_token": "<old>", "pad_token": {"content": "<pad>"}})");
  write_file(folder / "tokenizer_config.json",
             R"({"bos_token": null, "eos_token": {"content": "</s>", "lstrip": false},
                 "chat_template": "{{ messages[0].content ~ eos_token ~ pad_token ~ bos_token }}"})");
  EXPECT_EQ(ChatTemplate::load(folder.path()).apply(hi), "hi</s><pad>");
  write_file(folder / "tokenizer_config.json",
             R"({"chat_template": [{"name": "default", "template": "plain"},
                                   {"name": "tool_use", "template": "with {{ tools | length }}"}]})");
  const ChatTemplate named = ChatTemplate::load(folder.path());
  Conversation tools = hi;
  tools.tools = jinja::list_of({jinja::dict_of({})});
  EXPECT_EQ(named.apply(hi), "plain");
  EXPECT_EQ(named.apply(tools), "with 1");
  ApplyOptions other;
  other.which = "rag";
  EXPECT_NE(message_of([&] { named.apply(hi, other); }).find("it has default, tool_use"),
            std::string::npos);
  write_file(folder / "chat_template.jinja", "{{ nothing.here }}");
  EXPECT_NE(message_of([&] {
              ChatTemplate::load(folder.path()).apply(hi);
            }).find("chat_template.jinja:1: nothing.here: 'nothing' is undefined"),
            std::string::npos);
  write_file(folder / "tokenizer_config.json", "[]");
  EXPECT_NE(message_of([&] { ChatTemplate::load(folder.path()); }).find("not an object"),
            std::string::npos);
}

TEST(ChatTemplates, StopAtEosAndWhatTheGenerationConfigNames) {
  const TemporaryFolder folder;
  write_file(folder / "chat_template.jinja", "x");
  write_file(folder / "tokenizer_config.json",
             R"({"eos_token": "<eos>", "added_tokens_decoder": {"107": {"content": "<end>"}}})");
  EXPECT_EQ(ChatTemplate::load(folder.path()).stops(), std::vector<std::string>{"<eos>"});
  write_file(folder / "generation_config.json", R"({"eos_token_id": [1, 107, "x"]})");
  EXPECT_EQ(ChatTemplate::load(folder.path()).stops(),
            (std::vector<std::string>{"<eos>", "<end>"}));
  write_file(folder / "tokenizer_config.json", R"({"eos_token": "<eos>"})");
  write_file(folder / "tokenizer.json", R"({"added_tokens": [{"id": 107, "content": "<stop>"}]})");
  EXPECT_EQ(ChatTemplate::load(folder.path()).stops(),
            (std::vector<std::string>{"<eos>", "<stop>"}));
}

TEST(ChatTemplates, PassExtraVariablesAndRefuseTextsThatAreNotUtf8) {
  const ChatTemplate chat = chat_of("{{ enable_thinking is defined }}{{ tools is none }}", "");
  ApplyOptions options;
  options.extra.set("enable_thinking", false);
  EXPECT_EQ(chat.apply(talk({{"user", "hi"}}), options), "TrueTrue");
  EXPECT_NE(message_of([&] {
              chat.apply(talk({{"user", "a\xffz"}}));
            }).find("messages[0]: not valid UTF-8: byte 255 at offset 1"),
            std::string::npos);
}

std::string findings_of(const ChatTemplate& chat, const ChatCheckOptions& options = {}) {
  return text_of(check_chat(chat, options), Colours::none);
}

TEST(ChatCheck, IsGreenForATemplateThatFits) {
  const ChatTemplate chat = chat_of(chatml, "<|im_end|>");
  EXPECT_TRUE(is_good(check_chat(chat))) << findings_of(chat);
  EXPECT_NE(findings_of(chat).find("✓ 1 exchange           turn end  \"<|im_end|>\" is learnt"),
            std::string::npos)
      << findings_of(chat);
}

TEST(ChatCheck, SeesASecondBosAnEndThatIsNoStopAndAPromptThatDiffers) {
  const std::string twice = "<s>{% for m in messages %}<s>" + std::string(chatml.substr(23));
  EXPECT_NE(findings_of(chat_of(twice, "<|im_end|>", "<s>")).find("✗ 1 exchange           BOS"),
            std::string::npos)
      << findings_of(chat_of(twice, "<|im_end|>", "<s>"));
  const std::string wrong_stop = findings_of(chat_of(chatml, "<|endoftext|>"));
  EXPECT_NE(wrong_stop.find("the turn ends in \"<|im_end|>\\n\", which holds no stop; stops are "
                            "\"<|endoftext|>\""),
            std::string::npos)
      << wrong_stop;
  const ChatTemplate thinks = chat_of(
      "{% for m in messages %}[{{ m.role }}]{{ m.content }}${% endfor %}"
      "{% if add_generation_prompt %}[assistant]<think>{% endif %}",
      "$");
  EXPECT_FALSE(is_good(check_chat(thinks)));
}

TEST(ChatCheck, ComparesIdsWhereATokenizerIsGiven) {
  ChatCheckOptions options;
  options.bos_id = 1;
  // A tokenizer that adds BOS, and joins two line ends.
  options.encode = [](std::string_view text) {
    std::vector<int64_t> ids = {1};
    for (size_t i = 0; i < text.size(); ++i) {
      const bool joined = text.substr(i).starts_with("\nA");
      ids.push_back(joined ? 300 : static_cast<uint8_t>(text[i]));
      i += joined ? 1 : 0;
    }
    return ids;
  };
  const std::string found = findings_of(chat_of(chatml, "<|im_end|>"), options);
  EXPECT_NE(found.find("the tokenizer joins the prompt's end with the answer"), std::string::npos)
      << found;
}

TEST(ChatTemplate, StopsAtItsEndOfSequenceAndAtWhatItIsToldOnce) {
  jinja::Mapping named;
  named.set("eos_token", "</s>");
  const ChatTemplate chat("{{ eos_token }}", named, "t", {"<|im_end|>", "</s>", ""});
  EXPECT_EQ(chat.stops(), (std::vector<std::string>{"</s>", "<|im_end|>"}));
  EXPECT_EQ(chat.apply({{make_message("user", "hi")}, {}}, {}), "</s>");
}

}  // namespace
}  // namespace ingot
