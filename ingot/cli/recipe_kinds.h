#pragma once

#include <string>
#include <vector>

#include "ingot/base/setting.h"
#include "ingot/optim/schedule.h"
#include "ingot/optim/table.h"

namespace ingot {

// The kinds of optimizer and schedule that settings and `--set` end up giving: they decide which
// other keys there are, so they are read first.
void choose_kinds(OptimizerConfig& optim, ScheduleConfig& schedule,
                  const std::vector<Setting>& settings,
                  const std::vector<std::string>& assignments);

// The text that a key ends up with, where one is given.
std::optional<std::string> chosen_text(const std::vector<Setting>& settings,
                                       const std::vector<std::string>& assignments,
                                       const std::string& path);

}  // namespace ingot
