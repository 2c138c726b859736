#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/cli/program.h"

namespace ingot::testing {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

Words set_all(const Words& settings) {
  Words out;
  for (const std::string& setting : settings) {
    out.insert(out.end(), {"--set", setting});
  }
  return out;
}

class Plan : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = no_program(); !reason.empty()) {
      GTEST_SKIP() << reason;
    }
  }
};

// The relative difference between what `ingot plan` says of training's peak and the peak that the
// run reaches.
double deviation(const Words& settings) {
  const Workplace work;
  const Words all = set_all(joined(settings, {"train.steps=3", "evaluate.every=0"}));
  const Outcome planned = work.run(joined({"plan", "tiny.toml", "--json"}, all));
  EXPECT_EQ(planned.code, 0) << planned.err;
  const Outcome trained = work.run(work.train("run", all));
  EXPECT_EQ(trained.code, 0) << trained.err;
  const Words memory = logged(work / "run", "memory");
  if (planned.code != 0 || memory.size() != 3) {
    ADD_FAILURE() << "no numbers";
    return 1;
  }
  const double expected = Json::parse(planned.out)["memory"]["train"]["peak"];
  const double found = std::stod(memory.back().substr(2));
  EXPECT_GT(found, 0);
  return std::abs(expected - found) / found;
}

TEST_F(Plan, IsThePeakThatTheRunReaches) {
  double largest = 0;
  for (const char* architecture : {"llama", "gpt2"}) {
    for (const char* dtype : {"f32", "bf16"}) {
      for (const Words& more : std::vector<Words>{
               {},
               {"train.accumulate=2"},
               {"train.recompute=true", "model.layers=3"},
               {"model.tied=true", "model.dropout=0.1"},
               {"model.tied=false", "optim.kind=sgd", "train.batch=8", "model.width=32"}}) {
        const double found = deviation(joined(
            {std::string("model.architecture=") + architecture, std::string("dtype=") + dtype},
            more));
        EXPECT_LE(found, 0.02)  // promised; measured: 0
            << architecture << " " << dtype << " " << ::testing::PrintToString(more);
        largest = std::max(largest, found);
      }
    }
  }
  fmt::print("largest difference between planned and reached peak: {:.3f} %\n", 100 * largest);
}

// What lies on disk is no memory; the weights are those of a run in memory, to the bit.
TEST_F(Plan, RunsWithStateAndActivationsOnDiskAreTheSameInLessMemory) {
  const Workplace work;
  const Words size =
      set_all({"model.width=256", "model.hidden=2048", "train.steps=3", "train.sequence=64",
               "model.context=64", "train.batch=8", "evaluate.every=0"});
  const Words offload = set_all({R"(train.offload=["optimizer","activations"])"});
  const auto peak = [&](const Words& words) {
    const Outcome outcome = work.run(joined({"plan", "tiny.toml", "--json"}, words));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(outcome.out)["memory"]["train"];
  };
  const Json in_memory = peak(size);
  const Json on_disk = peak(joined(size, offload));
  EXPECT_EQ(in_memory["on_disk"], 0);
  EXPECT_GT(on_disk["on_disk"], 8 << 20);
  EXPECT_LT(on_disk["peak"].get<int64_t>(), in_memory["peak"].get<int64_t>() * 2 / 3);
  // The moments, 8 bytes a parameter, are what leaves memory.
  const Json state = peak(joined(size, set_all({R"(train.offload=["optimizer"])"})));
  EXPECT_EQ(in_memory["optimizer"].get<int64_t>() - state["optimizer"].get<int64_t>(),
            state["on_disk"].get<int64_t>());
  EXPECT_LT(state["optimizer"].get<int64_t>(), in_memory["optimizer"].get<int64_t>() / 4);
  ASSERT_EQ(work.run(work.train("a", size)).code, 0);
  const Outcome outcome = work.run(work.train("b", joined(size, offload)));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(content(work / "b/model/model.safetensors"),
            content(work / "a/model/model.safetensors"));
  const double planned = on_disk["peak"];
  EXPECT_NEAR(std::stod(logged(work / "b", "memory").back().substr(2)), planned,
              0.02 * planned);  // promised; measured: 0.003 %
  const Outcome refused =
      work.run(work.train("c", joined(size, set_all({R"(train.offload=["gradients"])"}))));
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("train.offload: \"gradients\" cannot lie in files"));
}

