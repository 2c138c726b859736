#include "ingot/train/logged_run.h"

#include <limits>
#include <sstream>

#include "ingot/base/files.h"
#include "ingot/base/json_library.h"

namespace ingot {
namespace {

using Json = nlohmann::ordered_json;

double number(const Json& value) {
  return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

LoggedRun read_log(const std::filesystem::path& path) {
  LoggedRun out;
  std::istringstream lines(file_exists(path) ? read_file(path) : "");
  for (std::string text; std::getline(lines, text);) {
    const Json line = Json::parse(text, nullptr, false);
    if (!line.is_object() || !line.contains("step") || !line["step"].is_number_integer()) {
      continue;
    }
    LoggedPoint point{line["step"], out.steps.empty() ? 0 : out.steps.back().tokens, 0};
    if (line.contains("loss")) {
      point.loss = number(line["loss"]);
      point.tokens =
          line.value("tokens", Json(0)).is_number() ? line.value("tokens", int64_t{0}) : 0;
      out.steps.push_back(point);
      continue;
    }
    for (const auto& [key, value] : line.items()) {
      constexpr std::string_view name = "validation_loss";
      if (key.starts_with(name) && (key.size() == name.size() || key[name.size()] == '/')) {
        point.loss = number(value);
        out.held_out[key.size() == name.size() ? "" : key.substr(name.size() + 1)].push_back(point);
      }
    }
  }
  return out;
}

}  // namespace ingot
