#include "ingot/generate/paged_decoding.h"

#include <gtest/gtest.h>

#include "ingot/tensor/copy.h"
#include "tests/generate/tiny_model.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

constexpr int64_t page = 8;

PagedText text_of(const Tokens& tokens) {
  PagedText out;
  out.tokens = tokens;
  return out;
}

// Texts of uneven lengths, read and then continued side by side, against whole forwards.
void expect_paged_like_whole(const DecoderConfig& config) {
  const auto model = random_model(config);
  PagedDecoding decoding(*model, 30, page);
  std::vector<PagedText> texts = {text_of(random_tokens(3, 1)), text_of(random_tokens(21, 2)),
                                  text_of(random_tokens(8, 3)), text_of(random_tokens(17, 4))};
  std::vector<PagedText*> all;
  for (PagedText& text : texts) {
    ASSERT_TRUE(decoding.begin(text, 40));
    EXPECT_LE(difference(decoding.read_all(text), whole_logits(*model, text.tokens)), 1e-5);
    all.push_back(&text);
  }
  for (uint64_t step = 0; step < 12; ++step) {
    for (size_t row = 0; row < texts.size(); ++row) {
      texts[row].tokens.push_back(random_tokens(1, 100 * step + row)[0]);
    }
    const Tensor logits = decoding.read_tokens(all);
    for (size_t row = 0; row < texts.size(); ++row) {
      const auto at = static_cast<int64_t>(row);
      EXPECT_LE(difference(reshape(slice(logits, 0, at, at + 1), {40}),
                           whole_logits(*model, texts[row].tokens)),
                1e-5)
          << *config.positions << ", step " << step << ", row " << row;
    }
  }
}

TEST(PagedDecoding, GivesTheLogitsOfTheWholeTextForTextsOfAnyLengths) {
  for (const char* positions : {"none", "sinusoidal", "learned", "rope", "alibi"}) {
    expect_paged_like_whole(tiny_config(positions));
    DecoderConfig windowed = tiny_config(positions);
    windowed.window = 5;
    windowed.full_every = 2;
    windowed.attention_softcap = 2;
    expect_paged_like_whole(windowed);
  }
}

TEST(PagedDecoding, GivesTheLogitsOfTheWholeTextFromLatentsAndByExperts) {
  for (const char* family : {"mixtral", "deepseek_v2", "deepseek_v3"}) {
    DecoderConfig config = tiny_config();
    config.architecture = family;
    config.moe.experts = 4;
    config.moe.dense_first = 1;
    if (config.architecture.starts_with("deepseek")) {
      config.latent = {.kv_rank = 6, .q_rank = 5, .nope_dim = 3, .rope_dim = 4, .value_dim = 5};
    }
    expect_paged_like_whole(config);
  }
}

// The logits of one text after each of some tokens, read alone.
TensorList alone(const Decoder& model, Tokens tokens, const Tokens& more,
                 const std::string& kv = "model") {
  PagedDecoding decoding(model, 30, page, kv);
  PagedText text = text_of(tokens);
  decoding.begin(text, static_cast<int64_t>(tokens.size() + more.size()));
  TensorList out = {decoding.read_all(text)};
  PagedText* const only = &text;
  for (const int64_t token : more) {
    text.tokens.push_back(token);
    out.push_back(reshape(decoding.read_tokens({&only, 1}), {40}));
  }
  return out;
}

