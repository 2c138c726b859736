#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "ingot/base/json_library.h"
#include "ingot/base/philox.h"
#include "ingot/cli/serve_server.h"
#include "tests/cli/byte_chat_model.h"
#include "tests/support/message.h"

namespace ingot::testing {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

// A server in this process, and ways to talk to it over the loopback.
class Serve : public ::testing::Test {
 protected:
  void SetUp() override {
    config.port = 0;
    config.scheduler.rows = 4;
    config.scheduler.page_tokens = 16;
    config.max_tokens = 200;
    config.body_bytes = 20000;
    config.drain_seconds = 5;
  }
  void start() {
    server = std::make_unique<Server>(loaded, config);
    server->start();
  }

  httplib::Client client() const {
    httplib::Client out("127.0.0.1", server->port());
    out.set_read_timeout(60);
    out.set_keep_alive(true);
    return out;
  }
  struct Reply {
    int status = 0;
    std::string body;
    Json json() const { return Json::parse(body); }
  };
  Reply post(const std::string& path, const std::string& body,
             const httplib::Headers& headers = {}) const {
    httplib::Client http = client();
    const auto result = http.Post(path.c_str(), headers, body, "application/json");
    return result ? Reply{result->status, result->body} : Reply{};
  }
  Reply get(const std::string& path, const httplib::Headers& headers = {}) const {
    httplib::Client http = client();
    const auto result = http.Get(path.c_str(), headers);
    return result ? Reply{result->status, result->body} : Reply{};
  }
  Json chat(Json body) const {
    body["messages"] = Json::array({{{"role", "user"}, {"content", "hello"}}});
    const Reply reply = post("/v1/chat/completions", body.dump());
    EXPECT_EQ(reply.status, 200) << reply.body;
    return reply.json();
  }
  // What bytes sent by hand are answered, until the server closes.
  std::string raw(const std::string& bytes) const {
    const int socket = open_socket();
    ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    std::string out;
    char buffer[4096];
    for (ssize_t count = 0; (count = ::recv(socket, buffer, sizeof(buffer), 0)) > 0;) {
      out.append(buffer, static_cast<size_t>(count));
    }
    ::close(socket);
    return out;
  }
  int open_socket() const {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(server->port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    return socket;
  }
  // A figure of /metrics.
  double figure(const std::string& name) const {
    const std::string text = get("/metrics").body;
    const size_t at = text.find("\n" + name + " ");
    return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size() + 2));
  }
  void wait_for(const std::string& name, double value) const {
    for (int i = 0; i < 500 && figure(name) != value; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_EQ(figure(name), value) << name;
  }

  LoadedModel loaded = byte_chat_model();
  ServeConfig config;
  std::unique_ptr<Server> server;
};

std::string long_chat(int64_t tokens, bool stream) {
  return Json({{"messages", Json::array({{{"role", "user"}, {"content", "go on"}}})},
               {"max_tokens", tokens},
               {"stream", stream}})
      .dump();
}

TEST_F(Serve, AnswersAChatAsTheModelDoesAlone) {
  start();
  const Json got = chat({{"max_tokens", 30}, {"seed", 4}, {"temperature", 0.7}});
  EXPECT_EQ(got["object"], "chat.completion");
  EXPECT_EQ(got["model"], "tiny");
  EXPECT_EQ(got["choices"][0]["index"], 0);
  EXPECT_EQ(got["choices"][0]["message"]["role"], "assistant");
  EXPECT_EQ(got["choices"][0]["finish_reason"], "length");
  GenerateConfig config_alone;
  config_alone.max_tokens = 30;
  config_alone.seed = 4;
  config_alone.sampling.temperature = 0.7;
  const Tokens prompt = loaded.text().prompt("<user>hello<assistant>");
  const Tokens expected = generate(loaded.decoder(), {prompt}, config_alone)[0];
  AnswerText text(loaded.text(), {}, {});
  std::string whole;
  for (const int64_t token : expected) {
    whole += text.add(token);
  }
  EXPECT_EQ(got["choices"][0]["message"]["content"], whole + text.finish());
  EXPECT_EQ(got["usage"]["prompt_tokens"], prompt.size());
  EXPECT_EQ(got["usage"]["completion_tokens"], 30);
  EXPECT_EQ(got["usage"]["total_tokens"], 30 + prompt.size());
}

// The data of every event of a stream.
std::vector<std::string> events_in(const std::string& body) {
  std::vector<std::string> out;
  for (size_t at = 0, end = 0; (end = body.find("\n\n", at)) != std::string::npos; at = end + 2) {
    const std::string event = body.substr(at, end - at);
    EXPECT_EQ(event.rfind("data: ", 0), 0U) << event;
    out.push_back(event.substr(6));
  }
  return out;
}

TEST_F(Serve, StreamsTheSameTextInChunks) {
  start();
  for (const std::string path : {"/v1/chat/completions", "/v1/completions"}) {
    const bool is_chat = path.find("chat") != std::string::npos;
    Json body = {{"prompt", "hello"}, {"max_tokens", 40}, {"seed", 5}, {"n", 2}, {"logprobs", 1}};
    if (is_chat) {
      body["messages"] = Json::array({{{"role", "user"}, {"content", "hello"}}});
      body["logprobs"] = true;
    }
    const Json whole = post(path, body.dump()).json();
    body["stream"] = true;
    body["stream_options"] = {{"include_usage", true}};
    const std::vector<std::string> events = events_in(post(path, body.dump()).body);
    ASSERT_GT(events.size(), 4U);
    EXPECT_EQ(events.back(), "[DONE]");
    EXPECT_EQ(Json::parse(events[events.size() - 2])["usage"]["total_tokens"],
              whole["usage"]["total_tokens"]);
    std::vector<std::string> texts(2);
    std::vector<Json> finishes(2), tokens(2, Json::array());
    for (size_t i = 0; i + 2 < events.size(); ++i) {
      const Json chunk = Json::parse(events[i]);
      EXPECT_EQ(chunk["object"], is_chat ? "chat.completion.chunk" : "text_completion");
      const Json& choice = chunk["choices"][0];
      const auto index = choice["index"].get<size_t>();
      texts[index] +=
          is_chat ? choice["delta"].value("content", "") : choice["text"].get<std::string>();
      if (!choice["finish_reason"].is_null()) {
        finishes[index] = choice["finish_reason"];
      }
      const Json logprobs = choice["logprobs"];
      if (!logprobs.is_null()) {
        for (const Json& token : is_chat ? logprobs["content"] : logprobs["tokens"]) {
          tokens[index].push_back(is_chat ? token["token"] : token);
        }
      }
    }
    for (size_t i = 0; i < 2; ++i) {
      const Json& choice = whole["choices"][i];
      EXPECT_EQ(texts[i], is_chat ? choice["message"]["content"] : choice["text"]);
      EXPECT_EQ(finishes[i], choice["finish_reason"]);
      EXPECT_EQ(tokens[i].size(), 40U);
    }
    EXPECT_NE(texts[0], texts[1]);
  }
}

TEST_F(Serve, StopsBeforeAStopString) {
  start();
  const std::string whole =
      chat({{"max_tokens", 60}, {"seed", 1}})["choices"][0]["message"]["content"];
  size_t at = whole.size() / 2;
  while (at < whole.size() && (static_cast<uint8_t>(whole[at]) & 0xC0) == 0x80) {
    ++at;
  }
  const std::string stop = whole.substr(at, 1 + (static_cast<uint8_t>(whole[at]) >= 0x80 ? 2 : 0));
  const Json got = chat({{"max_tokens", 60}, {"seed", 1}, {"stop", stop}})["choices"][0];
  EXPECT_EQ(got["message"]["content"], whole.substr(0, whole.find(stop)));
  EXPECT_EQ(got["finish_reason"], "stop");
}

TEST_F(Serve, GivesLogProbabilitiesOfAnswersAndEchoedPrompts) {
  start();
  const Json content = chat({{"max_tokens", 5},
                             {"logprobs", true},
                             {"top_logprobs", 3}})["choices"][0]["logprobs"]["content"];
  ASSERT_EQ(content.size(), 5U);
  for (const Json& token : content) {
    EXPECT_LE(token["logprob"].get<double>(), 0);
    ASSERT_EQ(token["top_logprobs"].size(), 3U);
    EXPECT_GE(token["top_logprobs"][0]["logprob"], token["logprob"]);
    EXPECT_EQ(token["bytes"].size(), 1U);
  }
  const Json scored =
      post("/v1/completions", R"({"prompt": "abc", "echo": true, "logprobs": 2, "max_tokens": 0})")
          .json()["choices"][0];
  EXPECT_EQ(scored["text"], "abc");
  EXPECT_EQ(scored["logprobs"]["tokens"], (Json{"a", "b", "c"}));
  EXPECT_TRUE(scored["logprobs"]["token_logprobs"][0].is_null());
  EXPECT_LT(scored["logprobs"]["token_logprobs"][2].get<double>(), 0);
  EXPECT_EQ(scored["logprobs"]["text_offset"], (Json{0, 1, 2}));
  EXPECT_GE(scored["logprobs"]["top_logprobs"][1].size(), 1U);  // bytes of no character look alike
}

TEST_F(Serve, KeepsAnswersToAFormAndPassesToolsToTheTemplate) {
  start();
  const Json kept = chat(Json::parse(R"({"response_format": {"type": "json_schema", "json_schema": {
    "schema": {"type": "object", "required": ["a"], "properties": {"a": {"type": "boolean"}}}}}})"));
  const Json parsed = Json::parse(kept["choices"][0]["message"]["content"].get<std::string>());
  EXPECT_TRUE(parsed["a"].is_boolean());
  EXPECT_EQ(kept["choices"][0]["finish_reason"], "stop");
  const Json plain = chat({{"max_tokens", 1}});
  const Json tools = chat(Json::parse(R"({"max_tokens": 1, "tools": [{"type": "function"}]})"));
  EXPECT_EQ(tools["usage"]["prompt_tokens"].get<size_t>(),
            plain["usage"]["prompt_tokens"].get<size_t>() + std::string("[1 tools]").size());
  const Json none = chat(
      Json::parse(R"({"max_tokens": 1, "tools": [{"type": "function"}], "tool_choice": "none"})"));
  EXPECT_EQ(none["usage"]["prompt_tokens"], plain["usage"]["prompt_tokens"]);
}

