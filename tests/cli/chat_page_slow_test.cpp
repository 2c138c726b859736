// The page of `ingot serve` in a real browser: Chromium, driven by puppeteer-core as npm brings it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "ingot/base/json_library.h"
#include "ingot/cli/serve_server.h"
#include "tests/cli/byte_chat_model.h"
#include "tests/support/node.h"

namespace ingot::testing {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

std::string browser() {
  const char* given = std::getenv("INGOT_CHROMIUM");
  if (given != nullptr) {
    return given;
  }
  for (const char* path :
       {"/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"}) {
    if (std::filesystem::exists(path)) {
      return path;
    }
  }
  return "";
}

// Opens the page; `say(text)` writes a message, sends it as Enter does and waits for the answer's
// end; `texts(role)` are the turns of that role.
constexpr const char* prelude = R"(
import puppeteer from 'puppeteer-core';
const browser = await puppeteer.launch({ executablePath: input.browser, headless: true,
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'] });
const page = await browser.newPage();
const problems = [], requests = [];
page.on('console', message => { if (message.type() == 'error') problems.push(message.text()); });
page.on('pageerror', error => problems.push(String(error)));
page.on('request', request => requests.push(request.url()));
await page.goto(input.url, { waitUntil: 'networkidle0' });
const texts = role => page.$$eval('.turn.' + role, turns => turns.map(turn => turn.textContent));
const set = async (id, value) => {
  await page.$eval('#' + id, (input, value) => { input.value = value; }, value);
};
const ended = () => page.waitForFunction(
  () => document.getElementById('send').textContent == 'Send', { timeout: 60000 });
const say = async text => {
  await page.type('#text', text);
  await page.keyboard.press('Enter');
  await ended();
};
try {
)";
constexpr const char* end = R"(
} finally { await browser.close(); }
)";

class ChatPage : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { node_ = new Node({"puppeteer-core@25"}); }
  static void TearDownTestSuite() {
    delete node_;
    node_ = nullptr;
  }
  void SetUp() override {
    if (browser().empty()) {
      GTEST_SKIP() << "needs Chromium (Debian: chromium; INGOT_CHROMIUM names it elsewhere)";
    }
    if (!node_->missing().empty()) {
      GTEST_SKIP() << node_->missing();
    }
    config.port = 0;
    config.max_tokens = 200;
    config.scheduler.rows = 2;
    config.drain_seconds = 2;
  }
  Json run(const std::string& script) {
    server = std::make_unique<Server>(loaded, config);
    server->start();
    url = "http://127.0.0.1:" + std::to_string(server->port());
    return node_->run(prelude + script + end, {{"url", url}, {"browser", browser()}}, 180);
  }
  // What the API answers to the same conversation.
  std::string asked(const Json& messages) const {
    httplib::Client client("127.0.0.1", server->port());
    const Json body = {{"messages", messages}, {"temperature", 0}, {"max_tokens", 40}};
    const auto got = client.Post("/v1/chat/completions", body.dump(), "application/json");
    return Json::parse(got->body)["choices"][0]["message"]["content"];
  }

  static inline Node* node_ = nullptr;
  LoadedModel loaded = byte_chat_model(4096);
  ServeConfig config;
  std::unique_ptr<Server> server;
  std::string url;
};

TEST_F(ChatPage, ConversesAsTheApiDoes) {
  const Json got = run(R"(
await set('temperature', '0');
await set('tokens', '40');
await say('hello <b>you</b>');
await say('and again');
const talk = { users: await texts('user'), answers: await texts('assistant'),
               title: await page.$eval('#model', each => each.textContent), problems, requests };
await page.click('#clear');
talk.left = (await texts('user')).length;
answer(talk);
)");
  EXPECT_EQ(got["title"], "tiny");
  EXPECT_EQ(got["users"], Json({"hello <b>you</b>", "and again"}));  // markup is text
  ASSERT_EQ(got["answers"].size(), 2U);
  const Json first = {{"role", "user"}, {"content", "hello <b>you</b>"}};
  const std::string answer = asked(Json::array({first}));
  EXPECT_EQ(got["answers"][0], answer);
  EXPECT_EQ(got["answers"][1], asked(Json::array({first,
                                                  {{"role", "assistant"}, {"content", answer}},
                                                  {{"role", "user"}, {"content", "and again"}}})));
  EXPECT_EQ(got["left"], 0);
  EXPECT_EQ(got["problems"], Json::array());
  for (const Json& request : got["requests"]) {
    EXPECT_TRUE(request.get<std::string>().starts_with(url)) << request;
  }
}

TEST_F(ChatPage, ShowsWhatWentWrongAndTakesAKey) {
  config.key = "secret";
  const Json got = run(R"(
await set('tokens', '10');
await say('hello');
const refused = await texts('error');
await set('key', 'secret');
await say('hello');
answer({ refused, errors: (await texts('error')).length, answers: await texts('assistant') });
)");
  ASSERT_EQ(got["refused"].size(), 1U);
  EXPECT_THAT(got["refused"][0].get<std::string>(), HasSubstr("no key was given"));
  EXPECT_EQ(got["errors"], 1);
  EXPECT_FALSE(got["answers"].back().get<std::string>().empty());
}

TEST_F(ChatPage, ShowsAnAnswerWhileItIsWrittenAndStopsItWhenTold) {
  loaded = byte_chat_model(100000);
  config.max_tokens = 90000;
  const Json got = run(R"(
await set('tokens', '90000');
await page.type('#text', 'go on');
await page.keyboard.press('Enter');
await page.waitForFunction(() => document.querySelector('.turn.assistant')?.textContent.length > 20);
await page.click('#send');
await ended();
const stopped = (await texts('assistant'))[0].length;
await set('tokens', '5');
await say('more');
answer({ stopped, kept: (await texts('assistant'))[0].length, answers: (await texts('assistant')).length,
         errors: await texts('error') });
)");
  EXPECT_GT(got["stopped"], 20);
  EXPECT_EQ(got["kept"], got["stopped"]);
  EXPECT_EQ(got["answers"], 2);
  EXPECT_EQ(got["errors"], Json::array());
}

}  // namespace
}  // namespace ingot::testing
