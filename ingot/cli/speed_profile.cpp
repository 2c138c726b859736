#include "ingot/cli/speed_profile.h"

#include <omp.h>

#include <cmath>
#include <cstdlib>
#include <vector>

#include "ingot/base/cpu_features.h"
#include "ingot/base/files.h"
#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "ingot/base/log.h"
#include "ingot/kernels/cpu/dispatch.h"

namespace ingot {
namespace {

std::vector<MeasuredSpeed> all_speeds(const std::filesystem::path& path) {
  std::vector<MeasuredSpeed> out;
  if (path.empty() || !file_exists(path)) {
    return out;
  }
  try {
    for (const nlohmann::json& one : parse_json_file(path)) {
      const std::string name = path.string();
      MeasuredSpeed speed;
      speed.processor = json_field<std::string>(one, "processor", name);
      speed.dtype = json_field<std::string>(one, "dtype", name);
      speed.parameters = json_field<int64_t>(one, "parameters", name);
      speed.step_flops = json_field<int64_t>(one, "step_flops", name);
      speed.step_tokens = json_field<int64_t>(one, "step_tokens", name);
      speed.step_seconds = json_field<double>(one, "step_seconds", name);
      if (speed.step_flops > 0 && speed.step_seconds > 0) {
        out.push_back(std::move(speed));
      }
    }
  } catch (const Error& error) {
    log_warn("speeds measured before are not used: ", error.what());
    out.clear();
  }
  return out;
}

}  // namespace

std::string processor_in_use() {
  return concat(machine().model, ", ", omp_get_max_threads(), " threads, ",
                name(kernels::simd_level()));
}

std::filesystem::path speed_profile() {
  if (const char* given = std::getenv("INGOT_PROFILE")) {
    return given;
  }
  if (const char* cache = std::getenv("XDG_CACHE_HOME")) {
    return std::filesystem::path(cache) / "ingot" / "speed.json";
  }
  const char* home = std::getenv("HOME");
  return home == nullptr ? std::filesystem::path()
                         : std::filesystem::path(home) / ".cache" / "ingot" / "speed.json";
}

void remember_speed(const MeasuredSpeed& speed) {
  const std::filesystem::path path = speed_profile();
  if (path.empty()) {
    return;
  }
  std::vector<MeasuredSpeed> all = all_speeds(path);
  std::erase_if(all, [&](const MeasuredSpeed& old) {
    return old.processor == speed.processor && old.dtype == speed.dtype &&
           old.step_flops == speed.step_flops;
  });
  all.push_back(speed);
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const MeasuredSpeed& one : all) {
    out.push_back({{"processor", one.processor},
                   {"dtype", one.dtype},
                   {"parameters", one.parameters},
                   {"step_flops", one.step_flops},
                   {"step_tokens", one.step_tokens},
                   {"step_seconds", one.step_seconds}});
  }
  try {
    make_directories(path.parent_path());
    write_file(path, out.dump(1) + "\n");
  } catch (const Error& error) {
    log_warn("the speed is not kept for `ingot plan`: ", error.what());
  }
}

std::optional<MeasuredSpeed> nearest_speed(const std::string& dtype, int64_t step_flops) {
  std::optional<MeasuredSpeed> best;
  const auto distance = [step_flops](const MeasuredSpeed& speed) {
    return std::abs(std::log(static_cast<double>(speed.step_flops) /
                             static_cast<double>(std::max<int64_t>(1, step_flops))));
  };
  const std::string here = processor_in_use();
  for (const MeasuredSpeed& speed : all_speeds(speed_profile())) {
    if (speed.dtype == dtype && speed.processor == here &&
        (!best || distance(speed) < distance(*best))) {
      best = speed;
    }
  }
  return best;
}

}  // namespace ingot
