#include "ingot/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "ingot/base/error.h"
#include "ingot/optim/alternatives.h"

namespace ingot {
namespace {

template <class Any>
int64_t warmup_of(const Any& schedule) {
  if constexpr (requires { schedule.warmup; }) {
    return schedule.warmup;
  } else {
    return 0;
  }
}

}  // namespace

std::optional<Schedule> schedule_named(std::string_view name) {
  return alternative_named<Schedule>(name);
}

std::vector<std::string> schedule_names() { return alternative_names<Schedule>(); }

void choose(ScheduleConfig& config, std::string_view kind) {
  config.kind = kind;
  config.schedule = schedule_named(kind).value_or(config.schedule);
}

double learning_rate(const Schedule& schedule, double peak, int64_t t, int64_t total) {
  return std::visit([&](const auto& any) { return peak * any.factor(t, total); }, schedule);
}

void check_schedule(const Schedule& schedule, int64_t total) {
  const int64_t warmup = std::visit([](const auto& any) { return warmup_of(any); }, schedule);
  check(warmup <= total, ErrorKind::config,
        "schedule: the warm-up is longer than the run: warmup is ", warmup, ", the run has ", total,
        "; shorten it or train longer");
  if (const auto* pieces = std::get_if<PiecewiseSchedule>(&schedule)) {
    check(!pieces->at.empty() && pieces->at.size() == pieces->factors.size(), ErrorKind::config,
          "schedule: piecewise needs a factor for each point: at has ", pieces->at.size(),
          " numbers, factors ", pieces->factors.size());
    check(std::adjacent_find(pieces->at.begin(), pieces->at.end(), std::greater_equal<>()) ==
              pieces->at.end(),
          ErrorKind::config, "schedule: the numbers of piecewise's at must rise");
  }
  if (const auto* wsd = std::get_if<WsdSchedule>(&schedule)) {
    check(wsd->warmup + wsd->decay <= total, ErrorKind::config,
          "schedule: warm-up and decay are longer than the run: warmup is ", wsd->warmup,
          ", decay is ", wsd->decay, ", the run has ", total, "; shorten them or train longer");
  }
}

std::string drawn(const Schedule& schedule, double peak, int64_t total, int64_t width,
                  int64_t height) {
  std::vector<int64_t> levels;
  for (int64_t column = 0; column < width; ++column) {
    const int64_t t = total <= 1 ? 0 : column * (total - 1) / std::max<int64_t>(1, width - 1);
    const double share = peak > 0 ? learning_rate(schedule, peak, t, total) / peak : 0;
    levels.push_back(std::llround(std::clamp(share, 0.0, 1.0) * static_cast<double>(height - 1)));
  }
  std::string out;
  for (int64_t row = height - 1; row >= 0; --row) {
    std::string line = "|";
    for (const int64_t level : levels) {
      line += level == row ? '*' : ' ';
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + (row == height - 1 ? concat("  ", peak) : "") + "\n";
  }
  return out;
}

}  // namespace ingot
