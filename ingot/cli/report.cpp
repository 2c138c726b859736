#include "ingot/cli/report.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

#include "ingot/base/files.h"
#include "ingot/base/text_size.h"
#include "ingot/cli/svg_curve.h"

namespace ingot {
namespace {

constexpr double seconds_an_hour = 3600;
constexpr double seconds_a_day = 86400;

std::string table_row(const std::string& name, const std::string& value) {
  return fmt::format("| {} | {} |\n", name, value);
}

std::string table(const std::string& rows) { return "| | |\n| --- | --- |\n" + rows + "\n"; }

std::string date(double seconds) {
  const auto whole = static_cast<std::time_t>(seconds);
  std::tm broken{};
  ::gmtime_r(&whole, &broken);
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", broken);
}

std::string or_dash(const std::string& text) { return text.empty() ? "—" : "`" + text + "`"; }

std::string compared(const std::string& what, double planned, double actual,
                     const std::string& planned_text, const std::string& actual_text) {
  return fmt::format("{}: planned {}, took {} ({:+.1f} %)", what, planned_text, actual_text,
                     100 * (actual - planned) / planned);
}

std::string time_rows(const Goodput& time) {
  std::string out;
  const auto part = [&](const std::string& name, double seconds) {
    if (seconds > 0) {
      out += table_row(name, fmt::format("{} ({:.1f} %)", text_duration(seconds),
                                         100 * seconds / std::max(time.wall, 1e-9)));
    }
  };
  part("useful steps", time.useful);
  part("steps done again", time.repeated);
  part("starting", time.starting);
  part("between processes", time.down);
  for (const auto& [kind, seconds] : time.kinds) {
    part(kind, seconds);
  }
  part("other", time.other);
  out +=
      table_row("all", fmt::format("{} in {} processes", text_duration(time.wall), time.processes));
  return out;
}

std::string result_rows(const ReportFigures& f) {
  const RunRecord& r = f.record;
  std::string out = table_row("status", r.status);
  out += table_row("steps", fmt::format("{} of {}", r.step, r.steps));
  out += table_row("tokens", text_count(static_cast<double>(r.tokens)));
  out += table_row("parameters", text_count(static_cast<double>(r.parameters)));
  out += table_row("last loss", fmt::format("{:.4f} nats a token", r.loss));
  out += table_row("held-out loss", fmt::format("{:.4f} nats a token, {:.4f} bits a byte",
                                                r.validation_loss, r.validation_bits));
  out += table_row("devices", fmt::format("1 processor, {} hardware threads", f.threads));
  out += table_row("time",
                   fmt::format("{:.4g} h by the clock, {:.4g} device-hours in useful steps",
                               f.time.wall / seconds_an_hour, f.time.useful / seconds_an_hour));
  out += table_row("arithmetic", fmt::format("{}, {:.3g} petaflop/s-days", text_flops(f.time.flops),
                                             f.petaflop_days()));
  if (f.time.useful > 0) {
    out += table_row("rate in useful steps", text_flops(f.time.flops / f.time.useful) + "/s");
  }
  if (f.peak_flops > 0) {
    out += table_row("MFU", fmt::format("{:.1f} % of the measured {}/s", 100 * f.mfu(),
                                        text_flops(f.peak_flops)));
  }
  out += table_row("goodput", fmt::format("{:.1f} % of the wall time", 100 * f.time.share()));
  return out;
}

Curve curve_of(const std::string& name, const std::vector<LoggedStep>& steps) {
  Curve out{name, {}};
  for (const LoggedStep& entry : steps) {
    out.points.emplace_back(static_cast<double>(entry.step), entry.loss);
  }
  return out;
}

}  // namespace

double ReportFigures::mfu() const {
  return peak_flops > 0 && time.useful > 0 ? time.flops / time.useful / peak_flops : 0;
}

double ReportFigures::petaflop_days() const { return time.flops / 1e15 / seconds_a_day; }

std::string plan_against_actual(const ReportFigures& f) {
  const int64_t planned = f.plan.train.memory.peak_total;
  std::string out =
      compared("memory", static_cast<double>(planned), static_cast<double>(f.peak_memory),
               text_bytes(planned), text_bytes(f.peak_memory));
  const double seconds = f.plan.step_seconds() * static_cast<double>(f.record.step);
  if (seconds > 0 && f.time.useful > 0) {
    out += compared("; time of the steps", seconds, f.time.useful, text_duration(seconds),
                    text_duration(f.time.useful));
  }
  return out;
}

void write_report(const std::filesystem::path& folder, const ReportFigures& f) {
  const RunRecord& r = f.record;
  const std::string picture =
      svg_curves("loss, nats a token", "step",
                 {curve_of("training", f.losses), curve_of("held out", f.held_out)});
  std::string out =
      fmt::format("# {}\n\nRun `{}`, started {}.\n\n", r.name(), r.id, date(r.started));
  out += table(result_rows(f));
  if (!picture.empty()) {
    write_file(folder / "loss.svg", picture);
    out += "![loss over the steps](loss.svg)\n\n";
  }
  out += "## Plan against actual\n\n" + plan_against_actual(f) + "\n\n";
  out += "## Where the time went\n\n" + table(time_rows(f.time));
  if (!f.events.empty()) {
    out += "## Events\n\n";
    for (const std::string& event : f.events) {
      out += "- " + event + "\n";
    }
    out += "\n";
  }
  out += "## Environment\n\n";
  out +=
      table(table_row("host", or_dash(r.host)) + table_row("processor", or_dash(r.processor)) +
            table_row("commit of the working folder", or_dash(r.git)) +
            table_row("program", or_dash(r.binary_hash)) + table_row("data", or_dash(r.data_hash)) +
            table_row("started from", or_dash(r.parent)));
  out += "## Files\n\nXXH3-128 of each.\n\n| file | bytes | hash |\n| --- | --- | --- |\n";
  for (const Artefact& artefact : f.artefacts) {
    out += fmt::format("| {} | {} | `{}` |\n", artefact.name, artefact.bytes, artefact.hash);
  }
  out += "\n## Recipe\n\n```toml\n" + r.recipe + "```\n";
  write_file(folder / "report.md", out);
}

}  // namespace ingot