void expect_bits_of_their_own(const DecoderConfig& config, DType dtype, bool int8,
                              const std::string& kv = "model") {
  const auto model = random_model(config, dtype);
  if (int8) {
    model->to_int8();
  }
  PagedDecoding decoding(*model, 80, page, kv);
  std::vector<PagedText> texts;
  std::vector<Tokens> prompts, more;
  for (uint64_t i = 0; i < 11; ++i) {
    prompts.push_back(random_tokens(1 + 3 * i % 20, i / 2));  // some begin alike
    more.push_back(random_tokens(5, 50 + i));
    texts.push_back(text_of(prompts.back()));
  }
  std::vector<TensorList> got(texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    ASSERT_TRUE(decoding.begin(texts[i], 40));
    got[i].push_back(decoding.read_all(texts[i]));
  }
  for (size_t step = 0; step < 5; ++step) {
    std::vector<PagedText*> rows;
    for (size_t i = texts.size(); i-- > 0;) {  // in another order, some of them
      if ((i + step) % 4 != 3 || got[i].size() > 2) {
        texts[i].tokens.push_back(more[i][got[i].size() - 1]);
        rows.push_back(&texts[i]);
      }
    }
    const Tensor logits = decoding.read_tokens(rows);
    for (size_t r = 0; r < rows.size(); ++r) {
      const auto at = static_cast<int64_t>(r);
      const size_t i = static_cast<size_t>(rows[r] - texts.data());
      got[i].push_back(reshape(copy_of(slice(logits, 0, at, at + 1)), {40}));
    }
  }
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto written = static_cast<int64_t>(got[i].size()) - 1;
    const TensorList expected =
        alone(*model, prompts[i], Tokens(more[i].begin(), more[i].begin() + written), kv);
    for (size_t n = 0; n < expected.size(); ++n) {
      EXPECT_TRUE(same_bits(got[i][n], expected[n])) << "text " << i << ", token " << n;
    }
  }
}

TEST(PagedDecoding, GivesATextTheBitsItHasAloneInAnyCompany) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const char* positions : {"rope", "alibi", "learned"}) {
      SCOPED_TRACE(concat(positions, " ", name(dtype)));
      expect_bits_of_their_own(tiny_config(positions), dtype, false);
      DecoderConfig windowed = tiny_config(positions);
      windowed.window = 6;
      expect_bits_of_their_own(windowed, dtype, false);
    }
    expect_bits_of_their_own(tiny_config(), dtype, true);
  }
}

TEST(PagedDecoding, GivesATextTheBitsItHasAloneFromLatentsAndByExperts) {
  for (const char* family : {"mixtral", "deepseek_v3"}) {
    SCOPED_TRACE(family);
    DecoderConfig config = tiny_config();
    config.architecture = family;
    config.moe.experts = 4;
    config.moe.dense_first = 1;
    if (config.architecture.starts_with("deepseek")) {
      config.latent = {.kv_rank = 6, .q_rank = 5, .nope_dim = 3, .rope_dim = 4, .value_dim = 5};
    }
    expect_bits_of_their_own(config, DType::f32, false);
  }
}

TEST(PagedDecoding, GivesATextTheBitsItHasAloneFromKeysAndValuesIn8Bits) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    expect_bits_of_their_own(tiny_config(), dtype, false, "int8");
    DecoderConfig windowed = tiny_config("alibi");
    windowed.window = 6;
    expect_bits_of_their_own(windowed, dtype, true, "int8");
  }
  DecoderConfig latent = tiny_config();
  latent.architecture = "deepseek_v3";
  latent.moe.experts = 4;
  latent.latent = {.kv_rank = 6, .q_rank = 5, .nope_dim = 3, .rope_dim = 4, .value_dim = 5};
  expect_bits_of_their_own(latent, DType::f32, false, "int8");
}

TEST(PagedDecoding, ReadsTheBeginningThatPromptsShareOnceWithTheSameBits) {
  const auto model = random_model(tiny_config());
  const Tokens system = random_tokens(20, 1);
  Tokens first = system, second = system;
  first.insert(first.end(), {1, 2, 3});
  second.insert(second.end(), {4, 5});
  PagedDecoding decoding(*model, 12, page);
  PagedText a = text_of(first), b = text_of(second), c = text_of(system);
  ASSERT_TRUE(decoding.begin(a, 30));
  EXPECT_EQ(a.held, 0);
  decoding.read_all(a);
  ASSERT_TRUE(decoding.begin(b, 30));
  EXPECT_EQ(b.held, 16);  // two pages of 8
  EXPECT_EQ(decoding.pool().used(), 4 + 2);
  EXPECT_TRUE(same_bits(decoding.read_all(b), alone(*model, second, {})[0]));
  decoding.release(a);
  decoding.release(b);
  EXPECT_EQ(decoding.pool().used(), 0);
  ASSERT_TRUE(decoding.begin(c, 30));  // found though nobody uses them
  EXPECT_EQ(c.held, 16);
  EXPECT_TRUE(same_bits(decoding.read_all(c), alone(*model, system, {})[0]));
}

