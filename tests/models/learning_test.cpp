// What the parts of a model are for, shown on models of a few thousand parameters that learn small
// tasks with the part and do not without it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/grad_mode.h"
#include "ingot/base/philox.h"
#include "ingot/models/decoder.h"
#include "ingot/nn/initialise.h"
#include "ingot/ops/cross_entropy.h"
#include "ingot/ops/reduce.h"
#include "ingot/ops/softmax.h"
#include "ingot/optim/schedule.h"
#include "ingot/optim/table.h"
#include "ingot/tensor/factories.h"

namespace ingot::testing {
namespace {

constexpr int64_t not_asked = -100;  // the label of tokens that no loss is taken of

// Sequences of equal length, written token by token.
struct Examples {
  int64_t rows;
  std::vector<int64_t> ids, labels;

  explicit Examples(int64_t count) : rows(count) {}

  void add(int64_t id, int64_t label = not_asked) {
    ids.push_back(id);
    labels.push_back(label);
  }
  Shape shape() const { return {rows, static_cast<int64_t>(ids.size()) / rows}; }
  double asked() const {
    return static_cast<double>(labels.size()) -
           static_cast<double>(std::ranges::count(labels, not_asked));
  }
};
using Task = std::function<Examples(uint64_t step)>;
constexpr uint64_t unseen = 1'000'000;  // a step that no training reaches

class Draws {
 public:
  explicit Draws(uint64_t step) : random_({2027, step, 0}) {}
  int64_t below(int64_t count) { return static_cast<int64_t>(random_.word(at_++)) % count; }
  template <class T>
  void shuffle(std::vector<T>& values) {
    for (size_t i = values.size(); i > 1; --i) {
      std::swap(values[i - 1], values[static_cast<size_t>(below(static_cast<int64_t>(i)))]);
    }
  }

