#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "ingot/base/files.h"
#include "ingot/base/hash.h"
#include "ingot/cli/run_store.h"
#include "ingot/cli/svg_curve.h"
#include "tests/cli/program.h"
#include "tests/support/message.h"

namespace ingot::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

RunRecord record(const std::string& id, double started) {
  RunRecord out;
  out.id = id;
  out.path = "/somewhere/" + id + "-run";
  out.status = "finished";
  out.started = started;
  out.recipe = "seed = 1 # it's";
  out.loss = 1.0 / 3;
  out.tokens = int64_t{1} << 40;
  return out;
}

TEST(RunStore, GivesBackWhatWasPutAndReplacesById) {
  const TemporaryFolder folder;
  {
    RunStore store(folder.path());
    store.put(record("aaaa1111", 1));
    store.put(record("bbbb2222", 2));
    RunRecord changed = record("aaaa1111", 1);
    changed.status = "failed";
    store.put(changed);
    store.tag("aaaa1111", "base");
    store.tag("aaaa1111", "base");
    store.tag("aaaa1111", "x'; DROP TABLE runs;");
    store.measured("aaaa1111", {5, "validation_loss", 2.5});
    store.set_artefacts("aaaa1111", {{"recipe.toml", 10, "hash"}});
  }
  RunStore store(folder.path());
  const auto all = store.all();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].id, "bbbb2222");
  EXPECT_EQ(all[1].status, "failed");
  EXPECT_EQ(all[1].recipe, "seed = 1 # it's");
  EXPECT_EQ(all[1].loss, 1.0 / 3);
  EXPECT_EQ(all[1].tokens, int64_t{1} << 40);
  EXPECT_THAT(store.tags("aaaa1111"), ElementsAre("base", "x'; DROP TABLE runs;"));
  EXPECT_EQ(store.measurements("aaaa1111").at(0).value, 2.5);
  EXPECT_EQ(store.artefacts("aaaa1111").at(0).hash, "hash");
  store.untag("aaaa1111", "base");
  EXPECT_EQ(store.tags("aaaa1111").size(), 1u);
  EXPECT_EQ(store.find("aaa").id, "aaaa1111");
  EXPECT_EQ(store.find("bbbb2222-run").id, "bbbb2222");
  EXPECT_EQ(store.find("/somewhere/bbbb2222-run").id, "bbbb2222");
  store.remove("aaaa1111");
  EXPECT_EQ(store.all().size(), 1u);
  EXPECT_TRUE(store.tags("aaaa1111").empty());
}

TEST(RunStore, SaysWhichRunsFitAndWhereItIsNoStore) {
  const TemporaryFolder folder;
  RunStore store(folder.path());
  store.put(record("aaaa1111", 1));
  store.put(record("aaaa2222", 2));
  EXPECT_THAT(message_of(ErrorKind::argument, [&] { store.find("aaaa"); }),
              AllOf(HasSubstr("aaaa: 2 runs in "), HasSubstr("aaaa2222 and aaaa1111")));
  EXPECT_THAT(message_of(ErrorKind::argument, [&] { store.find("zzz"); }),
              HasSubstr("zzz: no such run in "));
  fs::create_directory(folder / "bad");
  put(folder / "bad/runs.sqlite", std::string(4096, 'x'));
  EXPECT_THAT(message_of(ErrorKind::io, [&] { RunStore(folder / "bad"); }),
              HasSubstr("not usable as a store of runs: file is not a database"));
}

