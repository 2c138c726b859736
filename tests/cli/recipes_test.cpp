// The recipes of the source tree: each is read strictly, so that none goes stale unnoticed.
#include <gmock/gmock.h>

#include <fstream>
#include <map>
#include <set>

#include "ingot/base/config_toml.h"
#include "ingot/cli/recipe.h"
#include "ingot/cli/recipe_kinds.h"
#include "ingot/models/pretrained.h"
#include "tests/support/message.h"
#include "tests/support/paths.h"

namespace ingot::testing {
namespace {

using ::testing::HasSubstr;
using Words = std::vector<std::string>;

std::filesystem::path source_tree() {
  return fuzz_seeds().parent_path().parent_path().parent_path();
}

// The recipe that made "runs/NAME/model": NAME; empty for other paths.
std::string maker_of(const std::string& model) {
  const std::filesystem::path path(model);
  const bool run = model.starts_with("runs/") && path.filename() == "model";
  return run ? path.parent_path().filename().string() : "";
}

// Recipes of a folder by name, those that start from a model with a stand-in in its place.
class Recipes : public ::testing::Test {
 protected:
  void SetUp() override {
    ModelConfig tiny;
    tiny.vocab = 256;
    tiny.width = 32;
    tiny.layers = 1;
    tiny.heads = 2;
    tiny.context = 256;
    const Decoder model(complete(tiny), DType::f32);
    save_pretrained(model, stand_in_ / "model");
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      if (entry.path().extension() == ".toml") {
        names_.insert(entry.path().stem());
      }
    }
  }
  std::filesystem::path path(const std::string& name) const { return folder_ / (name + ".toml"); }
  std::string from(const std::string& name) const {
    return chosen_text(toml_file_settings(path(name)), {}, "model.from").value_or("");
  }
  Recipe read(const std::string& name, Words settings = {}) const {
    if (!from(name).empty()) {
      settings.push_back("model.from=" + (stand_in_ / "model").string());
    }
    return read_recipe(path(name), settings);
  }

  std::filesystem::path folder_ = source_tree() / "recipes";
  std::set<std::string> names_;
  TemporaryFolder stand_in_;
};

TEST_F(Recipes, AreReadWithEveryKeyKnownAndInRange) {
  ASSERT_GE(names_.size(), 14U);
  for (const std::string& name : names_) {
    EXPECT_NO_THROW(read(name)) << name << ": "
                                << message_of(ErrorKind::config, [&] { read(name); });
  }
}

TEST_F(Recipes, ThereIsOneOfEveryKind) {
  std::set<std::string> kinds;
  std::set<std::string> bases;
  for (const std::string& name : names_) {
    const Recipe recipe = read(name);
    kinds.insert(recipe.kind);
    if (recipe.peft.on()) {
      bases.insert(recipe.peft.base);
    }
  }
  for (const std::string& kind : run_kind_names()) {
    EXPECT_TRUE(kinds.contains(kind)) << kind;
  }
  EXPECT_TRUE(bases.contains("as_is"));
  EXPECT_TRUE(bases.contains("nf4"));
}

// What a recipe starts from or learns from is made by another one, whole: not an adapter.
TEST_F(Recipes, StartFromModelsThatOthersMake) {
  int64_t found = 0;
  for (const std::string& name : names_) {
    const Recipe recipe = read(name);
    for (const std::string& used :
         {from(name), recipe.distill.teacher, recipe.data.tokenizer, recipe.data.chat}) {
      if (!used.starts_with("runs/")) {
        continue;
      }
      ASSERT_TRUE(names_.contains(maker_of(used))) << name << " needs " << used;
      EXPECT_FALSE(read(maker_of(used)).peft.on()) << name << " needs " << used;
      ++found;
    }
  }
  EXPECT_GE(found, 11);
}

// Of the demonstration's files, each is said to be made in docs/finetune.md or scripts/demo.sh.
TEST_F(Recipes, ReadFilesThatTheDocumentationMakes) {
  std::string said;
  for (const char* file : {"docs/finetune.md", "scripts/demo.sh"}) {
    std::ifstream in(source_tree() / file);
    said.append(std::istreambuf_iterator<char>(in), {});
  }
  ASSERT_FALSE(said.empty());
  for (const std::string& name : names_) {
    for (const std::string& file : read(name).data.files) {
      EXPECT_THAT(said, HasSubstr("> " + file)) << name;
    }
  }
}

TEST_F(Recipes, AreRefusedWithAnUnknownKeyOrAValueOutOfRange) {
  EXPECT_THAT(message_of(ErrorKind::config, [&] { read("tiny-kto", {"kto.betta=1"}); }),
              HasSubstr("kto."));
  EXPECT_THAT(message_of(ErrorKind::config, [&] { read("tiny-kto", {"kto.beta=-1"}); }),
              HasSubstr("kto.beta"));
}

}  // namespace
}  // namespace ingot::testing