TEST(PagedDecoding, SharesNothingOfAPromptThatEndsWithThePage) {
  const auto model = random_model(tiny_config());
  PagedDecoding decoding(*model, 12, page);
  PagedText a = text_of(random_tokens(16, 1)), b = a;
  ASSERT_TRUE(decoding.begin(a, 20));
  decoding.read_all(a);
  ASSERT_TRUE(decoding.begin(b, 20));
  EXPECT_EQ(b.held, 8);  // the last page is read for its logits
  EXPECT_TRUE(same_bits(decoding.read_all(b), alone(*model, a.tokens, {})[0]));
}

TEST(PagedDecoding, TakesNothingWhereTooFewPagesAreFree) {
  const auto model = random_model(tiny_config());
  PagedDecoding decoding(*model, 4, page);
  PagedText a = text_of(random_tokens(9, 1)), b = a;
  ASSERT_TRUE(decoding.begin(a, 24));
  decoding.read_all(a);
  EXPECT_FALSE(decoding.begin(b, 32));
  EXPECT_TRUE(b.pages.empty());
  EXPECT_EQ(decoding.pool().used(), 3);
  EXPECT_TRUE(decoding.begin(b, 16));  // shares one page and takes one
  EXPECT_EQ(decoding.pool().used(), 4);
}

TEST(PagedDecoding, ForksGoTheirOwnWays) {
  const auto model = random_model(tiny_config());
  PagedDecoding decoding(*model, 20, page);
  PagedText a = text_of(random_tokens(11, 1));
  ASSERT_TRUE(decoding.begin(a, 20));
  decoding.read_all(a);
  PagedText b = decoding.fork(a).value();
  EXPECT_EQ(decoding.pool().used(), 3 + 2);
  std::vector<PagedText*> both = {&a, &b};
  for (int64_t step = 0; step < 6; ++step) {
    a.tokens.push_back(step);
    b.tokens.push_back(20 + step);
    const Tensor logits = decoding.read_tokens(both);
    EXPECT_LE(difference(reshape(slice(logits, 0, 0, 1), {40}), whole_logits(*model, a.tokens)),
              1e-5);
    EXPECT_LE(difference(reshape(slice(logits, 0, 1, 2), {40}), whole_logits(*model, b.tokens)),
              1e-5);
  }
}

// What speculative decoding does: several tokens of one text in one forward, some taken back.
TEST(PagedDecoding, ReadsSeveralTokensOfATextWithTheBitsOfOneAfterTheOther) {
  const auto model = random_model(tiny_config());
  const Tokens prompt = random_tokens(6, 1), more = random_tokens(5, 2);
  const TensorList expected = alone(*model, prompt, more);
  PagedDecoding decoding(*model, 8, page);
  PagedText text = text_of(prompt);
  ASSERT_TRUE(decoding.begin(text, 30));
  decoding.read_all(text);
  PagedText* const only = &text;
  text.tokens.insert(text.tokens.end(), {more[0], 9, 8, 7});
  decoding.read_tokens({&only, 1});
  text.tokens.resize(7);
  PagedDecoding::rewind(text, 7);
  text.tokens.insert(text.tokens.end(), more.begin() + 1, more.end());
  const Tensor logits = decoding.read_tokens({&only, 1});
  ASSERT_EQ(logits.size(0), 4);
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(same_bits(reshape(copy_of(slice(logits, 0, i, i + 1)), {40}),
                          expected[static_cast<size_t>(i) + 2]));
  }
}

TEST(PagedDecoding, RefusesPagesThatAttentionDoesNotTake) {
  const auto model = random_model(tiny_config());
  expect_error([&] { PagedDecoding(*model, 4, 24); },
               "paged cache: a page holds a divisor or a multiple of 64 tokens: got 24");
  expect_error([&] { PagedDecoding(*model, 0, 8); }, "paged cache: has no room");
  expect_error([&] { PagedDecoding(*model, 4, 8, "int4"); },
               "kv: 'int4' is nothing that keys and values are kept in; give model or int8");
  const auto wide = random_model(tiny_config(), DType::f64);
  expect_error([&] { PagedDecoding(*wide, 4, 8, "int8"); },
               "kv: int8 is for models in f32, bf16 or f16: got f64");
}

}  // namespace
}  // namespace ingot::testing
