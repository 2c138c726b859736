#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <memory>
#include <numeric>

#include "ingot/autograd/grad_mode.h"
#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "ingot/cli/text_codec.h"
#include "ingot/io/gguf_value.h"
#include "ingot/models/architecture.h"
#include "ingot/models/bert_gguf.h"
#include "ingot/models/export.h"
#include "ingot/models/gguf_architecture.h"
#include "ingot/nn/initialise.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "tests/cli/adapted_model.h"
#include "tests/cli/program.h"
#include "tests/support/node.h"
#include "tests/support/oracle.h"

// A real client: llama.cpp, as the npm package node-llama-cpp brings it prebuilt, computes the
// probabilities of exported files that Ingot computes.
namespace ingot::testing {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;
using Ids = std::vector<int64_t>;

std::vector<double> softmax_of(const std::vector<double>& logits) {
  const double most = *std::ranges::max_element(logits);
  std::vector<double> out;
  for (const double logit : logits) {
    out.push_back(std::exp(logit - most));
  }
  const double sum = std::accumulate(out.begin(), out.end(), 0.0);
  for (double& p : out) {
    p /= sum;
  }
  return out;
}

int64_t likeliest(const std::vector<double>& p) { return std::ranges::max_element(p) - p.begin(); }

// The distribution after each token of a text.
std::vector<std::vector<double>> distributions(const Decoder& model, const Ids& ids) {
  const NoGrad quiet;
  const Tensor logits =
      converted(model.logits(tensor_of(ids, {1, static_cast<int64_t>(ids.size())})), DType::f64);
  const auto values = logits.values<double>();
  const auto V = static_cast<size_t>(model.config().vocab);
  std::vector<std::vector<double>> out;
  for (size_t t = 0; t < ids.size(); ++t) {
    out.push_back(softmax_of({values.begin() + static_cast<ptrdiff_t>(t * V),
                              values.begin() + static_cast<ptrdiff_t>((t + 1) * V)}));
  }
  return out;
}

Ids continued(const Decoder& model, Ids ids, int64_t tokens) {
  for (int64_t i = 0; i < tokens; ++i) {
    ids.push_back(likeliest(distributions(model, ids).back()));
  }
  return ids;
}

// The first places of both, and what they differ by at most.
double largest_difference(const std::vector<std::vector<double>>& a,
                          const std::vector<std::vector<double>>& b, size_t places) {
  double most = 0;
  for (size_t t = 0; t < std::min(places, a.size()); ++t) {
    for (size_t i = 0; i < a[t].size(); ++i) {
      most = std::max(most, std::abs(a[t][i] - b[t][i]));
    }
  }
  return most;
}

class LlamaCpp : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    node_ = std::make_unique<Node>(
        std::vector<std::string>{"node-llama-cpp", "@node-llama-cpp/linux-x64"});
    script_ = content(std::filesystem::path(__FILE__).parent_path() / "logits.mjs");
  }
  static void TearDownTestSuite() { node_.reset(); }
  void SetUp() override {
    if (!node_->missing().empty()) {
      GTEST_SKIP() << node_->missing();
    }
  }

  // What llama.cpp answers for each file: see logits.mjs.
  static Json asked(const Json& requests) { return node_->run(script_, requests); }

  // Compares what it says of one text with ours. Returns the largest difference of a probability.
  double expect_equal(const Json& answer, const std::vector<std::vector<double>>& ours,
                      double tolerance) const {
    EXPECT_TRUE(answer.is_array()) << answer.dump();
    if (!answer.is_array() || answer.size() != ours.size()) {
      ADD_FAILURE() << "answers of " << answer.size() << " places, asked for " << ours.size();
      return 1;
    }
    std::vector<std::vector<double>> theirs;
    for (const Json& row : answer) {
      theirs.push_back(softmax_of(row.get<std::vector<double>>()));
    }
    for (size_t t = 0; t < ours.size(); ++t) {
      const auto a = static_cast<size_t>(likeliest(ours[t]));
      const auto b = static_cast<size_t>(likeliest(theirs[t]));
      // The same choice, but for two that are as likely as far as either can tell.
      EXPECT_TRUE(a == b || ours[t][a] - ours[t][b] < 2 * tolerance) << "place " << t;
    }
    const double most = largest_difference(ours, theirs, ours.size());
    EXPECT_LE(most, tolerance);
    return most;
  }

  TemporaryFolder work;
  static inline std::unique_ptr<Node> node_;
  static inline std::string script_;
};