// A deep model keeps an input of each block and the activations of one; dropout repeats its masks.
TEST_F(Plan, RecomputingADeepModelTakesLessThanHalfTheActivationsAndGivesTheSameWeights) {
  const Workplace work;
  const Words deep = {"model.layers=24",  "model.dropout=0.1", "train.steps=2",    "train.batch=8",
                      "evaluate.every=0", "model.context=32",  "train.sequence=32"};
  const auto planned = [&](const Words& settings) {
    const Outcome outcome = work.run(joined({"plan", "tiny.toml", "--json"}, set_all(settings)));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(outcome.out);
  };
  const Words recomputing = joined(deep, {"train.recompute=true"});
  const Json kept = planned(deep);
  const Json again = planned(recomputing);
  EXPECT_LE(again["memory"]["train"]["activations"].get<double>(),
            0.4 * kept["memory"]["train"]["activations"].get<double>());
  EXPECT_LE(again["flops_per_step"].get<double>(), 4.0 / 3 * kept["flops_per_step"].get<double>());
  ASSERT_EQ(work.run(work.train("kept", set_all(deep))).code, 0);
  ASSERT_EQ(work.run(work.train("again", set_all(recomputing))).code, 0);
  EXPECT_EQ(content(work / "again/model/model.safetensors"),
            content(work / "kept/model/model.safetensors"));
  EXPECT_EQ(logged(work / "again", "loss"), logged(work / "kept", "loss"));
}

TEST_F(Plan, RecomputesAsManyLayersAsItIsTold) {
  const Workplace work;
  const auto peak = [&](const Words& settings) {
    const Words all = joined({"model.layers=4", "train.batch=8"}, settings);
    const Outcome outcome = work.run(joined({"plan", "tiny.toml", "--json"}, set_all(all)));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const Json plan = Json::parse(outcome.out);
    return std::pair(plan["memory"]["train"]["peak"].get<int64_t>(),
                     plan["flops_per_step"].get<int64_t>());
  };
  const auto none = peak({});
  const auto two = peak({"train.recompute=true", "train.recompute_layers=2"});
  const auto all = peak({"train.recompute=true"});
  EXPECT_LT(two.first, none.first);
  EXPECT_LT(all.first, two.first);
  EXPECT_EQ(two.second - none.second, all.second - two.second);  // arithmetic of two layers each
  EXPECT_EQ(peak({"train.recompute=true", "train.recompute_layers=4"}), all);
}

TEST_F(Plan, SaysWhatTheRunWillTake) {
  const Workplace work;
  const Outcome planned = work.run({"plan", "tiny.toml", "--json"});
  ASSERT_EQ(planned.code, 0) << planned.err;
  const Json plan = Json::parse(planned.out);
  EXPECT_EQ(plan["tokens_per_step"], 64);
  const Json& train = plan["memory"]["train"];
  int64_t sum = 0;
  for (const auto& [purpose, bytes] : train.items()) {
    sum += purpose == "peak" ? 0 : bytes.get<int64_t>();
  }
  EXPECT_EQ(sum, train["peak"].get<int64_t>());  // the purposes add up

  ASSERT_EQ(work.run(work.train("run")).code, 0);
  int64_t checkpoint = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(work / "run/checkpoints/step-00000006")) {
    const bool manifest = entry.path().filename() == "manifest.json";  // with the recipe's text
    checkpoint += manifest ? 0 : static_cast<int64_t>(entry.file_size());
  }
  const int64_t weights = plan["parameters"].get<int64_t>() * 4;
  EXPECT_NEAR(static_cast<double>(model_bytes(work / "run").size()), static_cast<double>(weights),
              2000);
  EXPECT_NEAR(static_cast<double>(checkpoint), plan["checkpoint_bytes"].get<double>(), 10000);
  // 6 operations per weight of a product and token, and those of attention.
  EXPECT_GT(plan["flops_per_step"].get<int64_t>(), 0);
}

TEST_F(Plan, ReadsNoTextAndWritesNothing) {
  const Workplace work;
  std::filesystem::remove(work / "text.txt");
  const Outcome planned = work.run({"plan", "tiny.toml"});
  EXPECT_EQ(planned.code, 0) << planned.err;
  EXPECT_THAT(planned.out, HasSubstr("memory at its peak"));
  EXPECT_THAT(planned.out, HasSubstr("schedule"));
  size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(work.path())) {
    ++files;
  }
  EXPECT_EQ(files, 1u);
}

