#include "ingot/base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <memory>

namespace ingot {
namespace {

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::debug: return spdlog::level::debug;
    case LogLevel::info: return spdlog::level::info;
    case LogLevel::warn: return spdlog::level::warn;
    case LogLevel::error: return spdlog::level::err;
    case LogLevel::off: return spdlog::level::off;
  }
  return spdlog::level::info;
}

// Plain information needs no label; everything else says what it is. On a terminal a line begins by
// wiping what a progress bar may have left in it.
std::shared_ptr<spdlog::logger> make_logger() {
  auto logger = std::make_shared<spdlog::logger>(
      "ingot", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  logger->set_pattern(::isatty(STDERR_FILENO) == 1 ? "\r\033[K%v" : "%v");
  logger->flush_on(spdlog::level::trace);
  return logger;
}

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> one = make_logger();
  return *one;
}

std::string_view label(LogLevel level) {
  switch (level) {
    case LogLevel::debug: return "debug: ";
    case LogLevel::warn: return "warning: ";
    case LogLevel::error: return "error: ";
    default: return "";
  }
}

}  // namespace

void set_log_level(LogLevel level) { logger().set_level(spdlog_level(level)); }

bool logs(LogLevel level) {
  return level != LogLevel::off && logger().should_log(spdlog_level(level));
}

void log_line(LogLevel level, std::string_view message) {
  logger().log(spdlog_level(level), "{}{}", label(level), message);
}

}  // namespace ingot