// llama.cpp's package wants a vocabulary: that of bytes.
StoredModel with_bytes(StoredModel stored) {
  Json config = Json::parse(stored.published);
  config["ingot"]["tokens"] = "bytes";
  stored.published = config.dump();
  return stored;
}

// The model as llama.cpp computes it: without windows where it has none.
StoredModel as_elsewhere(StoredModel stored) {
  if (!gguf_architecture_of(stored.model_type).windows) {
    stored.config.window = 0;
    stored.config.windowed_layers.reset();
  }
  return stored;
}

struct Case {
  std::string file;
  Ids ids;
  std::vector<std::vector<double>> ours;
};

TEST_F(LlamaCpp, ComputesTheProbabilitiesOfEveryFamily) {
  std::string refused;
  Json requests = Json::object();
  std::map<std::string, Case> cases;
  for (const auto& entry : std::filesystem::directory_iterator(oracle_folder() / "models")) {
    const std::string name = entry.path().filename().string();
    if (!std::filesystem::exists(entry.path() / "config.json") || name.starts_with("bert")) {
      continue;
    }
    SCOPED_TRACE(name);
    const StoredModel stored = with_bytes(open_model(entry.path()));
    if (stored.model_type == "deepseek_v2" && stored.config.latent.q_rank == 0) {
      continue;  // llama.cpp has such models of 26 and 27 layers alone
    }
    Case one;
    one.file = (work / (name + ".gguf")).string();
    try {
      write_gguf(stored, one.file, GgmlType::f32);
    } catch (const Error& error) {
      refused += "\n  " + name + ": " + error.what();
      continue;
    }
    const Pretrained theirs = load_stored(as_elsewhere(stored), DType::f32);
    // Longer than what longrope was trained on: llama.cpp has the long divisors in any context.
    const bool longrope = stored.config.rope.scaling == "longrope";
    Ids ids = {1, 5, 9, 7, 30, 31, 2, 40};
    for (int64_t i = 0; longrope && i < 12; ++i) {
      ids.push_back(10 + 3 * i);
    }
    one.ids = continued(*theirs.model, ids, 16);
    one.ours = distributions(*theirs.model, one.ids);
    requests[one.file] = one.ids;
    if (const int64_t window = plainest(stored.config).window; window > 0) {
      const auto windowed = distributions(*load_stored(stored, DType::f32).model, one.ids);
      EXPECT_LT(largest_difference(windowed, one.ours, static_cast<size_t>(window)), 1e-5);
    }
    cases[name] = std::move(one);
  }
  const Json answers = asked(requests);
  std::cout << "not written as GGUF:" << refused << '\n';
  for (const auto& [name, one] : cases) {
    SCOPED_TRACE(name);
    // Largest measured: see the lines printed; GELU is a table in half precision there.
    const double most = expect_equal(answers.value(one.file, Json()), one.ours, 2e-3);
    std::cout << name << ": probabilities differ by " << most << " at most\n";
  }
}

// As DeepSeek V2 has it where the queries have a latent too, under yarn.
TEST_F(LlamaCpp, ComputesTheProbabilitiesOfADeepseekV2) {
  DecoderConfig c = start_of("deepseek_v2");
  c.vocab = 256;
  c.width = 32;
  c.layers = 3;
  c.heads = 4;
  c.hidden = 48;
  c.context = 64;
  c.norm_eps = 1e-6;
  c.latent = {.kv_rank = 12, .q_rank = 14, .nope_dim = 6, .rope_dim = 8, .value_dim = 10};
  c.moe.top_k = 2;
  c.moe.hidden = 20;
  c.moe.shared = 2;
  c.moe.dense_first = 1;
  c.rope.scaling = "yarn";
  c.rope.factor = 4;
  c.rope.original_context = 16;
  c.rope.mscale = c.rope.mscale_all_dim = 0.707;
  Decoder model(c);
  nn::initialise(model, {"normal", 0.2}, 5);
  save_pretrained(model, work / "hf");
  const std::string file = (work / "x.gguf").string();
  write_gguf(with_bytes(open_model(work / "hf")), file, GgmlType::f32);
  const Ids ids = continued(model, {1, 5, 9, 7, 30, 31, 2, 40}, 32);
  const Json answers = asked({{file, ids}});
  const double most = expect_equal(answers.value(file, Json()), distributions(model, ids), 2e-3);
  std::cout << "deepseek_v2: probabilities differ by " << most << " at most\n";
}

