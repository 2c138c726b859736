#include <gtest/gtest.h>

#include "ingot/base/error.h"
#include "ingot/base/files.h"
#include "ingot/text/jinja_json.h"
#include "ingot/text/jinja_print.h"
#include "ingot/text/jinja_template.h"
#include "tests/support/node.h"

namespace ingot::jinja {
namespace {

using testing::data_folder;
using testing::no_data_folder;
using testing::Node;

// Renders every job; a case that it refuses gives null.
constexpr const char* script = R"(
import { Template } from "@huggingface/jinja";
answer(input.map(({ template, variables }) => {
  try {
    return new Template(template).render(variables);
  } catch { return null; }
}));
)";

struct Job {
  std::string name, source;
  Mapping variables;
};

// Conversations that the recorded cases do not hold, for every published template; without white
// space at their ends, where the peer's lstrip('\n') takes spaces too and Python's does not.
std::vector<Job> jobs() {
  const Value talks = parse_json_value(R"([
    [{"role": "user", "content": "a 'quoted' \"text\" <b> \n\n end"}],
    [{"role": "user", "content": "Ω≈ç 😀"}, {"role": "assistant", "content": "spaced \n end"},
     {"role": "user", "content": "and\tthen?"}],
    [{"role": "system", "content": "S\nS"}, {"role": "user", "content": "1"},
     {"role": "assistant", "content": "2"}, {"role": "user", "content": "3"},
     {"role": "assistant", "content": "4"}, {"role": "user", "content": "5"}]])",
                                       "talks");
  std::vector<Job> out;
  for (const std::string& name : list_folder(*data_folder() / "chat-templates")) {
    if (!name.ends_with(".json")) {
      continue;
    }
    const Value all = parse_json_value(read_file(*data_folder() / "chat-templates" / name), name);
    const std::string source = *all.mapping()->find("chat_template")->text();
    if (source.find("strftime_now") != std::string::npos) {
      continue;  // the peer's clock is its own
    }
    if (name.starts_with("Hermes-3")) {
      continue;  // the peer refuses this template, which Jinja renders
    }
    for (const Value& talk : *talks.list()) {
      Mapping variables;
      variables.set("messages", talk);
      variables.set("bos_token", *all.mapping()->find("bos_token"));
      variables.set("eos_token", *all.mapping()->find("eos_token"));
      variables.set("add_generation_prompt", out.size() % 2 == 0);
      out.push_back({name, source, variables});
    }
  }
  return out;
}

std::string printed_by_us(const Job& job) {
  try {
    return Template(job.source, job.name).render(job.variables);
  } catch (const Error& error) {
    return std::string("error: ") + error.what();
  }
}

TEST(JinjaPeer, AgreesWithHuggingFacesOwnOnPublishedTemplates) {
  if (!data_folder()) {
    GTEST_SKIP() << no_data_folder;
  }
  const Node node({"@huggingface/jinja@0.5"});
  if (!node.missing().empty()) {
    GTEST_SKIP() << node.missing();
  }
  const std::vector<Job> all = jobs();
  Items written;
  for (const Job& job : all) {
    Mapping one;
    one.set("template", job.source);
    one.set("variables", dict_of(job.variables));
    written.push_back(dict_of(std::move(one)));
  }
  Budget budget{Limits()};
  const nlohmann::json theirs = node.run(
      script, nlohmann::ordered_json::parse(json_text(list_of(std::move(written)), {}, budget)));
  int64_t compared = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string ours = printed_by_us(all[i]);
    if (theirs[i].is_string()) {
      EXPECT_EQ(ours, theirs[i].get<std::string>()) << all[i].name;
      ++compared;
    } else {
      EXPECT_TRUE(ours.starts_with("error: ")) << all[i].name << " printed " << ours;
    }
  }
  EXPECT_GT(compared, 20);
}

}  // namespace
}  // namespace ingot::jinja