 private:
  Philox random_;
  uint64_t at_ = 0;
};

DecoderConfig small(int64_t vocab, int64_t layers, int64_t width = 32) {
  DecoderConfig c;
  c.vocab = vocab;
  c.layers = layers;
  c.width = width;
  c.heads = 4;
  c.hidden = 2 * width;
  c.context = 32;
  return c;
}

std::unique_ptr<Decoder> started(const DecoderConfig& config, double deviation) {
  auto model = std::make_unique<Decoder>(config);
  nn::initialise(*model, {"gpt2", deviation}, 5);
  model->require_gradients();
  return model;
}

// The mean loss of `examples`, with its gradient left in the parameters unless under NoGrad.
double loss_of(const Decoder& model, const Examples& examples) {
  const Tensor sum =
      linear_cross_entropy(model.hidden(tensor_of(examples.ids, examples.shape())),
                           model.output_weight(), tensor_of(examples.labels, examples.shape()));
  if (recording()) {
    backward(sum);
  }
  return sum.item() / examples.asked();
}

struct Course {
  int64_t steps = 200;
  double rate = 1e-2;
  Schedule schedule = ConstantSchedule{};
  RuleConfig rule = AdamConfig{.beta2 = 0.98};
};

// Trains, and returns the loss before each step up to the first that is not finite.
std::vector<double> train(Decoder& model, const Task& task, const Course& course) {
  Optimizer optimizer(model.parameters(),
                      std::visit([](const auto& rule) { return make_rule(rule); }, course.rule));
  std::vector<double> losses;
  for (int64_t t = 0; t < course.steps; ++t) {
    const Examples examples = task(static_cast<uint64_t>(t));
    losses.push_back(loss_of(model, examples));
    if (!std::isfinite(losses.back())) {
      break;
    }
    optimizer.step(learning_rate(course.schedule, course.rate, t, course.steps),
                   1 / examples.asked());
  }
  return losses;
}

// 256 batches of the chain below leave a sampling error of 0.01 nats.
double held_out_loss(const Decoder& model, const Task& task, uint64_t batches = 256) {
  const NoGrad quiet;
  double total = 0;
  for (uint64_t i = 0; i < batches; ++i) {
    total += loss_of(model, task(unseen + i)) / static_cast<double>(batches);
  }
  return total;
}

// The share of labels that are the likeliest token.
double accuracy(const Decoder& model, const Task& task) {
  const NoGrad quiet;
  double right = 0, asked = 0;
  for (uint64_t i = 0; i < 8; ++i) {
    const Examples examples = task(unseen + i);
    const Tensor chosen = argmax(model.logits(tensor_of(examples.ids, examples.shape())), -1);
    for (size_t t = 0; t < examples.labels.size(); ++t) {
      right += chosen.values<int64_t>()[t] == examples.labels[t] ? 1 : 0;
    }
    asked += examples.asked();
  }
  return right / asked;
}

// Four different keys (0 … 7), each followed by a value (8 … 15); then the keys again in another
// order, each to be answered with its value.
Examples recall(uint64_t step) {
  Draws draws(step);
  Examples out(32);
  for (int64_t row = 0; row < out.rows; ++row) {
    std::vector<int64_t> keys(8);
    std::iota(keys.begin(), keys.end(), 0);
    draws.shuffle(keys);
    keys.resize(4);
    std::vector<int64_t> value_of(8);
    for (const int64_t key : keys) {
      value_of[static_cast<size_t>(key)] = 8 + draws.below(8);
      out.add(key);
      out.add(value_of[static_cast<size_t>(key)]);
    }
    draws.shuffle(keys);
    for (const int64_t key : keys) {
      out.add(key, value_of[static_cast<size_t>(key)]);
    }
  }
  return out;
}

double recall_accuracy(int64_t window) {
  DecoderConfig config = small(16, 2);
  config.heads = 2;
  config.positions = "learned";
  config.window = window;
  const auto model = started(config, 0.1);
  train(*model, recall, {.steps = 500, .rate = 5e-3, .schedule = CosineSchedule{.warmup = 20}});
  return accuracy(*model, recall);
}

TEST(Learning, TwoLayersOfAttentionRecallWhatStoodBesideAKey) {
  EXPECT_GE(recall_accuracy(0), 0.99);
}

TEST(Learning, WithoutAttentionToOtherTokensRecallStaysAtChance) {
  EXPECT_LE(recall_accuracy(1), 0.2);  // every token sees itself alone: one of eight values, 0.125
}

// Tokens 0 and 1 once each among fillers, then a 7 that asks which of them came first.
Examples order(uint64_t step) {
  Draws draws(step);
  Examples out(32);
  for (int64_t row = 0; row < out.rows; ++row) {
    const int64_t one = draws.below(8);
    const int64_t other = (one + 1 + draws.below(7)) % 8;
    for (int64_t t = 0; t < 8; ++t) {
      out.add(t == one ? 0 : t == other ? 1 : 2 + draws.below(5));
    }
    out.add(7, one < other ? 0 : 1);
  }
  return out;
}

// One layer, so that the last token sees the others as a set unless it is told their order.
double order_accuracy(const std::string& positions, int64_t steps) {
  DecoderConfig config = small(8, 1);
  config.positions = positions;
  const auto model = started(config, 0.1);
  train(*model, order, {.steps = steps, .rate = 1e-2});
  return accuracy(*model, order);
}

TEST(Learning, WithoutPositionsTheOrderOfTokensStaysHidden) {
  EXPECT_NEAR(order_accuracy("none", 200), 0.5, 0.1);
}

TEST(Learning, EveryKindOfPositionTellsWhichTokenCameFirst) {
  for (const char* positions : {"sinusoidal", "learned", "rope", "alibi"}) {
    EXPECT_LE(order_accuracy(positions, 0), 0.6) << positions;
    EXPECT_GE(order_accuracy(positions, 300), 0.99) << positions;
  }
}

// A Markov chain over 8 tokens, each as frequent as the others: the next one is 3 higher with
// probability 3/4, else any.
Examples chain(uint64_t step) {
  Draws draws(step);
  Examples out(8);
  for (int64_t row = 0; row < out.rows; ++row) {
    int64_t now = draws.below(8);
    for (int64_t t = 0; t < 12; ++t) {
      const int64_t next = draws.below(4) < 3 ? (now + 3) % 8 : draws.below(8);
      out.add(now, next);
      now = next;
    }
  }
  return out;
}

// Its entropy per token, whatever the token before.
double chain_entropy() {
  const double likely = 0.75 + 0.25 / 8, rest = 0.25 / 8;
  return -likely * std::log(likely) - 7 * rest * std::log(rest);
}

TEST(Learning, ThirtyTwoLayersLearnWithResidualsAndNotWithout) {
  DecoderConfig config = small(8, 32, 16);
  const double unigram = std::log(8.0);
  const auto model = started(config, 0.1);
  train(*model, chain, {.steps = 40, .rate = 1e-2});
  EXPECT_LT(held_out_loss(*model, chain, 16), unigram - 0.3);
  config.residual = false;
  const auto bare = started(config, 0.1);
  train(*bare, chain, {.steps = 40, .rate = 1e-2});
  EXPECT_GT(held_out_loss(*bare, chain, 16), unigram - 0.02);
}

TEST(Learning, ADeepModelTrainsWithNormsAtARateAtWhichItDivergesWithout) {
  DecoderConfig config = small(8, 24, 16);
  const Course course{
      .steps = 40, .rate = 0.3, .schedule = ConstantSchedule{}, .rule = SgdConfig{}};
  const auto normed = started(config, 0.3);
  train(*normed, chain, course);
  EXPECT_LT(held_out_loss(*normed, chain, 16), std::log(8.0) - 0.3);
  config.norm = "none";
  const auto bare = started(config, 0.3);
  const std::vector<double> losses = train(*bare, chain, course);
  EXPECT_TRUE(!std::isfinite(losses.back()) || losses.back() > 10 * losses.front())
      << losses.front() << " became " << losses.back();
}

// Words of the ten letters (10 … 19) and numbers of the ten digits (0 … 9), of random length and
// spelling.
Examples mixed_text(uint64_t step) {
  Draws draws(step);
  Examples out(16);
  for (int64_t row = 0; row < out.rows; ++row) {
    bool digit = draws.below(2) == 0;
    int64_t now = draws.below(10) + (digit ? 0 : 10);
    for (int64_t t = 0; t < 16; ++t) {
      digit = draws.below(8) == 0 ? !digit : digit;
      const int64_t next = draws.below(10) + (digit ? 0 : 10);
      out.add(now, next);
      now = next;
    }
  }
  return out;
}

double cosine(std::span<const float> a, std::span<const float> b) {
  const double ab = std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
  return ab / std::sqrt(std::inner_product(a.begin(), a.end(), a.begin(), 0.0) *
                        std::inner_product(b.begin(), b.end(), b.begin(), 0.0));
}

// The mean cosine between embeddings of two digits, less that between a digit's and a letter's.
double kinship(const Decoder& model) {
  const auto row = [&](size_t id) {
    const auto width = static_cast<size_t>(model.config().width);
    return model.embedding.weight.values<float>().subspan(id * width, width);
  };
  double among = 0, across = 0;
  for (size_t digit = 0; digit < 10; ++digit) {
    for (size_t other = 0; other < 10; ++other) {
      among += digit == other ? 0 : cosine(row(digit), row(other)) / 90;
      across += cosine(row(digit), row(10 + other)) / 100;
    }
  }
  return among - across;
}

TEST(Learning, EmbeddingsOfDigitsGatherApartFromThoseOfLetters) {
  const auto model = started(small(20, 1), 0.1);
  EXPECT_LT(std::abs(kinship(*model)), 0.05);
  train(*model, mixed_text, {.steps = 150, .rate = 1e-2});
  EXPECT_GT(kinship(*model), 0.4);
}

TEST(Learning, ACosineEndsBelowAConstantRate) {
  const auto decayed = started(small(8, 1), 0.1);
  train(*decayed, chain, {.steps = 250, .rate = 2e-2, .schedule = CosineSchedule{}});
  const auto constant = started(small(8, 1), 0.1);
  train(*constant, chain, {.steps = 250, .rate = 2e-2});
  EXPECT_LT(held_out_loss(*decayed, chain), held_out_loss(*constant, chain) - 0.005);
}

// How far the loss of a run at a high rate rises above its first value.
double spike(int64_t warmup) {
  const auto model = started(small(8, 4, 16), 0.1);
  const Schedule schedule = ConstantSchedule{.warmup = warmup};
  const auto losses = train(*model, chain, {.steps = 45, .rate = 0.4, .schedule = schedule});
  return *std::ranges::max_element(losses) - losses.front();
}

// Over five seeds the spikes were 1.02 nats and more, and with the warm-up 0.16 and less.
TEST(Learning, AWarmUpAvoidsTheSpikeAtTheStart) {
  EXPECT_GT(spike(0), 0.5);
  EXPECT_LT(spike(30), 0.3);
}

// How often each token followed each other one in the steps below `steps`.
std::vector<std::vector<double>> frequencies(const Task& task, uint64_t steps) {
  std::vector<std::vector<double>> counts(8, std::vector<double>(8));
  for (uint64_t step = 0; step < steps; ++step) {
    const Examples examples = task(step);
    for (size_t t = 0; t < examples.ids.size(); ++t) {
      counts[static_cast<size_t>(examples.ids[t])][static_cast<size_t>(examples.labels[t])] += 1;
    }
  }
  for (std::vector<double>& row : counts) {
    const double total = std::accumulate(row.begin(), row.end(), 0.0);
    std::ranges::for_each(row, [&](double& count) { count /= total; });
  }
  return counts;
}

TEST(Learning, MaximumLikelihoodFindsTheFrequenciesOfAChain) {
  const auto model = started(small(8, 1, 16), 0.1);
  train(*model, chain, {.steps = 500, .rate = 2e-2, .schedule = CosineSchedule{}});
  EXPECT_NEAR(held_out_loss(*model, chain), chain_entropy(), 0.02);
  const NoGrad quiet;
  const auto expected = frequencies(chain, 500);
  const Examples examples = chain(unseen);
  const Tensor found = log_softmax(model->logits(tensor_of(examples.ids, examples.shape())));
  double divergence = 0;  // KL(frequencies ‖ model), a mean over tokens
  for (size_t t = 0; t < examples.ids.size(); ++t) {
    for (size_t next = 0; next < 8; ++next) {
      const double p = expected[static_cast<size_t>(examples.ids[t])][next];
      const auto log_q = static_cast<double>(found.values<float>()[8 * t + next]);
      divergence += p * (std::log(p) - log_q) / static_cast<double>(examples.ids.size());
    }
  }
  EXPECT_LT(divergence, 0.01);
}

}  // namespace
}  // namespace ingot::testing