TEST_F(Plan, NamesTheCheapestChangesWithWhichARecipeWouldFit) {
  const Workplace work;
  // Activations of terabytes, weights of megabytes: fewer sequences at a time are enough.
  const Outcome planned =
      work.run(joined({"plan", "tiny.toml", "--json"},
                      set_all({"train.batch=1048576", "train.sequence=4096", "model.context=4096",
                               "model.layers=8", "model.width=64"})));
  ASSERT_EQ(planned.code, 0) << planned.err;
  const Json plan = Json::parse(planned.out);
  EXPECT_FALSE(plan["fits"].get<bool>());
  for (const Json& saving : plan["savings"]) {
    EXPECT_LE(saving["peak"].get<int64_t>(), plan["available"].get<int64_t>());
    EXPECT_LT(saving["peak"].get<int64_t>(), plan["memory"]["train"]["peak"].get<int64_t>());
  }
  EXPECT_LE(plan["savings"].size(), 3u);
  EXPECT_TRUE(Json::parse(work.run({"plan", "tiny.toml", "--json"}).out)["fits"].get<bool>());
}

TEST_F(Plan, ARunThatFitsKeepsItsDivision) {
  const Workplace work;
  const Words fit = {"--set", "train.fit=true"};
  ASSERT_EQ(work.run(work.train("run", fit)).code, 0);
  EXPECT_THAT(content(work / "run/recipe.toml"), HasSubstr("accumulate = 1"));
  EXPECT_EQ(work.run(work.train("run", joined(fit, {"--resume"}))).code, 0);
  const Outcome refused =
      work.run(work.train("new", joined(fit, set_all({"model.width=8192", "model.layers=80",
                                                      "model.heads=64", "model.hidden=28672"}))));
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("train.fit: one sequence at a time does not fit: it takes "));
}

TEST_F(Plan, FollowsARecipeThatNoMachineCouldHold) {
  const Workplace work;
  const Outcome planned = work.run(
      joined({"plan", "tiny.toml", "--json"},
             set_all({"model.width=8192", "model.layers=80", "model.heads=64", "model.hidden=28672",
                      "model.context=4096", "train.sequence=4096", "train.batch=8"})));
  ASSERT_EQ(planned.code, 0) << planned.err;
  const Json plan = Json::parse(planned.out);
  EXPECT_GT(plan["memory"]["train"]["peak"].get<int64_t>(), int64_t{1} << 40);
}

TEST_F(Plan, CountsTheArithmeticOfEachKernelAsByHand) {
  const Workplace work;
  const Outcome planned = work.run({"plan", "tiny.toml", "--json", "--set", "model.kv_heads=1"});
  ASSERT_EQ(planned.code, 0) << planned.err;
  const Json plan = Json::parse(planned.out);
  // 4 sequences of 16 tokens, width 16, 2 heads of 8 over one of keys, a gated layer of 32.
  const int64_t rows = 4 * 16;
  const int64_t weights = 16 * 16 + 2 * 16 * 8 + 16 * 16 + 3 * 16 * 32;  // q, k and v, o, the gated
  const int64_t products = 2 * rows * weights;
  const int64_t seen = 16 * 17 / 2;                // pairs of a query and a key it sees
  const int64_t attention = 4 * 4 * 2 * 8 * seen;  // q·k and p v, 2 FLOPs each
  const int64_t head = 2 * rows * 16 * 256;
  const Json& kernels = plan["flops_by_kernel"];
  EXPECT_EQ(kernels.value("linear.forward", int64_t{0}), products);
  EXPECT_EQ(kernels.value("linear.input_gradient", int64_t{0}), products);
  EXPECT_EQ(kernels.value("linear.weight_gradient", int64_t{0}), products);
  EXPECT_EQ(kernels.value("attention", int64_t{0}), attention);
  EXPECT_EQ(kernels.value("attention.attention_gradients", int64_t{0}), attention * 5 / 2);
  EXPECT_EQ(kernels.value("logit_pieces.each", int64_t{0}), 3 * head);
  EXPECT_EQ(kernels.size(), 6);
  EXPECT_EQ(plan["flops_per_step"], 3 * products + attention * 7 / 2 + 3 * head);
}

}  // namespace
}  // namespace ingot::testing
