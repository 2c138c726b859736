// OpenAI's own client, as npm brings it, against `ingot serve`: what it is given, and what it makes
// of refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ingot/base/json_library.h"
#include "ingot/cli/serve_server.h"
#include "tests/cli/byte_chat_model.h"
#include "tests/support/node.h"

namespace ingot::testing {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

// `client`, and `refused(f)`: the class of the error that f rejects with, its status and fields.
constexpr const char* prelude = R"(
import OpenAI from 'openai';
const client = new OpenAI({ baseURL: input.url + '/v1', apiKey: input.key, maxRetries: 0 });
const messages = [{ role: 'user', content: 'hello' }];
const refused = async f => {
  try { await f(); return { thrown: false }; } catch (e) {
    return { thrown: true, class: e.constructor.name, status: e.status, code: e.code, param: e.param,
             type: e.type, message: e.message };
  }
};
)";

class OpenAiClient : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { node_ = new Node({"openai@7"}); }
  static void TearDownTestSuite() {
    delete node_;
    node_ = nullptr;
  }
  void SetUp() override {
    if (!node_->missing().empty()) {
      GTEST_SKIP() << node_->missing();
    }
    config.port = 0;
    config.scheduler.rows = 4;
    config.scheduler.page_tokens = 16;
    config.max_tokens = 200;
    config.key = "secret";
    config.drain_seconds = 5;
  }

  // What the script answers; it has `client`, with that key.
  Json run(const std::string& script, const std::string& key = "secret") {
    if (!server) {
      server = std::make_unique<Server>(loaded, config);
      server->start();
    }
    const std::string url = "http://127.0.0.1:" + std::to_string(server->port());
    return node_->run(prelude + script, {{"url", url}, {"key", key}}, 120);
  }

  static inline Node* node_ = nullptr;
  LoadedModel loaded = byte_chat_model();
  ServeConfig config;
  std::unique_ptr<Server> server;
};

TEST_F(OpenAiClient, ChatsWholeAndStreamedWithTheSameText) {
  const Json got = run(R"(
const settings = { model: 'tiny', messages, max_tokens: 40, seed: 5, temperature: 0.8 };
const whole = await client.chat.completions.create(settings);
const stream = await client.chat.completions.create(
  { ...settings, stream: true, stream_options: { include_usage: true } });
let text = '', chunks = 0, usage = null, finish = null;
for await (const chunk of stream) {
  ++chunks;
  text += chunk.choices[0]?.delta?.content ?? '';
  finish = chunk.choices[0]?.finish_reason ?? finish;
  usage = chunk.usage ?? usage;
}
const helper = client.chat.completions.stream(settings);
const models = [];
for await (const model of client.models.list()) models.push(model.id);
const scored = await client.completions.create(
  { model: 'tiny', prompt: 'abc', echo: true, logprobs: 1, max_tokens: 0 });
answer({ whole, text, chunks, usage, finish, models, scored,
         final: await helper.finalContent() });
)");
  const std::string whole = got["whole"]["choices"][0]["message"]["content"];
  EXPECT_EQ(got["text"], whole);
  EXPECT_EQ(got["final"], whole);
  EXPECT_GT(got["chunks"].get<int>(), 10);
  EXPECT_EQ(got["finish"], "length");
  EXPECT_EQ(got["usage"]["total_tokens"], got["whole"]["usage"]["total_tokens"]);
  EXPECT_EQ(got["usage"]["completion_tokens"], 40);
  EXPECT_EQ(got["models"], Json({"tiny"}));
  EXPECT_EQ(got["scored"]["choices"][0]["logprobs"]["tokens"], (Json{"a", "b", "c"}));
}

TEST_F(OpenAiClient, MakesItsOwnErrorsOfRefusals) {
  config.body_bytes = 20000;
  const Json got = run(R"(
const chat = more => () => client.chat.completions.create({ model: 'tiny', messages, ...more });
answer({
  model: await refused(chat({ model: 'other' })),
  long: await refused(chat({ messages: [{ role: 'user', content: 'x'.repeat(300) }] })),
  hot: await refused(chat({ temperature: 9 })),
  empty: await refused(chat({ messages: [] })),
  large: await refused(chat({ messages: [{ role: 'user', content: 'x'.repeat(30000) }] })),
  streamed: await refused(chat({ model: 'other', stream: true })),
  path: await refused(() => client.images.generate({ prompt: 'x' })),
});
)");
  const auto expect = [&](const char* name, const char* type, int status, const char* what) {
    EXPECT_EQ(got[name]["class"], type) << got[name];
    EXPECT_EQ(got[name]["status"], status) << got[name];
    EXPECT_THAT(got[name]["message"].get<std::string>(), HasSubstr(what));
  };
  expect("model", "NotFoundError", 404, "there is no model 'other'");
  expect("long", "BadRequestError", 400, "is longer than the model's context");
  EXPECT_EQ(got["long"]["code"], "context_length_exceeded");
  expect("hot", "BadRequestError", 400, "temperature: must be a number from 0 to 2");
  EXPECT_EQ(got["hot"]["param"], "temperature");
  expect("empty", "BadRequestError", 400, "messages");
  EXPECT_EQ(got["large"]["status"], 413) << got["large"];
  expect("streamed", "NotFoundError", 404, "there is no model 'other'");
  expect("path", "NotFoundError", 404, "there is no POST /v1/images/generations");
  const Json wrong = run(
      "answer(await refused(() => client.chat.completions.create({ model: 'tiny', messages })));",
      "secrets");
  EXPECT_EQ(wrong["class"], "AuthenticationError");
  EXPECT_EQ(wrong["status"], 401);
  EXPECT_THAT(wrong["message"].get<std::string>(), HasSubstr("the key is wrong"));
}

