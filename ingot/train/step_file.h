#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace ingot {

// A file of JSON objects, one a line, each with a `step`, that a run appends to.
class StepFile {
 public:
  using Kept = std::function<void(int64_t step, const nlohmann::ordered_json& line)>;

  // Opens for appending. Lines of steps after `from_step` (written after the checkpoint that a
  // resumed run continues from), a last line cut short by a kill, and whatever else is no such line
  // are removed first; `kept` is called for each of the others.
  StepFile(std::filesystem::path path, int64_t from_step, const Kept& kept);

  void write(const nlohmann::ordered_json& line);
  // Removes the lines of steps after `step`, as if opened anew.
  void rewind(int64_t step, const Kept& kept);

 private:
  std::filesystem::path path_;
  std::ofstream file_;
};

// A number as a log spells it: one that is not finite as a string, never as a number.
nlohmann::ordered_json json_number(double value);

}  // namespace ingot