// The encoder of a BERT with the vocabulary of its word pieces: the direction of a text's
// embedding.
TEST_F(LlamaCpp, ComputesTheEmbeddingsOfABert) {
  BertConfig c;
  c.vocab = 12;
  c.width = 32;
  c.layers = 2;
  c.heads = 4;
  c.hidden = 64;
  c.context = 64;
  Bert model(c);
  nn::initialise(model, {"normal", 0.3}, 5);
  save_bert(model, work / "hf");
  put(work / "hf/tokenizer.json",
      R"({"model": {"type": "WordPiece", "vocab": {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3,
          "[MASK]": 4, "in": 5, "##side": 6, "out": 7, "door": 8, "##s": 9, "a": 10, "b": 11}},
          "added_tokens": [{"id": 0, "content": "[PAD]"}, {"id": 1, "content": "[UNK]"},
          {"id": 2, "content": "[CLS]"}, {"id": 3, "content": "[SEP]"},
          {"id": 4, "content": "[MASK]"}]})");
  const std::string file = (work / "x.gguf").string();
  write_bert_gguf(work / "hf", file, GgmlType::f32);
  const Ids ids = {2, 5, 6, 7, 8, 9, 10, 3};
  const Json answers = asked({{file, {{"embed", ids}}}});
  ASSERT_TRUE(answers.value(file, Json()).is_array()) << answers.dump();
  const auto theirs = answers[file].get<std::vector<double>>();
  const NoGrad quiet;
  const Tensor mean = converted(model.sentence_embedding(tensor_of(ids, {1, 8})), DType::f64);
  const auto ours = mean.values<double>();
  ASSERT_EQ(theirs.size(), ours.size());
  double product = 0, a = 0, b = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    product += ours[i] * theirs[i];
    a += ours[i] * ours[i];
    b += theirs[i] * theirs[i];
  }
  std::cout << "bert: cosine of both embeddings 1 - " << 1 - product / std::sqrt(a * b) << '\n';
  EXPECT_GT(product / std::sqrt(a * b), 0.9999);
}

// With windows, which it computes of these, and softcaps; the oracles' have another scale of
// scores.
TEST_F(LlamaCpp, ComputesTheProbabilitiesOfGemmas) {
  for (const char* family : {"gemma2", "gemma3_text"}) {
    SCOPED_TRACE(family);
    DecoderConfig c = start_of(family);
    c.vocab = 256;
    c.width = 32;
    c.layers = 7;
    c.heads = 4;
    c.kv_heads = 2;
    c.head_dim = 8;
    c.hidden = 48;
    c.context = 64;
    c.window = 6;
    Decoder model(c);
    nn::initialise(model, {"normal", 0.2}, 5);
    save_pretrained(model, work / family);
    const std::string file = (work / (std::string(family) + ".gguf")).string();
    write_gguf(with_bytes(open_model(work / family)), file, GgmlType::f32);
    const Ids ids = continued(model, {1, 5, 9, 7, 30, 31, 2, 40}, 16);
    const Json answers = asked({{file, ids}});
    const double most = expect_equal(answers.value(file, Json()), distributions(model, ids), 5e-3);
    std::cout << family << ": probabilities differ by " << most << " at most\n";
  }
}

