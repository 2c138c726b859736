#include "ingot/generate/generate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ingot/base/files.h"
#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "ingot/io/safetensors.h"
#include "ingot/models/pretrained.h"
#include "tests/generate/paged_texts.h"
#include "tests/generate/tiny_model.h"
#include "tests/support/op_case.h"
#include "tests/support/paths.h"

namespace ingot::testing {
namespace {

void expect_cached_like_whole(const DecoderConfig& config, const std::vector<Tokens>& prompts) {
  const auto model = random_model(config);
  PagedTexts texts(*model, prompts, 20);
  for (uint64_t step = 0; step < 20; ++step) {
    for (size_t row = 0; row < prompts.size(); ++row) {
      EXPECT_LE(difference(texts.logits(row), whole_logits(*model, texts.tokens(row))), 1e-5)
          << *config.positions << ", step " << step << ", row " << row;
    }
    texts.feed(random_tokens(prompts.size(), 100 + step));
  }
}

TEST(Decoding, TokenByTokenGivesTheLogitsOfTheWholeText) {
  const std::vector<Tokens> even = {random_tokens(9, 1), random_tokens(9, 2)};
  for (const char* positions : {"none", "sinusoidal", "learned", "rope", "alibi"}) {
    expect_cached_like_whole(tiny_config(positions), even);
  }
  DecoderConfig windowed = tiny_config("rope");
  windowed.window = 5;
  windowed.attention_softcap = 2;
  windowed.qk_norm = true;
  expect_cached_like_whole(windowed, even);
}

// Token by token, from prompts that end elsewhere in each row, against whole forwards.
void expect_published_like_whole(const Decoder& model, const std::vector<Tokens>& texts,
                                 const std::vector<size_t>& prompts) {
  const int64_t vocab = model.config().vocab;
  std::vector<Tokens> read;
  size_t steps = texts[0].size();
  for (size_t row = 0; row < texts.size(); ++row) {
    read.emplace_back(texts[row].begin(), texts[row].begin() + static_cast<int64_t>(prompts[row]));
    steps = std::min(steps, texts[row].size() - prompts[row]);
  }
  PagedTexts decoding(model, read, static_cast<int64_t>(steps));
  for (size_t step = 0; step < steps; ++step) {
    Tokens next;
    const bool compared = step % 4 == 0 || step + 1 == steps;  // a whole forward costs most
    for (size_t row = 0; row < texts.size(); ++row) {
      if (compared) {
        const Tensor whole = whole_logits(model, read[row]);
        const Tensor& got = decoding.logits(row);
        const double most = difference(whole, zeros({vocab}, DType::f32));
        EXPECT_LE(difference(got, whole), 1e-5 * most) << "step " << step << ", row " << row;
      }
      next.push_back(texts[row][read[row].size()]);
      read[row].push_back(next.back());
    }
    decoding.feed(next);
  }
}

TEST(Decoding, TokenByTokenGivesTheLogitsOfTheWholeTextForEveryPublishedModel) {
  const std::filesystem::path root = oracle_folder() / "models";
  int tried = 0;
  for (const std::string& name :
       std::filesystem::is_directory(root) ? list_folder(root) : std::vector<std::string>()) {
    if (!std::filesystem::exists(root / name / "config.json")) {
      continue;
    }
    const auto config = parse_json_file(root / name / "config.json");
    const auto names = family_names();
    const auto type = json_field<std::string>(config, "model_type", name);
    if (std::find(names.begin(), names.end(), type) == names.end()) {
      continue;
    }
    SCOPED_TRACE(name);
    ++tried;
    const Pretrained loaded = load_pretrained(root / name, DType::f32);
    const Tensor ids = SafetensorsFile(root / name / "expected.safetensors").tensor("input_ids");
    const int64_t size = std::min(ids.size(1), loaded.model->config().context);
    std::vector<Tokens> texts;
    for (int64_t row = 0; row < 2; ++row) {
      const auto start = ids.values<int64_t>().begin() + row * ids.size(1);
      texts.emplace_back(start, start + size);
    }
    expect_published_like_whole(*loaded.model, texts, {3, 3});
    expect_published_like_whole(*loaded.model, texts, {2, 7});
  }
  if (tried == 0) {
    GTEST_SKIP() << "needs models: set INGOT_ORACLES to a folder with models/";
  }
}

TEST(Decoding, RowsOfDifferentLengthsDoNotDisturbEachOther) {
  const std::vector<Tokens> uneven = {random_tokens(3, 1), random_tokens(11, 2),
                                      random_tokens(1, 3)};
  for (const char* positions : {"none", "learned", "rope", "alibi"}) {
    expect_cached_like_whole(tiny_config(positions), uneven);
    DecoderConfig windowed = tiny_config(positions);
    windowed.window = 4;
    windowed.full_every = 2;
    expect_cached_like_whole(windowed, uneven);
  }
}

TEST(Decoding, TokenByTokenGivesTheLogitsOfTheWholeTextFromCachedLatentsAndByExperts) {
  for (const char* family : {"mixtral", "qwen3_moe", "deepseek_v2", "deepseek_v3"}) {
    DecoderConfig config = tiny_config("rope");
    config.architecture = family;
    config.moe.experts = 4;
    config.moe.dense_first = 1;
    if (config.architecture.starts_with("deepseek")) {
      config.latent = {.kv_rank = 6, .q_rank = 5, .nope_dim = 3, .rope_dim = 4, .value_dim = 5};
      const auto model = random_model(config);
      const PagedDecoding decoding(*model, 3, 8);
      EXPECT_EQ(decoding.bytes(), 2 * 3 * 8 * (6 + 4) * 4);  // latents and shared keys alone
    }
    expect_cached_like_whole(config, {random_tokens(9, 1), random_tokens(9, 2)});
    expect_cached_like_whole(config, {random_tokens(3, 1), random_tokens(11, 2)});
  }
}

TEST(Decoding, GoesOnFromTheLastHalfOfATextThatOutgrowsTheContext) {
  const auto model = random_model(tiny_config("learned"));
  Tokens text = random_tokens(45, 1);
  PagedTexts decoding(*model, {text}, 100);
  for (uint64_t step = 0; step < 4; ++step) {
    const Tokens next = random_tokens(1, 50 + step);
    text.push_back(next[0]);
    decoding.feed(next);
  }
  const Tokens half(text.end() - 24, text.end());  // 49 tokens: the 49th did not fit
  EXPECT_LE(difference(decoding.logits(0), whole_logits(*model, half)), 1e-5);
}

TEST(Generate, GreedyTextIsThatOfRepeatedFullForwards) {
  const auto model = random_model(tiny_config("rope"));
  GenerateConfig config;
  config.max_tokens = 25;
  config.sampling.temperature = 0;
  const Tokens got = generate(*model, {random_tokens(6, 1)}, config)[0];
  Tokens text = random_tokens(6, 1);
  for (const int64_t token : got) {
    EXPECT_EQ(token, likeliest(whole_logits(*model, text).values<float>()));
    text.push_back(token);
  }
  EXPECT_EQ(got.size(), 25U);
}

TEST(Generate, DrawsTokensAsOftenAsTheModelFindsThemLikelyAtItsTemperature) {
  const auto model = random_model(tiny_config("rope"));
  const Tokens prompt = random_tokens(6, 1);
  const size_t draws = 1500;
  for (const double temperature : {0.6, 1.0, 1.8}) {
    GenerateConfig config;
    config.max_tokens = 1;
    config.sampling.temperature = temperature;
    const std::vector<double> p =
        token_probabilities(whole_logits(*model, prompt).values<float>(), config.sampling);
    std::vector<double> counts(p.size(), 0);
    for (const Tokens& answer : generate(*model, std::vector<Tokens>(draws, prompt), config)) {
      counts[static_cast<size_t>(answer[0])] += 1;
    }
    // Tokens that are rarer than one in 500 are counted as one.
    double chi_square = 0, rare = 0, rare_drawn = 0;
    int64_t degrees = 0;
    for (size_t i = 0; i < p.size(); ++i) {
      const double expected = p[i] * static_cast<double>(draws);
      if (p[i] < 0.002) {
        rare += expected;
        rare_drawn += counts[i];
        continue;
      }
      chi_square += (counts[i] - expected) * (counts[i] - expected) / expected;
      ++degrees;
    }
    chi_square += rare > 0 ? (rare_drawn - rare) * (rare_drawn - rare) / rare : 0;
    const auto n = static_cast<double>(degrees);
    EXPECT_LT(chi_square, n + 4 * std::sqrt(2 * n)) << "temperature " << temperature;
  }
}

TEST(Generate, RepeatsItselfForASeedAndOnlyForIt) {
  const auto model = random_model(tiny_config("rope"));
  const std::vector<Tokens> prompts = {random_tokens(6, 1), random_tokens(6, 1)};
  GenerateConfig config;
  config.max_tokens = 30;
  config.seed = 4;
  const auto first = generate(*model, prompts, config);
  EXPECT_EQ(generate(*model, prompts, config), first);
  EXPECT_NE(first[0], first[1]);
  config.seed = 5;
  EXPECT_NE(generate(*model, prompts, config), first);
}

TEST(Generate, EndsARowAtAStopTokenOrWhenTold) {
  const auto model = random_model(tiny_config("rope"));
  GenerateConfig config;
  config.max_tokens = 30;
  const std::vector<Tokens> prompts = {random_tokens(6, 1), random_tokens(4, 2)};
  const auto whole = generate(*model, prompts, config);
  config.stop_tokens = {whole[0][7]};
  const Tokens stopped = generate(*model, prompts, config)[0];
  EXPECT_EQ(stopped.back(), whole[0][7]);
  EXPECT_EQ(stopped,
            Tokens(whole[0].begin(), whole[0].begin() + static_cast<int64_t>(stopped.size())));
  config.stop_tokens.clear();
  int64_t told = 0;
  const auto cut = generate(*model, prompts, config, [&](int64_t row, int64_t token) {
    told += row == 1 ? 1 : 0;
    return row == 0 || token != whole[1][3];
  });
  EXPECT_EQ(cut[0], whole[0]);
  EXPECT_EQ(told, static_cast<int64_t>(cut[1].size()));
  EXPECT_EQ(cut[1].back(), whole[1][3]);
}

TEST(Generate, RefusesPromptsItCannotRead) {
  const auto model = random_model(tiny_config("rope"));
  const auto run = [&](const std::vector<Tokens>& prompts) { generate(*model, prompts, {}); };
  expect_error([&] { run({}); }, "generate: no prompts");
  expect_error([&] { run({{1}, {}}); }, "generate: prompt 1 is empty");
  expect_error([&] { run({random_tokens(49, 1)}); },
               "generate: prompt 0 is longer than the model's context: 49 tokens, context 48");
}

TEST(Generate, WritesTheStoriesOfAPublishedModel) {
  if (!data_folder()) {
    GTEST_SKIP() << no_data_folder;
  }
  const auto folder = *data_folder() / "model-stories260k";
  const Pretrained loaded = load_pretrained(folder / "hf");
  GenerateConfig config;
  config.sampling.temperature = 0;
  const auto oracle = parse_json_file(folder / "oracle_forward.json");
  for (const auto& expected : oracle["greedy"]) {
    const auto ids = expected["ids"].get<Tokens>();
    config.max_tokens = static_cast<int64_t>(ids.size());
    EXPECT_EQ(generate(*loaded.model, {expected["prompt_ids"].get<Tokens>()}, config)[0], ids);
  }
}

}  // namespace
}  // namespace ingot::testing
