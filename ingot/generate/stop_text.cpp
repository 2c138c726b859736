#include "ingot/generate/stop_text.h"

#include <algorithm>
#include <utility>

namespace ingot {
namespace {

// Characters at the end of `text` that begin `stop`, fewer than all of it.
size_t begun(std::string_view text, std::string_view stop) {
  for (size_t size = std::min(text.size(), stop.size() - 1); size > 0; --size) {
    if (text.ends_with(stop.substr(0, size))) {
      return size;
    }
  }
  return 0;
}

}  // namespace

StopText::StopText(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase_if(stops_, [](const std::string& stop) { return stop.empty(); });
}

std::string StopText::add(std::string_view part) {
  if (!found_.empty()) {
    return "";
  }
  held_ += part;
  size_t first = std::string::npos;
  for (const std::string& stop : stops_) {
    const size_t at = held_.find(stop);
    if (at < first) {
      first = at;
      found_ = stop;
    }
  }
  if (first != std::string::npos) {
    held_.resize(first);
    return std::exchange(held_, "");
  }
  size_t kept = 0;
  for (const std::string& stop : stops_) {
    kept = std::max(kept, begun(held_, stop));
  }
  std::string out = held_.substr(0, held_.size() - kept);
  held_.erase(0, out.size());
  return out;
}

std::string StopText::finish() { return std::exchange(held_, ""); }

}  // namespace ingot
