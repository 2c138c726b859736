// LoRA training and preference losses on a trained model of 260 thousand parameters, against values
// that another program computed in f64 (data/model-stories260k/SOURCE.md).
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/record.h"
#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "ingot/models/pretrained.h"
#include "ingot/ops/counted_places.h"
#include "ingot/ops/cross_entropy.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/reduce.h"
#include "ingot/optim/clip.h"
#include "ingot/optim/table.h"
#include "ingot/peft/adapters.h"
#include "ingot/posttrain/answer_rows.h"
#include "ingot/posttrain/preference_objective.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "tests/support/paths.h"

namespace ingot::testing {
namespace {

using Ids = std::vector<int64_t>;

class Stories {
 public:
  explicit Stories(const std::filesystem::path& data)
      : folder_(data / "model-stories260k"),
        model(load_pretrained(folder_ / "hf", DType::f64).model),
        posttrain(parse_json_file(folder_ / "oracle_posttrain.json")),
        train(parse_json_file(folder_ / "oracle_train.json")) {
    peft::PeftConfig config;
    config.kind = "lora";
    config.rank = 4;
    config.alpha = 8;
    config.targets = {"wq", "wv"};
    peft::Adapters::Options options;
    options.dtype = DType::f64;
    adapters = std::make_unique<peft::Adapters>(*model, config, options);
    for (const auto& entry : adapters->entries()) {
      auto& lora = dynamic_cast<peft::Lora&>(*entry.adapter);
      fill_wave(lora.a, 0.05, seed_of(entry.path));
    }
    adapters->require_gradients();
  }

  // B = 0.02 · sin(100 + seed + 0.7 i), i counted in the rows of llama2.c's files.
  void set_b() {
    for (const auto& entry : adapters->entries()) {
      auto& lora = dynamic_cast<peft::Lora&>(*entry.adapter);
      Tensor wave = empty(lora.b.shape(), DType::f64);
      fill_wave(wave, 0.02, 100 + seed_of(entry.path));
      copy_into(lora.b, is_query(entry.path) ? rows_of_ours(wave) : wave);
    }
  }

  peft::Lora& lora(const std::string& path) const {
    for (const auto& entry : adapters->entries()) {
      if (entry.path == path) {
        return dynamic_cast<peft::Lora&>(*entry.adapter);
      }
    }
    throw std::runtime_error("no adapter on " + path);
  }

  Policy policy() const {
    return {[this](const Batch& batch) { return model->hidden(batch.ids); },
            [this] { return model->output_weight(); }, model->config().logit_softcap};
  }
  // The base is the same weights with the adapters off.
  Reference reference() const {
    return [this](const Batch& batch) {
      const NoGrad quiet;
      const peft::AdaptersOff off(adapters.get());
      return logprobs_of(policy(), batch);
    };
  }

  // Rows in llama2.c's order have pairs of the rotation side by side, ours its halves.
  static int64_t row_of_theirs(int64_t ours) {
    constexpr int64_t C = 8;
    const int64_t in_head = ours % C;
    return ours / C * C + (in_head < C / 2 ? 2 * in_head : 2 * (in_head - C / 2) + 1);
  }

 private:
  static double seed_of(const std::string& path) {
    return 2.0 * (path[7] - '0') + (is_query(path) ? 0 : 1);
  }
  static bool is_query(const std::string& path) { return path.ends_with("wq"); }
  static void fill_wave(Tensor& x, double size, double seed) {
    auto values = x.mutable_values<double>();
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = size * std::sin(seed + 0.7 * static_cast<double>(i));
    }
  }
  static Tensor rows_of_ours(const Tensor& theirs) {
    Tensor out = empty(theirs.shape(), DType::f64);
    const auto from = theirs.values<double>();
    auto to = out.mutable_values<double>();
    const int64_t r = theirs.size(1);
    for (int64_t row = 0; row < theirs.size(0); ++row) {
      for (int64_t k = 0; k < r; ++k) {
        to[static_cast<size_t>(row * r + k)] =
            from[static_cast<size_t>(row_of_theirs(row) * r + k)];
      }
    }
    return out;
  }

  std::filesystem::path folder_;

