#include "ingot/data/render.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ingot/data/example_reader.h"
#include "ingot/data/fim.h"
#include "ingot/text/load_tokenizer.h"
#include "ingot/text/train_bpe.h"
#include "tests/data/tiny_tokenizer.h"
#include "tests/support/message.h"
#include "tests/support/paths.h"

namespace ingot::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Example chat_of(const std::string& messages) {
  const jinja::Value row = json_row("{\"messages\": [" + messages + "]}", "c.jsonl:3");
  return examples_of(row, Layout::messages, {"c.jsonl", 3}).at(0);
}

Example plain_of(const std::string& prompt, const std::string& completion) {
  const jinja::Value row = json_row(json_of(dict_of([&] {
                                      jinja::Mapping m;
                                      m.set("prompt", prompt);
                                      m.set("completion", completion);
                                      return m;
                                    }())),
                                    "p.jsonl:1");
  return examples_of(row, Layout::completion, {"p.jsonl", 1}).at(0);
}

const char* const two_turns =
    R"({"role": "user", "content": "hello"}, {"role": "assistant", "content": "the light"},
       {"role": "user", "content": "and"}, {"role": "assistant", "content": "the word"})";

std::string learnt_text(const TokenRow& row, const Tokenizer& tokenizer) {
  TokenIds ids;
  for (size_t i = 0; i < row.ids.size(); ++i) {
    if (row.learnt[i] != 0) {
      ids.push_back(row.ids[i]);
    }
  }
  return tokenizer.decode(ids, {.skip_special = false});
}

TEST(Renderer, LearnsTheAssistantsTurnsWithTheTokenThatEndsThem) {
  const auto tokenizer = tiny_tokenizer();
  const Renderer renderer(tokenizer, tiny_template(), {});
  const auto rows = renderer(chat_of(two_turns));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(learnt_text(rows[0], *tokenizer), "the light<|im_end|>the word<|im_end|>");
  EXPECT_EQ(tokenizer->decode(rows[0].ids, {.skip_special = false}),
            "<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\nthe light<|im_end|>\n"
            "<|im_start|>user\nand<|im_end|>\n<|im_start|>assistant\nthe word<|im_end|>\n");
  EXPECT_EQ(shown(rows[0], *tokenizer, Colours::none).find("assistant\n«the light<|im_end|>»"),
            std::string("<|im_start|>user\nhello<|im_end|>\n<|im_start|>").size());
}

TEST(Renderer, FindsTheEndOfAnAnswerThatIsALetterOfTheStop) {
  const auto tokenizer = tiny_tokenizer();
  const Renderer renderer(tokenizer, tiny_template(), {});
  for (const std::string answer : {"d", "end", "i", "|", "m_e"}) {
    const TokenRow row =
        renderer(chat_of(R"({"role": "user", "content": "a"}, {"role": "assistant", "content": ")" +
                         answer + "\"}"))
            .at(0);
    EXPECT_EQ(learnt_text(row, *tokenizer), answer + "<|im_end|>");
  }
}

TEST(Renderer, GivesBeforeAnAnswerTheIdsThatInferenceComputes) {
  const auto tokenizer = tiny_tokenizer();
  const auto chat = tiny_template();
  const Example example = chat_of(
      R"({"role": "user", "content": "hello  "}, {"role": "assistant", "content": "\nlight"})");
  const TokenRow row = Renderer(tokenizer, chat, {})(example).at(0);
  ApplyOptions apply;
  apply.add_generation_prompt = true;
  const std::string prompt = chat->apply({{example.conversation.messages[0]}, {}}, apply);
  const TokenIds ids = tokenizer->encode(prompt, {.parse_special = true});
  ASSERT_GT(row.ids.size(), ids.size());
  EXPECT_TRUE(std::equal(ids.begin(), ids.end(), row.ids.begin()));
  EXPECT_EQ(row.learnt[ids.size() - 1], 0);
  EXPECT_EQ(row.learnt[ids.size()], 1);
}

