// `ingot serve` under random good and bad requests for minutes: tools/soak_serve.py says whether
// every good one was answered, equal ones alike, and whether memory grew.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/program.h"

namespace ingot::testing {
namespace {

using ::testing::HasSubstr;

// The address that a server says it is at; empty where it does not within half a minute.
std::string address_of(const Child& server) {
  for (int i = 0; i < 600 && server.running(); ++i) {
    const std::string said = server.printed();
    if (const size_t at = said.find("http://"); at != std::string::npos) {
      return said.substr(at, said.find('\n', at) - at);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return "";
}

void expect_holds(const Words& options) {
  const Workplace work;
  ASSERT_EQ(work.run(work.train("run", {"--set", "model.context=512"})).code, 0);
  put(work / "run/model/chat_template.jinja",
      "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
      "{% if add_generation_prompt %}<assistant>{% endif %}");
  const char* minutes = std::getenv("INGOT_SOAK_MINUTES");
  const TemporaryFolder beside;
  Child server(work.path(),
               joined({"serve", "run/model", "--port", "0", "--cache-mib", "8"}, options),
               std::nullopt, beside / "said");
  const std::string url = address_of(server);
  ASSERT_FALSE(url.empty());
  const auto script = std::filesystem::path(__FILE__).parent_path() / "../../tools/soak_serve.py";
  const std::string command =
      "python3 '" + script.string() + "' --port " + url.substr(url.rfind(':') + 1) + " --pid " +
      std::to_string(server.pid()) + " --minutes " + (minutes == nullptr ? "10" : minutes);
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  server.send(SIGTERM);
  const Outcome outcome = server.wait();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err.find("ERROR"), std::string::npos) << outcome.err;
}

// Ten minutes, or as many as INGOT_SOAK_MINUTES says.
TEST(Soak, ServesEveryGoodRequestAmongBadOnesAndKeepsItsMemory) {
  if (const std::string reason = no_program(); !reason.empty()) {
    GTEST_SKIP() << reason;
  }
  if (std::system("python3 -c '' 2>/dev/null") != 0) {
    GTEST_SKIP() << "needs python3, for tools/soak_serve.py";
  }
  expect_holds({"--kv", "int8"});
}

}  // namespace
}  // namespace ingot::testing
