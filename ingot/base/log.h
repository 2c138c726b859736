#pragma once

#include <cstdint>
#include <string_view>

#include "ingot/base/error.h"

namespace ingot {

// Messages for the person at the terminal, on standard error, one line each; the results of a
// program go to standard output instead. Safe from several threads.
enum class LogLevel : uint8_t { debug, info, warn, error, off };

// Messages below `level` are dropped; info at the start. The command line sets it once.
void set_log_level(LogLevel level);
bool logs(LogLevel level);

// One message; where standard error is a terminal it takes the place of a progress bar's line.
void log_line(LogLevel level, std::string_view message);

// log_info("saved ", path, " in ", seconds, " s"): the parts one after the other, formatted only
// when the level is shown.
template <class... Parts>
void log_debug(const Parts&... parts) {
  if (logs(LogLevel::debug)) {
    log_line(LogLevel::debug, concat(parts...));
  }
}
template <class... Parts>
void log_info(const Parts&... parts) {
  if (logs(LogLevel::info)) {
    log_line(LogLevel::info, concat(parts...));
  }
}
template <class... Parts>
void log_warn(const Parts&... parts) {
  if (logs(LogLevel::warn)) {
    log_line(LogLevel::warn, concat(parts...));
  }
}
template <class... Parts>
void log_error(const Parts&... parts) {
  if (logs(LogLevel::error)) {
    log_line(LogLevel::error, concat(parts...));
  }
}

}  // namespace ingot