TEST_F(Serve, ReadsPromptsThatBeginAlikeOnce) {
  start();
  const std::string system(100, 's');
  const auto ask = [&](const std::string& what) {
    return post("/v1/completions", Json({{"prompt", system + what}, {"max_tokens", 2}}).dump())
        .json()["usage"];
  };
  EXPECT_EQ(ask("one")["prompt_tokens_details"]["cached_tokens"], 0);
  EXPECT_EQ(ask("two")["prompt_tokens_details"]["cached_tokens"], 96);  // six pages of 16
  EXPECT_EQ(figure("ingot_prompt_tokens_shared_total"), 96);
}

TEST_F(Serve, GivesEmbeddingsOfLengthOne) {
  start();
  const Json got =
      post("/v1/embeddings", R"({"input": ["one", "two", "one"], "model": "tiny"})").json();
  ASSERT_EQ(got["data"].size(), 3U);
  EXPECT_EQ(got["data"][0]["embedding"].size(), 16U);
  EXPECT_EQ(got["data"][0]["embedding"], got["data"][2]["embedding"]);
  EXPECT_NE(got["data"][0]["embedding"], got["data"][1]["embedding"]);
  double square = 0;
  for (const double value : got["data"][1]["embedding"]) {
    square += value * value;
  }
  EXPECT_NEAR(square, 1, 1e-6);
  EXPECT_EQ(got["usage"]["prompt_tokens"], 9);
  const Json packed =
      post("/v1/embeddings", R"({"input": "one", "encoding_format": "base64"})").json();
  EXPECT_EQ(packed["data"][0]["embedding"].get<std::string>().size(), 88U);  // 64 bytes
}

