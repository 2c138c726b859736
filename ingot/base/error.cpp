#include "ingot/base/error.h"

namespace ingot {

std::string_view name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::argument: return "argument";
    case ErrorKind::shape: return "shape";
    case ErrorKind::dtype: return "dtype";
    case ErrorKind::device: return "device";
    case ErrorKind::io: return "io";
    case ErrorKind::format: return "format";
    case ErrorKind::config: return "config";
    case ErrorKind::comm: return "comm";
    case ErrorKind::numeric: return "numeric";
    case ErrorKind::internal: return "internal";
  }
  return "unknown";
}

Error::Error(ErrorKind kind, const std::string& message, std::source_location where)
    : std::runtime_error(message), kind_(kind), where_(where), message_(message) {}

Error& Error::within(std::string_view context) {
  message_.append(" (").append(context).append(")");
  return *this;
}

}  // namespace ingot
