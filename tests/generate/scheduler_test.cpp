#include "ingot/generate/scheduler.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/generate/tiny_model.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

SchedulerConfig small(int64_t rows = 4) {
  SchedulerConfig config;
  config.rows = rows;
  config.page_tokens = 8;
  return config;
}

Request request_of(const Tokens& prompt, int64_t max_tokens, int64_t seed) {
  Request request;
  request.prompt = prompt;
  request.config.max_tokens = max_tokens;
  request.config.seed = seed;
  return request;
}

// Every request of a list, and where its answer goes.
struct Wanted {
  Tokens prompt;
  int64_t max_tokens, seed;
  Answer answer;
};

std::vector<Wanted> mixed_requests(size_t count) {
  std::vector<Wanted> out;
  for (uint64_t i = 0; i < count; ++i) {
    const auto n = static_cast<int64_t>(i);
    Tokens prompt = random_tokens(1 + 7 * i % 30, i % 3);  // many begin alike
    out.push_back({std::move(prompt), 1 + 5 * n % 13, n, {}});
  }
  return out;
}

void add_to(Scheduler& scheduler, Wanted& wanted) {
  Request request = request_of(wanted.prompt, wanted.max_tokens, wanted.seed);
  request.log_probabilities = 2;
  request.on_end = [&wanted](const Answer& answer) { wanted.answer = answer; };
  scheduler.add(std::move(request));
}

Answer answer_alone(const Decoder& model, const Wanted& wanted) {
  Wanted copy = wanted;
  Scheduler scheduler(model, small(1));
  add_to(scheduler, copy);
  while (scheduler.step()) {
  }
  return copy.answer;
}

TEST(Scheduler, WritesTheSameForARequestAloneAndInAnyCompany) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const auto model = random_model(tiny_config(), dtype);
    std::vector<Wanted> wanted = mixed_requests(25);
    Scheduler scheduler(*model, small(11));
    size_t next = 0;
    for (int64_t step = 0; next < wanted.size() || scheduler.running() > 0; ++step) {
      for (int64_t i = 0; i < step % 4 && next < wanted.size(); ++i) {
        add_to(scheduler, wanted[next++]);  // they join a batch that is running
      }
      scheduler.step();
    }
    EXPECT_GT(scheduler.tokens_shared(), 0);
    for (const Wanted& each : wanted) {
      EXPECT_EQ(each.answer.tokens, answer_alone(*model, each).tokens) << each.seed;
      EXPECT_EQ(each.answer.finish, Finish::length);
    }
  }
}

TEST(Scheduler, WritesWhatGenerateWritesForTheSameSeed) {
  const auto model = random_model(tiny_config());
  GenerateConfig config;
  config.max_tokens = 12;
  config.seed = 3;
  config.sampling.temperature = 0.8;
  const Tokens prompt = random_tokens(9, 1);
  const auto expected = generate(*model, {prompt, random_tokens(4, 2)}, config);
  Request request = request_of(prompt, 12, 3);
  request.config = config;
  Tokens got;
  request.on_end = [&](const Answer& answer) { got = answer.tokens; };
  Scheduler scheduler(*model, small());
  scheduler.add(std::move(request));
  while (scheduler.step()) {
  }
  EXPECT_EQ(got, expected[0]);
}

TEST(Scheduler, RecordsTheLogProbabilitiesOfAWholeForward) {
  const auto model = random_model(tiny_config());
  const Tokens prompt = random_tokens(19, 1);
  Request request = request_of(prompt, 6, 2);
  request.log_probabilities = 3;
  request.prompt_log_probabilities = true;
  std::vector<Drawn> drawn;
  request.on_token = [&](const Drawn& token) {
    drawn.push_back(token);
    return true;
  };
  Answer answer;
  request.on_end = [&](const Answer& ended) { answer = ended; };
  Scheduler scheduler(*model, small());
  scheduler.add(std::move(request));
  while (scheduler.step()) {
  }
  ASSERT_EQ(answer.prompt.size(), prompt.size() - 1);
  ASSERT_EQ(drawn.size(), 6U);
  std::vector<Drawn> all = answer.prompt;
  all.insert(all.end(), drawn.begin(), drawn.end());
  Tokens text = {prompt[0]};
  for (const Drawn& token : all) {
    const Tensor logits = whole_logits(*model, text);
    const LogProbabilities expected(logits.values<float>());
    EXPECT_NEAR(token.log_probability.value(), expected.of(token.token), 1e-5);
    ASSERT_EQ(token.best.size(), 3U);
    EXPECT_EQ(token.best[0].first, expected.best(1)[0].first);
    text.push_back(token.token);
  }
}

TEST(Scheduler, ReadsAPromptForItsLogProbabilitiesAlone) {
  const auto model = random_model(tiny_config());
  Request request = request_of(random_tokens(20, 1), 0, 0);
  request.prompt_log_probabilities = true;
  Answer answer;
  request.on_end = [&](const Answer& ended) { answer = ended; };
  Scheduler scheduler(*model, small());
  scheduler.add(std::move(request));
  while (scheduler.step()) {
  }
  EXPECT_EQ(answer.prompt.size(), 19U);
  EXPECT_TRUE(answer.tokens.empty());
}

