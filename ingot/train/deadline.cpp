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

bool is_clock(int hour, int minute, int second) {
  return hour >= 0 && hour < 24 && minute >= 0 && minute < 60 && second >= 0 && second < 60;
}

// Local time; the clock's own changes (summer time) are the system's to know.
double seconds_of(std::tm broken) {
  broken.tm_isdst = -1;
  return static_cast<double>(std::mktime(&broken));
}

}  // namespace

double deadline_of(const std::string& text, double now) {
  if (text == "slurm") {
    return end_of_job(text);
  }
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, used = 0;
  const auto all = [&](int found, int least) {
    return found >= least && text.find_first_not_of("0123456789-:T ") == std::string::npos;
  };
  const bool dated = all(std::sscanf(text.c_str(), "%4d-%2d-%2d%*1[T ]%2d:%2d:%2d", &year, &month,
                                     &day, &hour, &minute, &second),
                         5);
  if (dated) {
    if (month < 1 || month > 12 || day < 1 || day > 31 || !is_clock(hour, minute, second)) {
      refuse(text, "there is no such time");
    }
    std::tm broken{};
    broken.tm_year = year - 1900;
    broken.tm_mon = month - 1;
    broken.tm_mday = day;
    broken.tm_hour = hour;
    broken.tm_min = minute;
    broken.tm_sec = second;
    const double ends = seconds_of(broken);
    if (ends <= now) {
      refuse(text, "that time is over");
    }
    return ends;
  }
  second = 0;
  if (!all(std::sscanf(text.c_str(), "%2d:%2d:%2d%n", &hour, &minute, &second, &used), 2) ||
      !is_clock(hour, minute, second)) {
    refuse(text, "not understood");
  }
  const auto whole = static_cast<std::time_t>(now);
  std::tm broken{};
  ::localtime_r(&whole, &broken);
  broken.tm_hour = hour;
  broken.tm_min = minute;
  broken.tm_sec = second;
  const double today = seconds_of(broken);
  if (today > now) {
    return today;
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
