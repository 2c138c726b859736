#include "ingot/train/step_file.h"

#include <cmath>
#include <optional>
#include <sstream>
#include <utility>

#include "ingot/base/error.h"
#include "ingot/base/files.h"
#include "ingot/base/json_library.h"

namespace ingot {
namespace {

using Json = nlohmann::ordered_json;

// The step of a line; absent where it is none that such a file has.
std::optional<int64_t> step_of(const Json& line) {
  const bool usable = line.is_object() && line.contains("step") && line["step"].is_number_integer();
  return usable ? std::optional(line["step"].get<int64_t>()) : std::nullopt;
}

}  // namespace

StepFile::StepFile(std::filesystem::path path, int64_t from_step, const Kept& kept)
    : path_(std::move(path)) {
  rewind(from_step, kept);
}

void StepFile::rewind(int64_t from_step, const Kept& kept) {
  if (file_.is_open()) {
    file_.close();
  }
  std::string left;
  if (std::filesystem::exists(path_)) {
    std::istringstream lines(read_file(path_));
    for (std::string text; std::getline(lines, text);) {
      const Json line = Json::parse(text, nullptr, false);
      const std::optional<int64_t> step = step_of(line);
      if (step && *step <= from_step) {
        left += text + "\n";
        kept(*step, line);
      }
    }
  }
  write_file(path_, left);
  file_.open(path_, std::ios::app);
  check(file_.good(), ErrorKind::io, path_.string(), ": cannot be opened for appending");
}

void StepFile::write(const Json& line) {
  file_ << line.dump() << '\n' << std::flush;
  check(file_.good(), ErrorKind::io, path_.string(),
        ": a line could not be written; is the disk full?");
}

Json json_number(double value) {
  if (std::isfinite(value)) {
    return value;
  }
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

}  // namespace ingot
