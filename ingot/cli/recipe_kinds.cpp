#include "ingot/cli/recipe_kinds.h"

#include "ingot/optim/alternatives.h"

namespace ingot {

void choose_kinds(OptimizerConfig& optim, ScheduleConfig& schedule,
                  const std::vector<Setting>& settings,
                  const std::vector<std::string>& assignments) {
  choose_kind(optim, settings, "optim.kind");
  choose_kind(schedule, settings, "schedule.kind");
  for (const std::string& assignment : assignments) {
    for (const std::string_view kind : {"optim.kind=", "schedule.kind="}) {
      if (assignment.starts_with(kind)) {
        const std::vector<Setting> chosen = {{std::string(kind.substr(0, kind.size() - 1)),
                                              Value(assignment.substr(kind.size())), "--set",
                                              false}};
        choose_kind(optim, chosen, "optim.kind");
        choose_kind(schedule, chosen, "schedule.kind");
      }
    }
  }
}

std::optional<std::string> chosen_text(const std::vector<Setting>& settings,
                                       const std::vector<std::string>& assignments,
                                       const std::string& path) {
  std::optional<std::string> out;
  for (const Setting& setting : settings) {
    if (setting.path == path && setting.value) {
      const auto* text = std::get_if<std::string>(&*setting.value);
      out = text != nullptr ? std::optional(*text) : out;
    }
  }
  for (const std::string& assignment : assignments) {
    if (assignment.starts_with(path + "=")) {
      out = assignment.substr(path.size() + 1);
      if (out->size() >= 2 && out->front() == '"' && out->back() == '"') {
        out = out->substr(1, out->size() - 2);
      }
    }
  }
  return out;
}

}  // namespace ingot