TEST(RunStore, SeveralProcessesMayUseIt) {
  const TemporaryFolder folder;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&folder, t] {
      RunStore store(folder.path());
      for (int i = 0; i < 10; ++i) {
        store.put(record(concat("run", t, "-", i), i));
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(RunStore(folder.path()).all().size(), 40u);
}

TEST(SvgCurves, DrawsWhatIsFiniteAndThinsLongCurves) {
  Curve training{"training", {}};
  for (int i = 0; i < 10000; ++i) {
    training.points.emplace_back(i, i == 7 ? HUGE_VAL : 5.0 - i * 1e-4);
  }
  const std::string svg = svg_curves("loss & <more>", "step", {training, {"held out", {{1, 4.0}}}});
  EXPECT_THAT(svg,
              AllOf(HasSubstr("<svg "), HasSubstr("loss &amp; &lt;more>"), HasSubstr("held out"),
                    HasSubstr("</svg>"), Not(HasSubstr("inf")), Not(HasSubstr("nan"))));
  EXPECT_LT(svg.size(), 30000u);
  EXPECT_EQ(svg_curves("none", "step", {{"a", {{1, 2}}}}), "");
  EXPECT_THAT(svg_curves("flat", "step", {{"a", {{1, 2}, {2, 2}}}}), Not(HasSubstr("nan")));
}

class Runs : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = no_program(); !reason.empty()) {
      GTEST_SKIP() << reason;
    }
  }
  Workplace work;

  Json runs(const Words& arguments, int code = 0) {
    const Outcome outcome = work.run(joined({"runs"}, joined(arguments, {"--store", "runs"})));
    EXPECT_EQ(outcome.code, code) << outcome.err;
    return Json::parse(outcome.out, nullptr, false);
  }
  void train(const std::string& name, const Words& more = {}) {
    const Outcome outcome = work.run(work.train("runs/" + name, more));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
};

TEST_F(Runs, AreListedShownComparedTaggedAndRemoved) {
  train("a");
  train("b");
  train("c", {"--set", "seed=2", "--set", "optim.lr=0.002"});
  const Json all = runs({"list", "--json"});
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0]["name"], "c");
  EXPECT_EQ(all[0]["status"], "finished");
  EXPECT_EQ(all[0]["step"], 6);
  EXPECT_EQ(all[0]["loss"].dump(), logged(work / "runs/c", "loss").back().substr(2));
  EXPECT_EQ(all[0]["data_hash"], all[1]["data_hash"]);

  const Json shown = runs({"show", "a", "--json"});
  EXPECT_THAT(shown["recipe"].get<std::string>(), HasSubstr("width = 16"));
  EXPECT_EQ(shown["artefacts"]["model/model.safetensors"],
            hash_file(work / "runs/a/model/model.safetensors"));
  EXPECT_EQ(shown["measurements"]["validation_loss"].size(), 2u);
  EXPECT_GT(shown["time"]["useful"].get<double>(), 0);

  const Json same = runs({"compare", "a", "b", "--json"});
  EXPECT_TRUE(same["recipe"].empty());
  EXPECT_TRUE(same["first_differing_step"].is_null());
  EXPECT_TRUE(same["first_differing_tensor"].is_null());
  const Json other = runs({"compare", "a", "c", "--json"});
  EXPECT_EQ(other["recipe"].size(), 2u);
  EXPECT_EQ(other["first_differing_step"], 1);
  EXPECT_EQ(other["first_differing_checkpoint"], 4);
  EXPECT_THAT(other["first_differing_tensor"].get<std::string>(), HasSubstr("adamw.m/"));

  EXPECT_EQ(work.run({"runs", "tag", "a", "baseline"}).code, 0);
  EXPECT_THAT(work.run({"runs", "list"}).out, HasSubstr("baseline"));
  EXPECT_EQ(work.run({"runs", "rm", "b", "--files"}).code, 0);
  EXPECT_FALSE(fs::exists(work / "runs/b"));
  EXPECT_EQ(runs({"list", "--json"}).size(), 2u);
  EXPECT_EQ(work.run({"runs", "show", "b"}).code, 2);
  EXPECT_EQ(work.run({"runs", "list", "--store", "absent"}).code, 3);
}

TEST_F(Runs, KnowHowTheyEnded) {
  const Words diverging = {"--set", "optim.lr=1e20", "--set", "schedule.kind=constant"};
  EXPECT_EQ(work.run(work.train("runs/wild", diverging)).code, 4);
  EXPECT_EQ(runs({"show", "wild", "--json"})["status"], "diverged");

  Child child(work.path(), work.train("runs/long", {"--set", "train.steps=100000"}));
  while (child.running() && logged(work / "runs/long", "loss").size() < 2) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(runs({"show", "long", "--json"})["status"], "running");
  EXPECT_EQ(work.run({"runs", "rm", "long", "--files"}).code, 2);
  child.send(SIGKILL);
  child.wait();
  EXPECT_EQ(runs({"show", "long", "--json"})["status"], "killed");
}