TEST_F(OpenAiClient, GetsEmbeddingsOfLengthOne) {
  const Json got = run(R"(
const ask = async more => (await client.embeddings.create(
  { model: 'tiny', input: ['one', 'two'], ...more })).data.map(each => Array.from(each.embedding));
answer({ usual: await ask({}), floats: await ask({ encoding_format: 'float' }) });
)");
  ASSERT_EQ(got["usual"].size(), 2U);
  double square = 0;
  for (size_t i = 0; i < 16; ++i) {
    // The client asks for Base64 by itself, and unpacks it.
    EXPECT_NEAR(got["usual"][1][i].get<double>(), got["floats"][1][i].get<double>(), 1e-6);
    square += std::pow(got["usual"][1][i].get<double>(), 2);
  }
  EXPECT_EQ(got["usual"][1].size(), 16U);
  EXPECT_NEAR(square, 1, 1e-5);
}

TEST_F(OpenAiClient, ItsToolsReachTheTemplateAndItsSchemasTheAnswer) {
  const Json got = run(R"(
const tool = { type: 'function', function: { name: 'add', description: 'adds',
  parameters: { type: 'object', properties: { a: { type: 'number' } } } } };
const ask = async more =>
  await client.chat.completions.create({ model: 'tiny', messages, max_tokens: 60, ...more });
const schema = { type: 'object', required: ['a'], properties: { a: { type: 'boolean' } },
                 additionalProperties: false };
answer({
  plain: (await ask({})).usage.prompt_tokens,
  tools: (await ask({ tools: [tool] })).usage.prompt_tokens,
  history: (await ask({ tools: [tool], messages: [...messages,
    { role: 'assistant', content: null, tool_calls: [{ id: 'c', type: 'function',
      function: { name: 'add', arguments: '{"a": 1}' } }] },
    { role: 'tool', tool_call_id: 'c', content: '2' }] })).usage.prompt_tokens,
  forced: await refused(() => ask({ tools: [tool],
    tool_choice: { type: 'function', function: { name: 'add' } } })),
  kept: (await ask({ response_format: { type: 'json_schema',
    json_schema: { name: 'x', strict: true, schema } } })).choices[0].message.content,
});
)");
  EXPECT_EQ(got["tools"].get<size_t>(),
            got["plain"].get<size_t>() + std::string("[1 tools]").size());
  EXPECT_GT(got["history"].get<size_t>(), got["tools"].get<size_t>());
  EXPECT_EQ(got["forced"]["class"], "BadRequestError") << got["forced"];
  EXPECT_TRUE(Json::parse(got["kept"].get<std::string>())["a"].is_boolean());
}

TEST_F(OpenAiClient, EndsAStreamThatItLeaves) {
  loaded = byte_chat_model(100000);
  config.max_tokens = 90000;
  const Json got = run(R"(
const stream = await client.chat.completions.create(
  { model: 'tiny', messages, max_tokens: 90000, stream: true });
let chunks = 0;
for await (const chunk of stream) if (++chunks == 5) break;
const figure = async () => Number((await (await fetch(input.url + '/metrics',
  { headers: { Authorization: 'Bearer secret' } })).text()).match(/\ningot_requests_running (\d+)/)[1]);
let running = 1;
for (let i = 0; i < 100 && running > 0; ++i) {
  await new Promise(done => setTimeout(done, 50));
  running = await figure();
}
answer({ chunks, running });
)");
  EXPECT_EQ(got["chunks"], 5);
  EXPECT_EQ(got["running"], 0);
}

TEST_F(OpenAiClient, WritesThirtyAnswersAtOnceEachAsAlone) {
  const Json got = run(R"(
const ask = async i => (await client.chat.completions.create({ model: 'tiny', max_tokens: 20, seed: i,
  messages: [{ role: 'user', content: 'number ' + i % 7 }] })).choices[0].message.content;
const together = await Promise.all(Array.from({ length: 30 }, (_, i) => ask(i)));
const alone = [];
for (let i = 0; i < 30; i += 5) alone.push(await ask(i));
answer({ together, alone });
)");
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(got["alone"][i], got["together"][5 * i]);
  }
}

}  // namespace
}  // namespace ingot::testing
