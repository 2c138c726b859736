// Contract 3: any division of a batch into micro-batches has the same gradient, for every kind of
// training that there is.
#include <gtest/gtest.h>

#include "ingot/cli/kinds.h"
#include "ingot/cli/run_answers.h"
#include "ingot/cli/run_data.h"
#include "ingot/cli/run_folder.h"
#include "ingot/cli/session.h"
#include "ingot/ops/elementwise.h"
#include "ingot/optim/direction.h"
#include "ingot/tensor/copy.h"
#include "tests/cli/sft_workplace.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

std::string pairs() {
  std::string out;
  for (int i = 0; i < 48; ++i) {
    const std::string longer(static_cast<size_t>(i % 7), 'x');
    out += R"({"prompt": "number )" + std::to_string(i) + R"(: ", "chosen": "good)" + longer +
           R"(", "rejected": "bad )" + std::to_string(31 * i) + R"("})" + "\n";
  }
  return out;
}

class Accumulation : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = no_program(); !reason.empty()) {
      GTEST_SKIP() << reason;
    }
    work_.emplace();
    put(*work_ / "pairs.jsonl", pairs());
    const Outcome teacher = work_->train("teacher", {"seed=2"}, "base.toml");
    ASSERT_EQ(teacher.code, 0) << teacher.err;
  }

  // A recipe of a kind, whatever it reads: text, rows, or pairs of answers.
  Recipe recipe_of(const RunKind& kind, int64_t parts, const std::string& deterministic) const {
    const auto at = [&](const char* name) { return "\"" + (*work_ / name).string() + "\""; };
    const bool text = kind.name == "pretrain";
    const std::string file = text ? "text.txt" : kind.rows > 1 ? "pairs.jsonl" : "chats.jsonl";
    Words settings = {concat("kind=\"", kind.name, "\""),
                      "dtype=\"f32\"",
                      concat("deterministic=\"", deterministic, "\""),
                      "model.from=" + at("base/model"),
                      "data.files=[" + at(file.c_str()) + "]",
                      "data.validation_fraction=0.2",
                      "train.batch=8",
                      "train.sequence=64",
                      concat("train.accumulate=", parts),
                      "optim.kind=\"sgd\"",
                      "optim.weight_decay=0",
                      "optim.clip=0",
                      "optim.lr=1000",
                      "schedule.kind=\"constant\""};
    if (!text && kind.rows == 1) {
      settings.push_back("data.template=\"chatml\"");
    }
    if (kind.name == "distill") {
      settings.push_back("distill.teacher=" + at("teacher/model"));
    }
    return parse_recipe("", "recipe", settings);
  }

  // How far one step of SGD with a rate of 1000 goes, by parameter: 1000 times the gradient.
  TensorDict gradient(const RunKind& kind, int64_t parts, const std::string& deterministic) const {
    Recipe recipe = recipe_of(kind, parts, deterministic);
    const RunData data = open_run_data(recipe, *work_ / ".tokens");
    Session session(recipe, cpu_device, data.added);
    const RunFolder folder(*work_ / concat("folder-", kind.name));
    std::filesystem::create_directories(folder.path());
    prepare_answers(session, data, folder);
    const TensorDict before = session.optimizer().masters().mapped(
        [](const std::string&, const Tensor& w) { return copy_of(w); });
    Training training = session.training(data.batch);
    train_step(session.state, training);
    return session.optimizer().masters().mapped(
        [&](const std::string& name, const Tensor& w) { return w - before.at(name); });
  }

 private:
  std::optional<SftWorkplace> work_;
};

double size_of_all(const TensorDict& all) {
  double squares = 0;
  for (const auto& [name, x] : all) {
    squares += sum_of_squares(x);
  }
  return std::sqrt(squares);
}

// KTO's reference point is estimated in each micro-batch (docs/decisions.md): its gradient is the
// only one that knows of the division.
bool depends_on_division(const RunKind& kind) { return kind.name == "kto"; }

TEST_F(Accumulation, AnyDivisionHasTheSameGradientForEveryKind) {
  int compared = 0;
  for (const RunKind& kind : run_kinds()) {
    const TensorDict whole = gradient(kind, 1, "layout");
    ASSERT_GT(size_of_all(whole), 0) << kind.name;
    for (const int64_t parts : {2, 4}) {
      const TensorDict divided = gradient(kind, parts, "layout");
      const TensorDict apart = divided.mapped(
          [&](const std::string& name, const Tensor& x) { return x - whole.at(name); });
      const double error = size_of_all(apart) / size_of_all(whole);
      if (depends_on_division(kind)) {
        EXPECT_LE(error, 0.5) << kind.name;
        continue;
      }
      // f32 rounding: measured at most 6.0e-6, of CPO, whose loss is a difference of
      // log-probabilities.
      EXPECT_LE(error, 2e-5) << kind.name << " in " << parts;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 2 * (static_cast<int>(run_kinds().size()) - 1));
}

TEST_F(Accumulation, InvariantRunsHaveTheSameBitsForEveryKindWhoseRowsStandAlone) {
  for (const RunKind& kind : run_kinds()) {
    if (kind.rows > 1) {
      EXPECT_THROW(recipe_of(kind, 2, "invariant"), Error) << kind.name;
      continue;
    }
    const TensorDict whole = gradient(kind, 1, "invariant");
    const TensorDict divided = gradient(kind, 4, "invariant");
    for (const auto& [name, x] : whole) {
      EXPECT_TRUE(same_bits(x, divided.at(name))) << kind.name << " " << name;
    }
  }
}

}  // namespace
}  // namespace ingot::testing