TEST_F(Serve, TellsItsModelsHealthFiguresAndPage) {
  start();
  EXPECT_EQ(get("/v1/models").json()["data"][0]["id"], "tiny");
  EXPECT_EQ(get("/health").json()["status"], "ok");
  chat({{"max_tokens", 3}});
  post("/v1/chat/completions", "{}");
  const std::string text = get("/metrics").body;
  EXPECT_THAT(text, HasSubstr("# TYPE ingot_requests_total counter\n"));
  EXPECT_THAT(text, HasSubstr("ingot_requests_total{endpoint=\"chat\",status=\"200\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("ingot_requests_total{endpoint=\"chat\",status=\"400\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\ningot_generated_tokens_total 3\n"));
  EXPECT_THAT(text, HasSubstr("ingot_request_seconds_bucket{le=\"+Inf\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("ingot_first_token_seconds_count 1\n"));
  // 4 texts of 256 tokens, a layer of one head with 8 features, in f32.
  EXPECT_EQ(figure("ingot_cache_bytes"), 4 * 256 * 2 * 8 * 4);
  const Reply page = get("/");
  EXPECT_THAT(page.body, HasSubstr("<!doctype html>"));
  EXPECT_THAT(page.body, HasSubstr("/v1/chat/completions"));
}

void expect_error(const std::string& body, const std::string& type, const std::string& what) {
  const Json error = Json::parse(body)["error"];
  EXPECT_EQ(error["type"], type) << body;
  EXPECT_THAT(error["message"].get<std::string>(), HasSubstr(what));
  EXPECT_TRUE(error.contains("param") && error.contains("code"));
}

TEST_F(Serve, RefusesBadRequestsInOpenAisForm) {
  start();
  const auto refused = [&](const std::string& path, const std::string& body, int status,
                           const std::string& type, const std::string& what) {
    const Reply reply = post(path, body);
    EXPECT_EQ(reply.status, status) << body;
    expect_error(reply.body, type, what);
  };
  const std::string chat_path = "/v1/chat/completions";
  refused(chat_path, "{", 400, "invalid_request_error", "not valid JSON");
  refused(chat_path, "", 400, "invalid_request_error", "not valid JSON");
  refused(chat_path, "{}", 400, "invalid_request_error", "messages: is missing");
  refused(chat_path, R"({"messages": [{"role": "user", "content": "x"}], "model": "other"})", 404,
          "not_found_error", "there is no model 'other'; this server has 'tiny'");
  refused("/v1/completions", Json({{"prompt", std::string(300, 'x')}}).dump(), 400,
          "invalid_request_error", "is longer than the model's context: 300 tokens, context 256");
  refused("/v1/completions", R"({"prompt": [1, 256]})", 400, "invalid_request_error",
          "token 256 is outside the model's vocabulary of 256");
  refused("/v1/completions", R"({"prompt": "x", "regex": "("})", 400, "invalid_request_error",
          "a ) must stand here");
  refused("/v1/completions", R"({"prompt": "a\ud800b"})", 400, "invalid_request_error",
          "surrogate U+D800..U+DBFF must be followed");
  refused("/v1/completions", "{\"prompt\": \"a\xff\xfe\"}", 400, "invalid_request_error",
          "ill-formed UTF-8 byte");
  EXPECT_EQ(post("/v1/completions", R"({"prompt": "a\u0000b", "max_tokens": 1})")
                .json()["usage"]["prompt_tokens"],
            3);
  refused("/v1/nothing", "{}", 404, "not_found_error", "there is no POST /v1/nothing");
  refused(chat_path, std::string(20001, ' '), 413, "invalid_request_error",
          "the body is longer than 20000 bytes");
  EXPECT_EQ(get("/v1/chat/completions").status, 404);
  httplib::Client http = client();
  const auto form = http.Post("/v1/completions", "prompt=x", "application/x-www-form-urlencoded");
  EXPECT_EQ(form->status, 415);
  expect_error(form->body, "invalid_request_error", "send Content-Type: application/json");
  const auto packed =
      http.Post("/v1/completions", {{"Content-Encoding", "gzip"}}, "xx", "application/json");
  EXPECT_EQ(packed->status, 415);
  const auto foreign = http.Get("/health", {{"Host", "evil.example"}});
  EXPECT_EQ(foreign->status, 403);
}

TEST_F(Serve, RefusesAChatWithoutATemplate) {
  loaded.chat.reset();
  start();
  const Reply reply = post("/v1/chat/completions", long_chat(3, false));
  EXPECT_EQ(reply.status, 400);
  expect_error(reply.body, "invalid_request_error", "it has no chat template");
  EXPECT_EQ(post("/v1/completions", R"({"prompt": "x"})").status, 200);
}

TEST_F(Serve, AsksForItsKey) {
  config.key = "secret";
  start();
  const std::string body = R"({"prompt": "x", "max_tokens": 1})";
  EXPECT_EQ(post("/v1/completions", body).status, 401);
  expect_error(post("/v1/completions", body).body, "authentication_error", "no key was given");
  const Reply wrong = post("/v1/completions", body, {{"Authorization", "Bearer secrets"}});
  EXPECT_EQ(wrong.status, 401);
  expect_error(wrong.body, "authentication_error", "the key is wrong");
  EXPECT_EQ(post("/v1/completions", body, {{"Authorization", "Bearer secret"}}).status, 200);
  EXPECT_EQ(get("/metrics").status, 401);
  EXPECT_EQ(get("/v1/models", {{"Authorization", "Bearer secret"}}).status, 200);
  EXPECT_EQ(get("/health").status, 200);
  EXPECT_EQ(get("/").status, 200);
}

TEST_F(Serve, AnswersMalformedHttp) {
  start();
  const std::string zero("\0\xff\xfe\r\n\r\n", 7);
  for (const std::string& bytes :
       {std::string("NONSENSE\r\n\r\n"), std::string("GET\r\n\r\n"),
        std::string("GET / HTTP/9.9\r\n\r\n"), std::string("\r\n\r\n"), zero}) {
    const std::string answer = raw(bytes);
    EXPECT_TRUE(answer.empty() || answer.rfind("HTTP/1.1 400", 0) == 0) << answer;
  }
  const std::string bad = raw("BREW /v1/models HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(bad, HasSubstr("HTTP/1.1 400"));
  EXPECT_THAT(bad, HasSubstr("the request is malformed"));
  EXPECT_THAT(raw("POST /v1/completions HTTP/1.1\r\nContent-Type: application/json\r\nConnection: "
                  "close\r\nContent-Length: 5\r\n\r\n{\"pro"),
              HasSubstr("not valid JSON"));
  EXPECT_THAT(raw("GET /" + std::string(9000, 'a') + " HTTP/1.1\r\n\r\n"),
              HasSubstr("HTTP/1.1 414"));
  EXPECT_EQ(get("/health").status, 200);
}

TEST_F(Serve, SlowClientsAreCutOff) {
  config.read_seconds = 1;
  start();
  const auto begin = std::chrono::steady_clock::now();
  const std::string answer = raw("POST /v1/completions HTTP/1.1\r\nContent-Length: 100\r\n\r\n{");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  EXPECT_TRUE(answer.empty() || answer.find(" 4") != std::string::npos) << answer;
  const int trickle = open_socket();  // a byte now and then does not help
  bool open = true;
  for (int i = 0; i < 40 && open; ++i) {
    open = ::send(trickle, "G", 1, MSG_NOSIGNAL) == 1;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    char byte = 0;
    open = open && ::recv(trickle, &byte, 1, MSG_DONTWAIT) != 0;
  }
  EXPECT_FALSE(open);
  ::close(trickle);
  EXPECT_EQ(get("/health").status, 200);
}

TEST_F(Serve, ClientsThatVanishFreeTheirPlace) {
  loaded = byte_chat_model(100000);
  config.max_tokens = 90000;
  config.scheduler.rows = 2;
  config.scheduler.cache_tokens = 200000;
  start();
  for (const bool stream : {false, true}) {
    const std::string body = long_chat(90000, stream);
    const std::string request =
        "POST /v1/chat/completions HTTP/1.1\r\nContent-Type: application/json\r\n"
        "Content-Length: " +
        std::to_string(body.size()) + "\r\n\r\n" + body;
    const int first = open_socket(), second = open_socket();
    ::send(first, request.data(), request.size(), MSG_NOSIGNAL);
    ::send(second, request.data(), request.size(), MSG_NOSIGNAL);
    wait_for("ingot_requests_running", 2);
    ::close(first);
    ::close(second);
    wait_for("ingot_requests_running", 0);
    wait_for("ingot_cache_pages_used", 0);
  }
  EXPECT_EQ(post("/v1/chat/completions", long_chat(3, false)).status, 200);
}

TEST_F(Serve, AnswersTooLongEndWithATimeout) {
  loaded = byte_chat_model(100000);
  config.max_tokens = 90000;
  config.scheduler.rows = 1;
  config.request_seconds = 1;
  start();
  const Reply reply = post("/v1/chat/completions", long_chat(90000, false));
  EXPECT_EQ(reply.status, 504);
  expect_error(reply.body, "server_error", "the answer took more than 1 s");
  const std::vector<std::string> events =
      events_in(post("/v1/chat/completions", long_chat(90000, true)).body);
  expect_error(events.back(), "server_error", "the answer took more than 1 s");
}

TEST_F(Serve, AFullQueueSaysSo) {
  loaded = byte_chat_model(100000);
  config.max_tokens = 90000;
  config.scheduler.rows = 1;
  config.queue = 1;
  start();
  std::vector<std::thread> busy;
  for (int i = 0; i < 2; ++i) {
    busy.emplace_back([&] { post("/v1/chat/completions", long_chat(1500, false)); });
  }
  wait_for("ingot_requests_waiting", 1);
  const Reply reply = post("/v1/chat/completions", long_chat(3, false));
  EXPECT_EQ(reply.status, 429);
  expect_error(reply.body, "rate_limit_error", "its queue is full");
  for (std::thread& thread : busy) {
    thread.join();
  }
  EXPECT_EQ(post("/v1/chat/completions", long_chat(3, false)).status, 200);
}

TEST_F(Serve, TwoHundredRequestsAtOnceAreAnsweredEachAsAlone) {
  config.queue = 400;
  config.scheduler.rows = 8;
  start();
  constexpr size_t count = 200;
  const auto body_of = [](size_t i) {
    return Json({{"prompt", "number " + std::to_string(i % 20)},
                 {"max_tokens", 4 + i % 9},
                 {"seed", i % 40},
                 {"stream", i % 3 == 0}})
        .dump();
  };
  std::vector<Reply> replies(count);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      replies[i] = i % 10 == 7   ? post("/v1/completions", "{\"prompt\": 3}")
                   : i % 10 == 8 ? post("/v1/completions", "garbage")
                                 : post("/v1/completions", body_of(i));
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  std::map<std::string, std::string> texts;  // the same request always says the same
  for (size_t i = 0; i < count; ++i) {
    if (i % 10 == 7 || i % 10 == 8) {
      EXPECT_EQ(replies[i].status, 400);
      continue;
    }
    ASSERT_EQ(replies[i].status, 200) << i << replies[i].body;
    if (i % 3 == 0) {
      EXPECT_EQ(events_in(replies[i].body).back(), "[DONE]");
    } else {
      const std::string text = replies[i].json()["choices"][0]["text"];
      const std::string key = Json::parse(body_of(i)).dump();
      EXPECT_EQ(texts.try_emplace(key, text).first->second, text);
    }
  }
  size_t compared = 0;
  for (const auto& [body, text] : texts) {
    if (++compared % 10 == 0) {
      EXPECT_EQ(post("/v1/completions", body).json()["choices"][0]["text"], text) << body;
    }
  }
  EXPECT_EQ(figure("ingot_requests_running"), 0);
}

TEST_F(Serve, APortInUseIsRefused) {
  start();
  ServeConfig second = config;
  second.port = server->port();
  const std::string message = message_of(ErrorKind::config, [&] { Server(loaded, second); });
  EXPECT_THAT(message, HasSubstr("serve: port " + std::to_string(server->port()) +
                                 " of 127.0.0.1 cannot be opened"));
}

TEST_F(Serve, StopsWhenAnswersThatAreBeingWrittenHaveEnded) {
  loaded = byte_chat_model(100000);
  config.max_tokens = 90000;
  config.scheduler.rows = 1;
  config.drain_seconds = 120;
  start();
  Reply reply;
  std::thread busy([&] { reply = post("/v1/chat/completions", long_chat(1500, false)); });
  wait_for("ingot_requests_running", 1);
  EXPECT_TRUE(server->stop());
  busy.join();
  EXPECT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(get("/health").status, 0);  // nobody listens any more
}

TEST_F(Serve, CutsOffWhatDoesNotEndInTime) {
  loaded = byte_chat_model(100000);
  config.max_tokens = 90000;
  config.scheduler.rows = 1;
  config.drain_seconds = 0;
  start();
  Reply reply;
  std::thread busy([&] { reply = post("/v1/chat/completions", long_chat(90000, false)); });
  wait_for("ingot_requests_running", 1);
  EXPECT_FALSE(server->stop());
  busy.join();
  EXPECT_EQ(reply.status, 503) << reply.body;
}

// Requests as bytes, changed at random: each gets an answer or an end, and the server lives on.
TEST_F(Serve, StandsMutatedHttp) {
  config.read_seconds = 1;
  start();
  const std::string body = R"({"prompt": "abc", "max_tokens": 2})";
  const std::string request =
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
      "application/json\r\nConnection: close\r\nContent-Length: " +
      std::to_string(body.size()) + "\r\n\r\n" + body;
  std::vector<std::thread> threads;
  for (uint64_t round = 0; round < 120; ++round) {
    const Philox random({round, 0, 3});
    std::string bytes = request;
    for (uint64_t i = 0; i <= round % 3; ++i) {
      const size_t at = random.word(3 * i) % bytes.size();
      switch (random.word(3 * i + 1) % 4) {
        case 0: bytes[at] = static_cast<char>(random.word(3 * i + 2)); break;
        case 1: bytes.erase(at, 1 + random.word(3 * i + 2) % 9); break;
        case 2: bytes.insert(at, bytes.substr(at, random.word(3 * i + 2) % 40)); break;
        default: bytes.resize(at); break;
      }
    }
    threads.emplace_back([this, bytes] {
      const int socket = open_socket();
      ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      ::shutdown(socket, SHUT_WR);
      char buffer[4096];
      std::string answer;
      for (ssize_t count = 0; (count = ::recv(socket, buffer, sizeof(buffer), 0)) > 0;) {
        answer.append(buffer, static_cast<size_t>(count));
      }
      ::close(socket);
      EXPECT_TRUE(answer.empty() || answer.rfind("HTTP/1.1 ", 0) == 0) << answer;
      EXPECT_EQ(answer.find("HTTP/1.1 5"), std::string::npos) << answer << " to " << bytes;
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(post("/v1/completions", body).status, 200);
  wait_for("ingot_requests_running", 0);
}

}  // namespace
}  // namespace ingot::testing
