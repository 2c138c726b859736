#include "ingot/cli/run_observers.h"

#include "ingot/base/config_toml.h"
#include "ingot/base/cpu_features.h"
#include "ingot/base/files.h"
#include "ingot/base/signals.h"
#include "ingot/cli/report.h"

namespace ingot {
namespace {

// f(), its seconds noted as a part of the step that is being computed.
template <class F>
auto timed_within(TimeLedger& ledger, const std::string& kind, F&& f) {
  struct Note {
    TimeLedger& ledger;
    const std::string& kind;
    double start = now_seconds();
    ~Note() { ledger.within_step(kind, now_seconds() - start); }
  } note{ledger, kind};
  return f();
}

}  // namespace

RunObservers::RunObservers(Session& session, const RunData& data, const RunFolder& folder,
                           Saver& saver, double peak_flops, const std::string& parent, double began)
    : session_(session), folder_(folder), saver_(saver), peak_flops_(peak_flops) {
  const Recipe& recipe = session.recipe();
  const int64_t step = session.state.step;
  log_ = std::make_unique<RunLog>(folder.log(), step, peak_flops);
  journal_ = std::make_unique<Journal>(folder.journal(), step, recipe.seed);
  ledger_ = std::make_unique<TimeLedger>(folder.path() / "times.jsonl", step, began);
  if (recipe.track.tensorboard) {
    events_ = std::make_unique<Tensorboard>(folder.path() / "tensorboard", step);
  }
  const TrackedRun run = {
      to_toml(recipe),         data.hash,          !parent.empty() ? parent : recipe.model.from,
      session.model().count(), recipe.train.steps, recipe.track.store};
  tracker_ = std::make_unique<RunTracker>(folder, run, session.state);
  console_ = std::make_unique<Console>(step, recipe.train.steps, peak_flops,
                                       data.codec.tokenizer() == nullptr);
  validator_ =
      std::make_unique<Validator>(session, data, *log_, saver, folder.path() / "samples.jsonl",
                                  [this](int64_t at, const Evaluation& found) {
                                    tracker_->evaluated(at, found);
                                    if (events_) {
                                      events_->evaluated(at, found);
                                    }
                                  });
  saving_ = std::make_unique<Timed>(saver, "saving", *ledger_);
  evaluating_ = std::make_unique<Timed>(*validator_, "evaluating", *ledger_);
}

void RunObservers::join(Training& training) {
  training.observers = {log_.get(), journal_.get(), ledger_.get(), tracker_.get()};
  if (events_) {
    training.observers.push_back(events_.get());
  }
  training.observers.insert(training.observers.end(),
                            {saving_.get(), evaluating_.get(), console_.get()});
  training.before_update = [this] { timed_within(*ledger_, "saving", [this] { saver_.flush(); }); };
  training.batch = [this, read = training.batch](int64_t position) {
    return timed_within(*ledger_, "data", [&] { return read(position); });
  };
  training.rewind.restore = [this](int64_t step) {
    saver_.flush();
    return restore_before(folder_.checkpoints(), step, session_.optimizer());
  };
  training.rewind.resumed = [this](const TrainState& state, const std::string& event) {
    rewound(state, event);
  };
  training.stop = [this] { return stop_requested() || validator_->wants_to_stop(); };
}

void RunObservers::rewound(const TrainState& state, const std::string& event) {
  saver_.save_anew(state);
  log_->rewind(state.step, event);
  journal_->rewind(state.step);
}

void RunObservers::end(const std::string& status) { tracker_->end(status); }

std::string RunObservers::report(int64_t peak_memory) {
  ReportFigures figures;
  figures.record = tracker_->record();
  figures.plan = plan_run(session_.recipe());
  figures.time = goodput_of(folder_.path() / "times.jsonl");
  figures.peak_memory = peak_memory;
  figures.peak_flops = peak_flops_;
  figures.threads = machine().cores_usable;
  figures.losses = log_->steps();
  figures.held_out = log_->evaluations();
  figures.artefacts = artefacts_of(folder_);
  figures.events = log_->events();
  if (session_.recipe().track.report) {
    write_report(folder_.path(), figures);
  }
  return plan_against_actual(figures);
}

}  // namespace ingot
