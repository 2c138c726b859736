#include "ingot/cli/serve_request.h"

#include <gtest/gtest.h>

#include "ingot/base/philox.h"

namespace ingot::testing {
namespace {

constexpr RequestLimits limits{.context = 64, .vocab = 256, .max_tokens = 100};

template <class F>
ApiError error_of(const F& f) {
  try {
    f();
  } catch (const ApiError& error) {
    return error;
  }
  ADD_FAILURE() << "no error was thrown";
  return {0, ""};
}

void expect_chat_refused(const std::string& body, const std::string& message,
                         const std::string& param = "") {
  const ApiError error = error_of([&] { parse_chat_request(body, limits); });
  EXPECT_EQ(error.status(), 400) << body;
  EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
  EXPECT_EQ(error.param(), param) << error.what();
}

void expect_text_refused(const std::string& body, const std::string& message,
                         const std::string& param = "") {
  const ApiError error = error_of([&] { parse_text_request(body, limits); });
  EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
  EXPECT_EQ(error.param(), param) << error.what();
}

std::string with(const std::string& field) {
  return R"({"messages": [{"role": "user", "content": "x"}], )" + field + "}";
}

TEST(ServeRequest, ReadsEverySettingOfAChat) {
  const CompletionRequest got = parse_chat_request(R"({
    "model": "m", "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}],
    "tools": [{"type": "function", "function": {"name": "f"}}],
    "temperature": 0.5, "top_p": 0.9, "top_k": 7, "min_p": 0.1, "typical_p": 0.8,
    "repetition_penalty": 1.1, "presence_penalty": -1, "frequency_penalty": 1.5,
    "logit_bias": {"65": -100, "66": 2.5}, "seed": 9, "stop": ["a", "b"], "n": 3, "stream": true,
    "stream_options": {"include_usage": true}, "max_completion_tokens": 50, "max_tokens": 10,
    "logprobs": true, "top_logprobs": 4, "response_format": {"type": "text"},
    "chat_template_kwargs": {"enable_thinking": false}, "user": "someone", "unknown": [1]})",
                                                   limits);
  EXPECT_EQ(got.model, "m");
  EXPECT_EQ(got.conversation.messages.size(), 2U);
  EXPECT_NE(got.conversation.tools.list(), nullptr);
  EXPECT_EQ(got.config.sampling.temperature, 0.5);
  EXPECT_EQ(got.config.sampling.top_p, 0.9);
  EXPECT_EQ(got.config.sampling.top_k, 7);
  EXPECT_EQ(got.config.sampling.min_p, 0.1);
  EXPECT_EQ(got.config.sampling.typical_p, 0.8);
  EXPECT_EQ(got.config.rules.repetition_penalty, 1.1);
  EXPECT_EQ(got.config.rules.presence_penalty, -1);
  EXPECT_EQ(got.config.rules.frequency_penalty, 1.5);
  EXPECT_EQ(got.config.rules.bias, (std::map<int64_t, double>{{65, -100}, {66, 2.5}}));
  EXPECT_EQ(got.config.seed, 9);
  EXPECT_EQ(got.config.max_tokens, 50);
  EXPECT_EQ(got.stop_texts, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(got.n, 3);
  EXPECT_TRUE(got.stream && got.include_usage && got.seed_given && got.max_tokens_given);
  EXPECT_EQ(got.log_probabilities, 4);
  EXPECT_NE(got.template_arguments.find("enable_thinking"), nullptr);
}

TEST(ServeRequest, NullIsAsIfAFieldWereAbsent) {
  const CompletionRequest got = parse_chat_request(
      with(R"("temperature": null, "stop": null, "n": null, "max_tokens": null, "seed": null)"),
      limits);
  EXPECT_EQ(got.config.sampling.temperature, 1);
  EXPECT_EQ(got.n, 1);
  EXPECT_FALSE(got.max_tokens_given || got.seed_given || got.stream);
  EXPECT_EQ(got.log_probabilities, -1);
}

TEST(ServeRequest, ReadsPromptsOfAllKinds) {
  EXPECT_EQ(parse_text_request(R"({"prompt": "a"})", limits).prompts[0].text, "a");
  EXPECT_EQ(parse_text_request(R"({"prompt": ["a", "b"]})", limits).prompts.size(), 2U);
  EXPECT_EQ(parse_text_request(R"({"prompt": [1, 2]})", limits).prompts[0].ids, (Tokens{1, 2}));
  EXPECT_EQ(parse_text_request(R"({"prompt": [[1], [2, 3]]})", limits).prompts[1].ids,
            (Tokens{2, 3}));
  const CompletionRequest all = parse_text_request(
      R"({"prompt": "a", "echo": true, "logprobs": 2, "max_tokens": 0, "best_of": 1})", limits);
  EXPECT_TRUE(all.echo);
  EXPECT_EQ(all.log_probabilities, 2);
  EXPECT_EQ(all.config.max_tokens, 0);
  EXPECT_EQ(parse_text_request(R"({"prompt": "a"})", limits).config.max_tokens, 16);
  EXPECT_TRUE(parse_embedding_request(R"({"input": "a", "encoding_format": "base64"})").base64);
}

TEST(ServeRequest, RefusesChatsAndNamesTheField) {
  expect_chat_refused("", "not valid JSON");
  expect_chat_refused("{", "not valid JSON");
  expect_chat_refused("[]", "the body is no JSON object");
  expect_chat_refused("{}", "messages: is missing", "messages");
  expect_chat_refused(R"({"messages": []})", "messages: empty", "messages");
  expect_chat_refused(R"({"messages": "hello"})", "messages: not a list", "messages");
  expect_chat_refused(R"({"messages": [1]})", "messages[0]: not an object", "messages");
  expect_chat_refused(R"({"messages": [{"content": "x"}]})", "messages[0]: no role", "messages");
  expect_chat_refused(R"({"messages": [{"role": "user"}]})", "messages[0]: no content", "messages");
  expect_chat_refused(R"({"messages": [{"role": "user", "content": 3}]})", "content: a int",
                      "messages");
  expect_chat_refused(with(R"("temperature": 3)"), "must be a number from 0 to 2", "temperature");
  expect_chat_refused(with(R"("temperature": "hot")"), "must be a number", "temperature");
  expect_chat_refused(with(R"("top_p": -0.1)"), "must be a number from 0 to 1", "top_p");
  expect_chat_refused(with(R"("n": 0)"), "must be a whole number from 1 to 16", "n");
  expect_chat_refused(with(R"("n": 1.5)"), "must be a whole number", "n");
  expect_chat_refused(with(R"("max_tokens": 101)"), "must be a whole number from 0 to 100",
                      "max_tokens");
  expect_chat_refused(with(R"("stream": "yes")"), "must be true or false", "stream");
  expect_chat_refused(with(R"("stop": 3)"), "must be a string or a list", "stop");
  expect_chat_refused(with(R"("stop": [1])"), "must be a string or a list of strings", "stop");
  expect_chat_refused(with(R"("logit_bias": {"256": 1})"), "'256' is no token id below 256",
                      "logit_bias");
  expect_chat_refused(with(R"("logit_bias": {"a": 1})"), "'a' is no token id", "logit_bias");
  expect_chat_refused(with(R"("logit_bias": {"1": 101})"), "from -100 to 100", "logit_bias.1");
  expect_chat_refused(with(R"("logit_bias": [])"), "not an object", "logit_bias");
  expect_chat_refused(with(R"("logprobs": true, "top_logprobs": 21)"), "from 0 to 20",
                      "top_logprobs");
  expect_chat_refused(with(R"("tool_choice": "required")"), "only auto and none", "tool_choice");
  expect_chat_refused(with(R"("response_format": {"type": "json_object"})"),
                      "type 'json_object' is not served", "response_format");
  expect_chat_refused(with(R"("response_format": {"type": "json_schema"})"), "schema is missing",
                      "response_format");
  expect_chat_refused(with(R"("seed": 99999999999999999999)"), "integer beyond 64 bits");
}

TEST(ServeRequest, RefusesTextsAndNamesTheField) {
  expect_text_refused("{}", "prompt: is missing", "prompt");
  expect_text_refused(R"({"prompt": []})", "must be a string, a list of strings, token ids",
                      "prompt");
  expect_text_refused(R"({"prompt": [1, "a"]})", "must be a string", "prompt");
  expect_text_refused(R"({"prompt": ["a", 1]})", "must be a string", "prompt");
  expect_text_refused(R"({"prompt": ["a", "b"], "n": 9})", "more than 16 answers", "n");
  expect_text_refused(R"({"prompt": "a", "best_of": 3})", "is served only where it equals n",
                      "best_of");
  expect_text_refused(R"({"prompt": "a", "suffix": "b"})", "is not served", "suffix");
  const ApiError error = error_of([] { parse_embedding_request(R"({"input": 3})"); });
  EXPECT_EQ(error.param(), "input");
  EXPECT_EQ(error_of([] { parse_embedding_request(R"({"input": "a", "dimensions": 3})"); }).param(),
            "dimensions");
}

// Bodies with bytes changed, removed, doubled and cut: each is read or refused as a client's fault.
TEST(ServeRequest, StandsMutatedBodies) {
  const std::vector<std::string> bodies = {
      with(R"("temperature": 0.5, "stop": ["a", "\u00e9"], "logit_bias": {"65": -1}, "n": 2)"),
      with(
          R"("tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}], "seed": -1)"),
      with(
          R"("response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "null"}}})"),
      R"({"prompt": [[1, 2], [3]], "max_tokens": 5, "logprobs": 3, "echo": true})",
      R"({"input": ["one", "two"], "model": "m", "encoding_format": "float"})"};
  const std::string tokens = "{}[]\",:0-9.eE\\u\xff\x00 tfn";
  int64_t read = 0, refused = 0;
  for (uint64_t round = 0; round < 4000; ++round) {
    const Philox random({round, 0, 7});
    std::string body = bodies[round % bodies.size()];
    for (uint64_t change = 0; change <= random.word(0) % 4; ++change) {
      const size_t at = random.word(1 + 4 * change) % body.size();
      const size_t size = std::min<size_t>(1 + random.word(2 + 4 * change) % 8, body.size() - at);
      switch (random.word(3 + 4 * change) % 5) {
        case 0: body[at] = tokens[random.word(4 + 4 * change) % tokens.size()]; break;
        case 1: body.erase(at, size); break;
        case 2: body.insert(at, body.substr(at, size)); break;
        case 3: body.insert(at, size, tokens[random.word(4 + 4 * change) % tokens.size()]); break;
        default: body.resize(at); break;
      }
      body += body.empty() ? "x" : "";
    }
    try {
      switch (round % bodies.size()) {
        case 3: parse_text_request(body, limits); break;
        case 4: parse_embedding_request(body); break;
        default: parse_chat_request(body, limits);
      }
      ++read;
    } catch (const ApiError& error) {
      EXPECT_EQ(error.status(), 400);
      ++refused;
    }
  }
  EXPECT_GT(read, 200);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace ingot::testing
