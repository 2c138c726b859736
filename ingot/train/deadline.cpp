#include "ingot/train/deadline.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "ingot/base/error.h"

namespace ingot {
namespace {

constexpr double spare_share = 0.02;

[[noreturn]] void refuse(const std::string& text, const std::string& why) {
  throw Error(ErrorKind::config, concat("train.until: ", why, ": got \"", text,
                                        "\"; write \"06:00\", \"2026-12-01 06:00\" or \"slurm\""));
}

double end_of_job(const std::string& text) {
  const char* ends = std::getenv("SLURM_JOB_END_TIME");
  if (ends == nullptr) {
    refuse(text, "there is no SLURM_JOB_END_TIME, so this is no Slurm job with an end");
  }
  char* rest = nullptr;
  const double seconds = std::strtod(ends, &rest);
  check(rest != ends && *rest == '\0' && seconds > 0, ErrorKind::config,
        "train.until: SLURM_JOB_END_TIME is no time in seconds: got \"", ends, "\"");
  return seconds;
}

// The text with a 0 for each digit, and a space for the T between a date and a clock.
std::string shape_of(std::string text) {
  for (char& c : text) {
    c = c >= '0' && c <= '9' ? '0' : c;
  }
  if (text.size() > 10 && text[10] == 'T') {
    text[10] = ' ';
  }
  return text;
}

// Local time; the clock's own changes (summer time) are the system's to know.
double seconds_of(std::tm broken) {
  broken.tm_isdst = -1;
  return static_cast<double>(std::mktime(&broken));
}

// Whether the calendar has that day and the clock that time.
bool exists(const std::tm& broken) {
  std::tm normal = broken;
  normal.tm_hour = 12;  // every day has it
  normal.tm_isdst = -1;
  std::mktime(&normal);
  return normal.tm_mon == broken.tm_mon && normal.tm_mday == broken.tm_mday &&
         broken.tm_hour < 24 && broken.tm_min < 60 && broken.tm_sec < 60;
}

}  // namespace

double deadline_of(const std::string& text, double now) {
  if (text == "slurm") {
    return end_of_job(text);
  }
  const std::string shape = shape_of(text);
  const bool dated = shape == "0000-00-00 00:00" || shape == "0000-00-00 00:00:00";
  if (!dated && shape != "0:00" && shape != "00:00" && shape != "00:00:00") {
    refuse(text, "not understood");
  }
  std::tm broken{};
  if (!dated) {
    const auto whole = static_cast<std::time_t>(now);
    ::localtime_r(&whole, &broken);
    broken.tm_sec = 0;
    std::sscanf(text.c_str(), "%d:%d:%d", &broken.tm_hour, &broken.tm_min, &broken.tm_sec);
  } else {
    std::sscanf(text.c_str(), "%d-%d-%d%*c%d:%d:%d", &broken.tm_year, &broken.tm_mon,
                &broken.tm_mday, &broken.tm_hour, &broken.tm_min, &broken.tm_sec);
    broken.tm_year -= 1900;
    broken.tm_mon -= 1;
  }
  if (!exists(broken)) {
    refuse(text, "there is no such time");
  }
  const double ends = seconds_of(broken);
  if (ends > now) {
    return ends;
  }
  if (dated) {
    refuse(text, "that time is over");
  }
  ++broken.tm_mday;
  return seconds_of(broken);
}

int64_t decay_steps(const WsdSchedule& schedule, int64_t step) {
  if (schedule.decay > 0) {
    return schedule.decay;
  }
  const double share = std::min(schedule.decay_fraction, 0.99);
  return std::max<int64_t>(1, std::llround(static_cast<double>(step) * share / (1 - share)));
}

bool Deadline::due(int64_t step, double now, int64_t decay) {
  if (step == first_) {
    began_ = last_ = now;
    return ends_ <= now;
  }
  longest_ = std::max(longest_, now - last_);
  last_ = now;
  const double step_seconds = (now - began_) / static_cast<double>(step - first_);
  const double needed = static_cast<double>(decay) * step_seconds + longest_ +
                        spare_share * std::max(0.0, ends_ - began_);
  return ends_ - now <= needed;
}

}  // namespace ingot
