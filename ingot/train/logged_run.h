#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace ingot {

// What the log of a run says, read without touching it.
struct LoggedPoint {
  int64_t step = 0;
  int64_t tokens = 0;  // so far
  double loss = 0;     // nats a token; NaN where it was not finite
};
struct LoggedRun {
  std::vector<LoggedPoint> steps;
  std::map<std::string, std::vector<LoggedPoint>> held_out;  // by set; "": the run's own
};

// log.jsonl, see RunLog. Lines that are damaged are passed over; empty where there is no file.
LoggedRun read_log(const std::filesystem::path& path);

}  // namespace ingot