 public:
  std::unique_ptr<Decoder> model;
  nlohmann::json posttrain, train;
  std::unique_ptr<peft::Adapters> adapters;
};

#define NEED_STORIES()                                \
  if (!data_folder()) GTEST_SKIP() << no_data_folder; \
  Stories stories(*data_folder())

// Inputs are all tokens but the last, targets all but the first.
Batch batch_of_ids(const nlohmann::json& rows) {
  std::vector<AnswerRow> out;
  for (const auto& row : rows) {
    const Ids ids = row.get<Ids>();
    out.push_back({ids, std::vector<uint8_t>(ids.size(), 1)});
  }
  return answer_batch(out, 64);
}

Tensor mean_loss(const Stories& stories, const Batch& batch) {
  const Tensor loss = linear_cross_entropy(stories.model->hidden(batch.ids),
                                           stories.model->output_weight(), batch.labels);
  return loss / static_cast<double>(counted_places(batch.labels).elements());
}

TEST(Stories, LoraTrainsAsTheOracleDoes) {
  NEED_STORIES();
  const auto& oracle = stories.posttrain["lora_sft"];
  OptimizerConfig config;
  choose(config, "adamw");
  AdamWConfig& adamw = std::get<AdamWConfig>(config.rule);
  adamw.beta1 = 0.9;
  adamw.beta2 = 0.999;
  adamw.eps = 1e-8;
  adamw.weight_decay = 0;
  Optimizer optimizer = make_optimizer(config, stories.adapters->parameters());
  size_t step = 0;
  for (const auto& expected : oracle["steps"]) {
    const Tensor loss = mean_loss(stories, batch_of_ids(stories.train["batches"][step++ % 3]));
    backward(loss);
    EXPECT_NEAR(loss.item(), expected["loss"].get<double>(), 1e-9) << step;
    EXPECT_NEAR(gradient_norm(stories.adapters->parameters()), expected["grad_norm"].get<double>(),
                1e-9)
        << step;
    optimizer.step(5e-3);
  }
  const Batch first = batch_of_ids(stories.train["batches"][0]);
  const NoGrad quiet;
  EXPECT_NEAR(mean_loss(stories, first).item(), oracle["loss_batch0_after"].get<double>(), 1e-9);
  const Tensor& b = stories.lora("layers.0.attention.wq").b;
  for (size_t i = 0; i < 6; ++i) {
    int64_t ours = 0;
    while (Stories::row_of_theirs(ours) != static_cast<int64_t>(i / 4)) {
      ++ours;
    }
    EXPECT_NEAR(b.values<double>()[static_cast<size_t>(ours) * 4 + i % 4],
                oracle["l0.q.B_first6"][i].get<double>(), 1e-8);
    EXPECT_NEAR(stories.lora("layers.4.attention.wv").a.values<double>()[i],
                oracle["l4.v.A_first6"][i].get<double>(), 1e-8);
  }
  stories.adapters->merge();
  EXPECT_NEAR(mean_loss(stories, first).item(), oracle["loss_batch0_after_merge"].get<double>(),
              1e-9);
}

// Chosen answers, then those rejected.
Batch pairs_batch(const nlohmann::json& pairs) {
  std::vector<AnswerRow> rows;
  for (const char* side : {"chosen_ids", "rejected_ids"}) {
    for (const auto& pair : pairs) {
      rows.push_back(answer_row(pair["prompt_ids"].get<Ids>(), pair[side].get<Ids>()));
    }
  }
  return answer_batch(rows, 64);
}

Objective objective_of(const Stories& stories, const std::string& name) {
  DpoConfig dpo;
  dpo.beta = name.ends_with("beta0.5") ? 0.5 : 0.1;
  if (name.starts_with("orpo")) {
    return orpo_objective(stories.policy(), {0.1});
  }
  if (name.starts_with("simpo")) {
    return simpo_objective(stories.policy(), {2, 0.5});
  }
  dpo.loss = name.starts_with("ipo")     ? "ipo_average"
             : name.starts_with("hinge") ? "hinge"
                                         : "sigmoid";
  dpo.label_smoothing = name.find("_ls0.1") == std::string::npos ? 0 : 0.1;
  return dpo_objective(stories.policy(), stories.reference(), dpo);
}

TEST(Stories, PreferenceLossesAreThoseOfTheOracle) {
  NEED_STORIES();
  stories.set_b();
  const auto& oracle = stories.posttrain["dpo"];
  const Batch batch = pairs_batch(oracle["pairs"]);
  const auto& first = oracle["variants"]["sigmoid_beta0.1"]["pairs"];
  const PairLogprobs now = pairs_of(logprobs_of(stories.policy(), batch));
  const PairLogprobs before = pairs_of(stories.reference()(batch));
  for (size_t i = 0; i < 2; ++i) {
    const auto near = [&](const Tensor& x, const char* key) {
      EXPECT_NEAR(detach(x).values<double>()[i], first[i][key].get<double>(), 1e-9) << key;
    };
    near(now.chosen.sums, "logp_chosen");
    near(now.rejected.sums, "logp_rejected");
    near(before.chosen.sums, "ref_logp_chosen");
    near(before.rejected.sums, "ref_logp_rejected");
  }
  for (const auto& [name, expected] : oracle["variants"].items()) {
    const Loss loss = objective_of(stories, name)(batch);
    EXPECT_EQ(loss.count, 2) << name;
    backward(loss.sum / loss.count);
    EXPECT_NEAR(loss.sum.item() / loss.count, expected["mean_loss"].get<double>(), 1e-9) << name;
    const double norm = expected["lora_grad_norm"].get<double>();
    EXPECT_NEAR(gradient_norm(stories.adapters->parameters()) / norm, 1, 1e-9) << name;
    for (const auto& [path, p] : stories.adapters->parameters()) {
      clear_grad(p);
    }
  }
}

TEST(Stories, TheLossStartsAtLog2WithoutAMargin) {
  NEED_STORIES();
  const Loss loss = dpo_objective(stories.policy(), stories.reference(),
                                  {})(pairs_batch(stories.posttrain["dpo"]["pairs"]));
  EXPECT_EQ(loss.sum.item() / loss.count, std::log(2.0));
  EXPECT_EQ(loss.metrics.at("margin"), 0);
  EXPECT_EQ(loss.metrics.at("kl"), 0);
  EXPECT_EQ(loss.metrics.at("accuracy") / loss.count, 0.5);
}

}  // namespace
}  // namespace ingot::testing