TEST(Scheduler, EndsAtStopTokensWhenToldAtTheLimitAndWhereTheContextEnds) {
  const auto model = random_model(tiny_config());
  const Tokens prompt = random_tokens(6, 1);
  Answer answer;
  const auto run = [&](Request request) {
    request.on_end = [&](const Answer& ended) { answer = ended; };
    Scheduler scheduler(*model, small());
    scheduler.add(std::move(request));
    while (scheduler.step()) {
    }
  };
  run(request_of(prompt, 10, 1));
  EXPECT_EQ(answer.finish, Finish::length);
  const Tokens whole = answer.tokens;
  Request stopping = request_of(prompt, 10, 1);
  stopping.config.stop_tokens = {whole[4]};
  run(std::move(stopping));
  EXPECT_EQ(answer.finish, Finish::stop);
  EXPECT_EQ(answer.tokens.back(), whole[4]);
  Request told = request_of(prompt, 10, 1);
  int64_t count = 0;
  told.on_token = [&](const Drawn&) { return ++count < 3; };
  run(std::move(told));
  EXPECT_EQ(answer.finish, Finish::told);
  EXPECT_EQ(answer.tokens, Tokens(whole.begin(), whole.begin() + 3));
  run(request_of(prompt, 1000, 1));
  EXPECT_EQ(answer.finish, Finish::context);
  EXPECT_EQ(answer.tokens.size(), 48 - 6 + 1U);
  run(request_of(prompt, 0, 1));
  EXPECT_EQ(answer.finish, Finish::length);
  EXPECT_TRUE(answer.tokens.empty());
}

TEST(Scheduler, CancelledRequestsLeaveTheirPagesToOthers) {
  const auto model = random_model(tiny_config());
  SchedulerConfig config = small(2);
  config.share_prefixes = false;
  Scheduler scheduler(*model, config);
  std::vector<Finish> finishes(3, Finish::failed);
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < 3; ++i) {
    Request request = request_of(random_tokens(9, i), 30, 1);
    request.on_end = [&finishes, i](const Answer& answer) { finishes[i] = answer.finish; };
    numbers.push_back(scheduler.add(std::move(request)));
  }
  scheduler.step();
  scheduler.step();
  EXPECT_EQ(scheduler.running(), 2);
  EXPECT_EQ(scheduler.waiting(), 1);
  scheduler.cancel(numbers[0]);
  scheduler.cancel(numbers[0]);  // nothing any more
  scheduler.cancel(99);
  scheduler.step();
  EXPECT_EQ(finishes[0], Finish::cancelled);
  EXPECT_EQ(scheduler.waiting(), 0);
  scheduler.cancel(numbers[1]);
  while (scheduler.step()) {
  }
  EXPECT_EQ(finishes[2], Finish::length);
  EXPECT_EQ(scheduler.decoding().pool().used(), 0);
}

TEST(Scheduler, TakesRequestsInTheirOrderWhenThereAreFewPages) {
  const auto model = random_model(tiny_config());
  SchedulerConfig config = small(4);
  config.cache_tokens = 48;  // 6 pages
  Scheduler scheduler(*model, config);
  std::vector<size_t> order;
  for (size_t i = 0; i < 4; ++i) {
    Request request = request_of(random_tokens(5, i), i == 1 ? 35 : 9, 1);  // 2 pages, or 5
    request.on_end = [&order, i](const Answer&) { order.push_back(i); };
    scheduler.add(std::move(request));
  }
  scheduler.step();
  EXPECT_EQ(scheduler.running(), 1);  // the second does not fit, and the others do not overtake it
  while (scheduler.step()) {
  }
  EXPECT_EQ(order, (std::vector<size_t>{0, 1, 2, 3}));
}

TEST(Scheduler, ARowWithBrokenLogitsEndsAlone) {
  const auto model = random_model(tiny_config());
  Scheduler scheduler(*model, small());
  Answer broken, good;
  Request bad = request_of(random_tokens(5, 1), 5, 1);
  bad.config.rules.bias = {{3, std::nan("")}};
  bad.on_end = [&](const Answer& answer) { broken = answer; };
  scheduler.add(std::move(bad));
  Request other = request_of(random_tokens(5, 2), 5, 1);
  other.on_end = [&](const Answer& answer) { good = answer; };
  scheduler.add(std::move(other));
  while (scheduler.step()) {
  }
  EXPECT_EQ(broken.finish, Finish::failed);
  EXPECT_STREQ(broken.failure.value().what(),
               "sampling: logit 3 is not a number; the model or its input is broken");
  EXPECT_EQ(good.finish, Finish::length);
  EXPECT_EQ(good.tokens.size(), 5U);
}

TEST(Scheduler, RefusesRequestsItCanNeverServe) {
  const auto model = random_model(tiny_config());
  SchedulerConfig config = small();
  config.cache_tokens = 16;
  Scheduler scheduler(*model, config);
  const auto add = [&](const Tokens& prompt, int64_t tokens) {
    scheduler.add(request_of(prompt, tokens, 0));
  };
  expect_error([&] { add({}, 3); }, "generate: the prompt is empty");
  expect_error([&] { add(random_tokens(49, 1), 3); },
               "generate: the prompt is longer than the model's context: 49 tokens, context 48");
  expect_error(
      [&] {
        add({1, 40}, 3);
      },
      "generate: token 40 of the prompt is outside the model's vocabulary of 40");
  expect_error([&] { add({1, -1}, 3); }, "token -1 of the prompt is outside");
  expect_error(
      [&] {
        add({1, 2}, 30);
      },
      "the request never fits into the cache: it needs 4 pages of 8 tokens, the cache has 2");
}

}  // namespace
}  // namespace ingot::testing