TEST_F(Runs, AResumedRunKeepsItsIdentityAndItsTime) {
  train("a");
  const std::string id = runs({"show", "a", "--json"})["id"];
  fs::remove_all(work / "runs/a/checkpoints/step-00000006");
  train("a", {"--resume"});
  const Json shown = runs({"show", "a", "--json"});
  EXPECT_EQ(shown["id"], id);
  EXPECT_EQ(shown["time"]["processes"], 2);
  EXPECT_GT(shown["time"]["repeated"].get<double>(), 0);
  EXPECT_EQ(runs({"list", "--json"}).size(), 1u);
}

TEST_F(Runs, ABrokenStoreIsNoReasonToStop) {
  fs::create_directory(work / "runs");
  put(work / "runs/runs.sqlite", std::string(5000, 'x'));
  const Outcome outcome = work.run(work.train("runs/a"));
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("warning: the store of runs is not used: "));
  EXPECT_FALSE(model_bytes(work / "runs/a").empty());
}

TEST_F(Runs, EndWithAReport) {
  train("a", {"--set", "train.steps=30"});
  const std::string report = content(work / "runs/a/report.md");
  for (const char* part :
       {"# a", "| status | finished |", "| steps | 30 of 30 |", "petaflop/s-days", "goodput",
        "![loss over the steps](loss.svg)", "## Plan against actual", "memory: planned ",
        "## Where the time went", "useful steps", "## Environment", "model/model.safetensors",
        "```toml"}) {
    EXPECT_THAT(report, HasSubstr(part));
  }
  // What was computed is the rate times the busy time.
  const auto figure = [&](const std::string& name) {
    const std::string row = "| " + name + " | ";
    const size_t at = report.find(row);
    EXPECT_NE(at, std::string::npos) << name;
    std::istringstream rest(report.substr(at + row.size()));
    double value = 0;
    std::string unit;
    rest >> value >> unit;
    const double scale = unit[0] == 'k' ? 1e3 : unit[0] == 'M' ? 1e6 : unit[0] == 'G' ? 1e9 : 1e12;
    return value * scale;
  };
  const size_t hours = report.find("h by the clock, ") + std::string("h by the clock, ").size();
  const double busy = 3600 * std::stod(report.substr(hours));
  EXPECT_NEAR(figure("rate in useful steps") * busy / figure("arithmetic"), 1, 0.01);
  EXPECT_THAT(content(work / "runs/a/loss.svg"), HasSubstr("polyline"));
  EXPECT_EQ(list_folder(work / "runs/a/tensorboard").size(), 1u);
  const Words off = {"--set", "track.report=false", "--set", "track.tensorboard=false",
                     "--set", "track.store=false"};
  train("b", off);
  EXPECT_FALSE(fs::exists(work / "runs/b/report.md"));
  EXPECT_FALSE(fs::exists(work / "runs/b/tensorboard"));
  EXPECT_EQ(runs({"list", "--json"}).size(), 1u);
}

TEST_F(Runs, MeasureOnSeveralNamedSets) {
  put(work / "other.txt", "A zebra; quite another " + some_text(600));
  train("a", {"--set", "evaluate.sets=[\"same=text.txt\", \"other=other.txt\"]"});
  EXPECT_EQ(logged(work / "runs/a", "validation_loss/other").size(), 2u);
  EXPECT_EQ(logged(work / "runs/a", "validation_bits/same").size(), 2u);
  EXPECT_NE(logged(work / "runs/a", "validation_loss/same"),
            logged(work / "runs/a", "validation_loss/other"));
  const auto refused = [&](const std::string& sets) {
    return work.run(work.train("new", {"--set", "evaluate.sets=" + sets})).err;
  };
  EXPECT_THAT(refused("[\"other.txt\"]"),
              HasSubstr("evaluate.sets: not understood: got \"other.txt\"; write \"name=file\""));
  EXPECT_THAT(refused("[\"a=other.txt\", \"a=text.txt\"]"),
              HasSubstr("evaluate.sets: two are named a"));
  EXPECT_THAT(refused("[\"a=absent.txt\"]"), HasSubstr("absent.txt"));
  put(work / "byte.txt", "x");
  EXPECT_THAT(refused("[\"a=byte.txt\"]"), HasSubstr("nothing to measure in byte.txt"));
  EXPECT_FALSE(fs::exists(work / "new"));
}