TEST_F(LlamaCpp, ComputesTheProbabilitiesOfEveryType) {
  DecoderConfig c;
  c.vocab = 256;
  c.width = 256;
  c.layers = 2;
  c.heads = 4;
  c.kv_heads = 2;
  c.hidden = 512;
  c.context = 64;
  Decoder model(c);
  nn::initialise(model, {"normal", 0.06}, 5);
  save_pretrained(model, work / "hf");
  const StoredModel stored = with_bytes(open_model(work / "hf"));
  Json requests = Json::object();
  std::map<std::string, Case> cases;
  for (const char* type : {"F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K",
                           "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS"}) {
    Case one;
    one.file = (work / (std::string(type) + ".gguf")).string();
    write_gguf(stored, one.file, *ggml_type_named(type));
    const Pretrained read = load_stored(open_model(one.file), DType::f32);
    one.ids = continued(*read.model, {1, 5, 9, 7, 30, 31, 2, 40}, 8);
    one.ours = distributions(*read.model, one.ids);
    requests[one.file] = one.ids;
    cases[type] = std::move(one);
  }
  const Json answers = asked(requests);
  for (const auto& [type, one] : cases) {
    SCOPED_TRACE(type);
    // It rounds activations to the type that the weights' kernel takes: to 8 bits for blocks.
    const bool plain = type == "F32" || type == "F16" || type == "BF16";
    const double most =
        expect_equal(answers.value(one.file, Json()), one.ours, plain ? 2e-3 : 1e-2);
    std::cout << type << ": probabilities differ by " << most << " at most\n";
  }
}

TEST_F(LlamaCpp, FindsTheTokensThatIngotFinds) {
  if (!data_folder()) {
    GTEST_SKIP() << no_data_folder;
  }
  const std::vector<std::string> texts = {"Once upon a time, Tim's dog ran 123 steps.",
                                          " two  spaces\nand a line", "naïve café – 東京 🙂"};
  std::vector<std::filesystem::path> folders = {*data_folder() / "model-stories260k/hf"};
  for (const char* name : {"gpt2", "llama", "qwen2"}) {
    folders.push_back(*data_folder() / "model-tiny-archs" / name);
  }
  Json requests = Json::object();
  std::map<std::string, Json> ours;
  for (const auto& folder : folders) {
    const std::string file = (work / concat(ours.size(), ".gguf")).string();
    write_gguf(open_model(folder), file, GgmlType::f32);
    const auto codec = codec_of(open_model(file), file);
    ASSERT_TRUE(codec) << folder;
    for (const std::string& text : texts) {
      ours[file].push_back(codec->prompt(text, {.add_special = false}));
    }
    requests[file] = {{"texts", texts}};
  }
  const Json answers = asked(requests);
  for (const auto& [file, ids] : ours) {
    EXPECT_EQ(answers.value(file, Json()), ids);
  }
}

// A base and an adapter in PEFT's layout: put into the weights, and beside them as a file.
TEST_F(LlamaCpp, ContinuesWithAnAdapterAsIngotDoes) {
  if (!no_program().empty()) {
    GTEST_SKIP() << no_program();
  }
  Json requests = Json::object();
  std::map<std::string, std::vector<std::vector<double>>> ours;
  std::vector<std::unique_ptr<Adapted>> all;
  for (const char* architecture : {"llama", "gpt2"}) {
    SaveOptions bytes;
    bytes.base_config = R"({"ingot": {"tokens": "bytes"}})";
    all.push_back(std::make_unique<Adapted>(architecture, Adapted::lora(), DType::f32, 256, bytes));
    const Adapted& made = *all.back();
    for (const Words& words :
         {Words{"merge", "base", "merged.gguf", "--lora", "adapter"},
          Words{"merge", "base", "adapter.gguf", "--lora", "adapter", "--adapter-only"},
          Words{"convert", "base", "base.gguf"}}) {
      const Outcome outcome = made.run(words);
      ASSERT_EQ(outcome.code, 0) << outcome.err;
    }
    const Ids ids = continued(*made.model, {1, 5, 9, 7, 30, 31, 2, 40}, 24);
    const auto adapted = distributions(*made.model, ids);
    const auto plain = distributions(*load_pretrained(made / "base", DType::f32).model, ids);
    EXPECT_GT(largest_difference(plain, adapted, ids.size()), 0.05);  // the adapter does something
    for (const char* file : {"merged.gguf", "base.gguf"}) {
      ours[(made / file).string()] = adapted;
    }
    requests[(made / "merged.gguf").string()] = ids;
    requests[(made / "base.gguf").string()] = {{"ids", ids},
                                               {"lora", (made / "adapter.gguf").string()}};
  }
  const Json answers = asked(requests);
  for (const auto& [file, expected] : ours) {
    SCOPED_TRACE(file);
    const double most = expect_equal(answers.value(file, Json()), expected, 2e-3);
    std::cout << std::filesystem::path(file).filename().string() << ": probabilities differ by "
              << most << " at most\n";
  }
}

}  // namespace
}  // namespace ingot::testing