TEST(Renderer, HeedsFlagsOfTurnsAndRoles) {
  const auto tokenizer = tiny_tokenizer();
  RenderOptions options;
  const auto text = [&](const Example& example) {
    return learnt_text(Renderer(tokenizer, tiny_template(), options)(example).at(0), *tokenizer);
  };
  EXPECT_EQ(
      text(chat_of(
          R"({"role": "user", "content": "a"}, {"role": "assistant", "content": "b", "train": false},
                            {"role": "user", "content": "c"}, {"role": "assistant", "content": "d"})")),
      "d<|im_end|>");
  EXPECT_EQ(
      text(chat_of(
          R"({"role": "user", "content": "a", "train": true}, {"role": "assistant", "content": "b", "weight": 0})")),
      "<|im_start|>user\na<|im_end|>");
  options.roles = {"user"};
  EXPECT_EQ(
      text(chat_of(R"({"role": "user", "content": "a"}, {"role": "assistant", "content": "b"})")),
      "<|im_start|>user\na<|im_end|>");
  options.learn = Learn::all;
  EXPECT_THAT(text(chat_of(two_turns)), ::testing::StartsWith("<|im_start|>user"));
}

TEST(Renderer, JoinsPlainTextsAndEndsThem) {
  const auto tokenizer = tiny_tokenizer();
  const Renderer renderer(tokenizer, nullptr, {});
  const TokenRow row = renderer(plain_of("the word: ", "light")).at(0);
  EXPECT_EQ(tokenizer->decode(row.ids, {.skip_special = false}), "the word: light<|end|>");
  EXPECT_EQ(learnt_text(row, *tokenizer), "light<|end|>");
  Example document;
  document.text = "in the beginning";
  document.place = {"t.txt", 1};
  const TokenRow whole = renderer(document).at(0);
  EXPECT_EQ(learnt_text(whole, *tokenizer), "in the beginning<|end|>");
  EXPECT_EQ(whole.targets(), whole.size() - 1);
}

TEST(Renderer, NamesRowsOfWhichNothingIsLearnt) {
  const auto tokenizer = tiny_tokenizer();
  const Renderer renderer(tokenizer, tiny_template(), {});
  const Example silent = chat_of(
      R"({"role": "user", "content": "a"}, {"role": "assistant", "content": "b", "train": false})");
  EXPECT_THAT(message_of(ErrorKind::format, [&] { renderer(silent); }),
              ::testing::AllOf(HasSubstr("c.jsonl:3: "), HasSubstr("nothing of it is learnt")));
  EXPECT_THAT(
      message_of(ErrorKind::config, [&] { Renderer(tokenizer, nullptr, {})(chat_of(two_turns)); }),
      HasSubstr("a conversation needs a chat template, and the model has none; set data.template"));
  const auto refusing = std::make_shared<const ChatTemplate>("{{ raise_exception('no thanks') }}",
                                                             jinja::Mapping(), "t");
  EXPECT_THAT(
      message_of(ErrorKind::format, [&] { Renderer(tokenizer, refusing, {})(chat_of(two_turns)); }),
      ::testing::AllOf(HasSubstr("c.jsonl:3"), HasSubstr("no thanks")));
  TokenizerSpec endless = tokenizer->spec();
  endless.eos.reset();
  const Renderer without_end(std::make_shared<const Tokenizer>(std::move(endless)), nullptr, {});
  EXPECT_THAT(message_of(ErrorKind::config, [&] { without_end(plain_of("a", "b")); }),
              HasSubstr("the tokenizer has no end-of-text token"));
}

TEST(Renderer, TurnsAShareOfDocumentsToFillInTheMiddle) {
  const auto tokenizer = tiny_tokenizer({"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"});
  RenderOptions options;
  options.fim = {0.5, 0.5, 3, fim_tokens(*tokenizer)};
  options.end_text = false;
  const Renderer renderer(tokenizer, nullptr, options);
  int64_t turned = 0;
  int64_t suffix_first = 0;
  for (int i = 0; i < 400; ++i) {
    Example document;
    document.text = "é word number " + std::to_string(i);
    const TokenRow row = renderer(document).at(0);
    const std::string text = tokenizer->decode(row.ids, {.skip_special = false});
    if (text == document.text) {
      continue;
    }
    ++turned;
    suffix_first += text.starts_with("<|fim_prefix|><|fim_suffix|>") ? 1 : 0;
    EXPECT_EQ(row.ids, renderer(document).at(0).ids);
  }
  EXPECT_NEAR(static_cast<double>(turned), 200, 40);
  EXPECT_NEAR(static_cast<double>(suffix_first), 100, 35);
  EXPECT_THAT(message_of(ErrorKind::config, [&] { fim_tokens(*tiny_tokenizer()); }),
              HasSubstr("has no tokens for filling in"));
}

// With tokenizers that put marks at the start of a text, which cannot be cut into parts.
TEST(Renderer, MasksTheSameTextWithASentencePieceTokenizer) {
  if (!data_folder()) {
    GTEST_SKIP() << no_data_folder;
  }
  const auto path = *data_folder() / "tok-sentencepiece/open_llama_3b.model";
  const auto tokenizer = std::make_shared<const Tokenizer>(load_tokenizer(path));
  const auto chat = std::make_shared<const ChatTemplate>(
      "{% for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content }} [/INST]{% else %} {{ "
      "m.content }}</s>{% endif %}{% endfor %}",
      [] {
        jinja::Mapping tokens;
        tokens.set("eos_token", "</s>");
        return tokens;
      }(),
      "t");
  const TokenRow row = Renderer(tokenizer, chat, {})(chat_of(two_turns)).at(0);
  const std::string learnt = learnt_text(row, *tokenizer);
  EXPECT_THAT(learnt, ::testing::MatchesRegex(" ?the light</s> ?the word</s>"));
}

}  // namespace
}  // namespace ingot::testing