// Memorises 200 bytes, and is measured on other ones.
const Words overfitting = {"--set", "train.steps=400",
                           "--set", "optim.lr=0.02",
                           "--set", "evaluate.every=20",
                           "--set", "evaluate.patience=3",
                           "--set", "evaluate.gap=0.5",
                           "--set", "data.files=[\"few.txt\"]",
                           "--set", "data.validation_files=[\"text.txt\"]",
                           "--set", "evaluate.batches=0"};

TEST_F(Runs, EndEarlyWhenTheHeldOutLossFallsNoMore) {
  put(work / "few.txt",
      "the quick brown fox jumps over the lazy dog and runs away from the bear "
      "that sleeps under a tree");
  const Outcome outcome =
      work.run(joined({"train", "tiny.toml", "--no-speed", "--run", "runs/a"}, overfitting));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("3 evaluations without gain in held-out loss"));
  EXPECT_THAT(outcome.err, HasSubstr("overfitting: the held-out loss is "));
  const Words losses = logged(work / "runs/a", "validation_loss");
  const auto steps = std::stoll(losses.back());
  EXPECT_LT(steps, 400);
  const Json best = Json::parse(content(work / "runs/a/checkpoints/best.json"));
  EXPECT_EQ(best["step"].get<int64_t>(), steps - 60);
  EXPECT_TRUE(
      fs::exists(work / ("runs/a/checkpoints/step-" +
                         std::string(8 - best["step"].dump().size(), '0') + best["step"].dump())));
  // Its model is the best one.
  const Outcome evaluated = work.run({"runs", "show", "a", "--json", "--store", "runs"});
  EXPECT_NEAR(Json::parse(evaluated.out)["validation_loss"].get<double>(),
              best["validation_loss"].get<double>(), 1e-9);
  EXPECT_FALSE(model_bytes(work / "runs/a").empty());
  // A resumed run is at its end, too.
  const Outcome again = work.run(work.train("runs/a", joined(overfitting, {"--resume"})));
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(logged(work / "runs/a", "validation_loss"), losses);
}

TEST_F(Runs, WriteSamplesAtIntervals) {
  train("a", {"--set", "sample.every=2"});
  const Words lines = lines_of(content(work / "runs/a/samples.jsonl"));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(Json::parse(lines[1])["step"], 4);
  EXPECT_GE(Json::parse(lines[1])["text"].get<std::string>().size(), 10u);
}

TEST_F(Runs, PlotDrawsCurvesNamesWhatIsOddAndWritesThemOut) {
  ASSERT_EQ(work.run(work.train("runs/a", {"--set", "train.steps=30"})).code, 0);
  ASSERT_EQ(work.run(work.train("runs/b", {"--set", "train.steps=30", "--set", "seed=2"})).code, 0);
  const Outcome outcome = work.run(
      {"runs", "plot", "a", "b", "--by", "tokens", "--svg", "loss.svg", "--csv", "loss.csv"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("a: loss, nats a token, against tokens"),
                                 HasSubstr("1920"), HasSubstr("held out: ")));
  const std::string picture = content(work / "loss.svg");
  EXPECT_THAT(picture, AllOf(HasSubstr("a, smoothed"), HasSubstr("b, held out")));
  const Words table = lines_of(content(work / "loss.csv"));
  EXPECT_EQ(table.front(), "run,set,step,tokens,flops,loss,smoothed");
  EXPECT_THAT(table.at(30), ::testing::StartsWith("a,training,30,1920,"));
  // A planted spike and a divergence are named.
  std::string log;
  for (int i = 1; i <= 100; ++i) {
    const double loss = i == 60 ? 9 : i > 95 ? 1e9 : 5 - 0.02 * i;
    log += "{\"step\": " + std::to_string(i) + ", \"tokens\": " + std::to_string(64 * i) +
           ", \"loss\": " + (i > 95 ? "\"nan\"" : std::to_string(loss)) + "}\n";
  }
  put(work / "runs/a/log.jsonl", log);
  EXPECT_THAT(work.run({"runs", "plot", "a"}).out,
              AllOf(HasSubstr("spike at step 60: 9.0000"), HasSubstr("diverges from step 96 on")));
  fs::remove(work / "runs/a/log.jsonl");
  const Outcome gone = work.run({"runs", "plot", "a"});
  EXPECT_EQ(gone.code, 3);
  EXPECT_THAT(gone.err, HasSubstr("log.jsonl: no steps in it"));
}

}  // namespace
}  // namespace ingot::testing
