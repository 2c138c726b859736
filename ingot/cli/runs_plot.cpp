#include "ingot/cli/runs_plot.h"

#include <fmt/format.h>

#include <cmath>
#include <iostream>

#include "ingot/base/error.h"
#include "ingot/base/files.h"
#include "ingot/cli/svg_curve.h"
#include "ingot/train/curve_marks.h"
#include "ingot/train/logged_run.h"
#include "ingot/train/loss_curve.h"

namespace ingot {
namespace {

struct PlottedRun {
  std::string name;
  double flops_per_token = 0;
  LoggedRun log;
  std::vector<double> losses, smooth;
};

PlottedRun read_run_curves(const RunRecord& record, const PlotOptions& options) {
  const std::filesystem::path path = std::filesystem::path(record.path) / "log.jsonl";
  PlottedRun out{record.name(),
                 record.flops / std::max(1.0, static_cast<double>(record.tokens)),
                 read_log(path),
                 {},
                 {}};
  check(!out.log.steps.empty(), ErrorKind::io, path.string(),
        ": no steps in it; has the run been removed?");
  for (const LoggedPoint& point : out.log.steps) {
    out.losses.push_back(point.loss);
  }
  out.smooth = smoothed(out.losses, options.smooth);
  return out;
}

double place(const LoggedPoint& point, const PlottedRun& run, const std::string& by) {
  const auto tokens = static_cast<double>(point.tokens);
  return by == "step"     ? static_cast<double>(point.step)
         : by == "tokens" ? tokens
                          : tokens * run.flops_per_token;
}

// Axes of the terminal have whole numbers: FLOPs in the largest unit that leaves four digits.
struct Unit {
  const char* name;
  double size;
};
Unit unit_of(const PlottedRun& run, const std::string& by) {
  if (by != "flops") {
    return {by == "step" ? "steps" : "tokens", 1};
  }
  Unit out{"FLOP", 1};
  for (const Unit unit : {Unit{"kFLOP", 1e3}, Unit{"MFLOP", 1e6}, Unit{"GFLOP", 1e9},
                          Unit{"TFLOP", 1e12}, Unit{"PFLOP", 1e15}, Unit{"EFLOP", 1e18}}) {
    out = place(run.log.steps.back(), run, by) >= 1000 * unit.size ? unit : out;
  }
  return out;
}

std::string words_of(const CurveMarks& marks, const PlottedRun& run) {
  const auto step = [&](size_t i) { return run.log.steps[i].step; };
  std::string out;
  for (const CurveMarks::Stretch& stretch : marks.plateaus) {
    out += fmt::format("  plateau from step {} to {}, at {:.4f}\n", step(stretch.begin),
                       step(stretch.end - 1), run.smooth[stretch.end - 1]);
  }
  for (const size_t i : marks.spikes) {
    out += fmt::format("  spike at step {}: {:.4f}\n", step(i), run.losses[i]);
  }
  if (marks.diverges < run.losses.size()) {
    out += fmt::format("  diverges from step {} on\n", step(marks.diverges));
  }
  return out;
}

void print_run(const PlottedRun& run, const PlotOptions& options) {
  const Unit unit = unit_of(run, options.by);
  std::vector<LoggedStep> drawn;
  for (size_t i = 0; i < run.smooth.size(); ++i) {
    const double x = place(run.log.steps[i], run, options.by) / unit.size;
    drawn.push_back({std::llround(x), run.smooth[i]});
  }
  std::cout << run.name << ": loss, nats a token, against " << unit.name << '\n'
            << loss_curve(drawn) << words_of(marks_of(run.losses, options.smooth), run);
  for (const auto& [set, points] : run.log.held_out) {
    std::cout << fmt::format("  held out{}{}: {:.4f} at step {}\n", set.empty() ? "" : " ", set,
                             points.back().loss, points.back().step);
  }
}

void write_picture(const std::vector<PlottedRun>& runs, const PlotOptions& options) {
  std::vector<Curve> curves;
  for (const PlottedRun& run : runs) {
    Curve raw{run.name, {}};
    Curve smooth{run.name + ", smoothed", {}};
    for (size_t i = 0; i < run.losses.size(); ++i) {
      const double x = place(run.log.steps[i], run, options.by);
      raw.points.emplace_back(x, run.losses[i]);
      smooth.points.emplace_back(x, run.smooth[i]);
    }
    curves.push_back(std::move(raw));
    if (options.smooth > 0) {
      curves.push_back(std::move(smooth));
    }
    for (const auto& [set, points] : run.log.held_out) {
      Curve held_out{run.name + ", held out" + (set.empty() ? "" : " " + set), {}};
      for (const LoggedPoint& point : points) {
        held_out.points.emplace_back(place(point, run, options.by), point.loss);
      }
      curves.push_back(std::move(held_out));
    }
  }
  const std::string picture = svg_curves("loss, nats a token", options.by, curves);
  check(!picture.empty(), ErrorKind::argument, options.svg.string(),
        ": no run has two steps to draw a line through");
  write_file(options.svg, picture);
}

void write_table(const std::vector<PlottedRun>& runs, const PlotOptions& options) {
  std::string out = "run,set,step,tokens,flops,loss,smoothed\n";
  for (const PlottedRun& run : runs) {
    const auto row = [&](const std::string& set, const LoggedPoint& point,
                         const std::string& smooth) {
      out += fmt::format("{},{},{},{},{:.6g},{},{}\n", run.name, set, point.step, point.tokens,
                         place(point, run, "flops"), point.loss, smooth);
    };
    for (size_t i = 0; i < run.losses.size(); ++i) {
      row("training", run.log.steps[i], fmt::format("{}", run.smooth[i]));
    }
    for (const auto& [set, points] : run.log.held_out) {
      for (const LoggedPoint& point : points) {
        row(set.empty() ? "held out" : "held out " + set, point, "");
      }
    }
  }
  write_file(options.csv, out);
}

}  // namespace

void plot_runs(const std::vector<RunRecord>& records, const PlotOptions& options) {
  std::vector<PlottedRun> runs;
  for (const RunRecord& record : records) {
    runs.push_back(read_run_curves(record, options));
  }
  for (const PlottedRun& run : runs) {
    print_run(run, options);
  }
  if (!options.svg.empty()) {
    write_picture(runs, options);
  }
  if (!options.csv.empty()) {
    write_table(runs, options);
  }
}

}  // namespace ingot
