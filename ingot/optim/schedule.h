#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ingot/base/describe.h"
#include "ingot/optim/schedule_constant.h"
#include "ingot/optim/schedule_cosine.h"
#include "ingot/optim/schedule_inverse_sqrt.h"
#include "ingot/optim/schedule_linear.h"
#include "ingot/optim/schedule_one_cycle.h"
#include "ingot/optim/schedule_piecewise.h"
#include "ingot/optim/schedule_restarts.h"
#include "ingot/optim/schedule_steps.h"
#include "ingot/optim/schedule_wsd.h"

namespace ingot {

// The table of schedules. Each is a struct with fields, a `name` and
//   double factor(int64_t t, int64_t total) const;
// see warmup.h for what t counts.
using Schedule =
    std::variant<CosineSchedule, ConstantSchedule, LinearSchedule, WsdSchedule, InverseSqrtSchedule,
                 StepsSchedule, RestartsSchedule, OneCycleSchedule, PiecewiseSchedule>;

std::optional<Schedule> schedule_named(std::string_view name);  // at its defaults
std::vector<std::string> schedule_names();

// What a recipe says about the schedule; read as OptimizerConfig is, with choose_kind first.
struct ScheduleConfig {
  std::string kind = std::string(CosineSchedule::name);
  std::string unit = "steps";
  Schedule schedule = CosineSchedule();

  template <class V>
  void describe(V& v) {
    v("kind", kind, one_of(schedule_names()), "shape; the fields below that it has are its own");
    v("unit", unit, one_of({"steps", "tokens"}), "what its lengths count: updates, or tokens");
    std::visit([&](auto& fields) { fields.describe(v); }, schedule);
  }
};
void choose(ScheduleConfig& config, std::string_view kind);

// The learning rate of update t (0 for the first) of a run of `total` updates.
double learning_rate(const Schedule& schedule, double peak, int64_t t, int64_t total);

// Throws Error(config) where the schedule does not fit a run of `total` updates: a warm-up, or a
// warm-up and a decay, that are longer than the run.
void check_schedule(const Schedule& schedule, int64_t total);

// `width` columns of the curve over the run in `height` rows of text, the peak on top.
std::string drawn(const Schedule& schedule, double peak, int64_t total, int64_t width = 60,
                  int64_t height = 8);

}  // namespace ingot
