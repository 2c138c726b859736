#include "ingot/cli/serve_metrics.h"

#include <fmt/format.h>

namespace ingot {
namespace {

std::string one_value(const char* name, const char* type, const char* help, int64_t value) {
  return fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n{0} {3}\n", name, type, help, value);
}

}  // namespace

void Metrics::Histogram::add(double value) {
  for (size_t i = 0; i < bounds.size(); ++i) {
    below[i] += value <= bounds[i] ? 1 : 0;
  }
  ++count;
  sum += value;
}

std::string Metrics::Histogram::text(const std::string& name, const std::string& help) const {
  std::string out = fmt::format("# HELP {0} {1}\n# TYPE {0} histogram\n", name, help);
  for (size_t i = 0; i < bounds.size(); ++i) {
    out += fmt::format("{}_bucket{{le=\"{}\"}} {}\n", name, bounds[i], below[i]);
  }
  return out + fmt::format("{0}_bucket{{le=\"+Inf\"}} {1}\n{0}_sum {2}\n{0}_count {1}\n", name,
                           count, sum);
}

void Metrics::count_request(const std::string& endpoint, int status) {
  const std::lock_guard lock(mutex_);
  ++requests_[{endpoint, status}];
}

void Metrics::observe_seconds(double seconds) {
  const std::lock_guard lock(mutex_);
  seconds_.add(seconds);
}

void Metrics::observe_first_token(double seconds) {
  const std::lock_guard lock(mutex_);
  first_token_.add(seconds);
}

std::string Metrics::text(const Engine::Figures& engine) const {
  const std::lock_guard lock(mutex_);
  std::string out =
      "# HELP ingot_requests_total Requests answered, by endpoint and status.\n"
      "# TYPE ingot_requests_total counter\n";
  for (const auto& [key, count] : requests_) {
    out += fmt::format("ingot_requests_total{{endpoint=\"{}\",status=\"{}\"}} {}\n", key.first,
                       key.second, count);
  }
  out +=
      one_value("ingot_requests_running", "gauge", "Texts that are being written.", engine.running);
  out += one_value("ingot_requests_waiting", "gauge", "Texts that wait for their turn.",
                   engine.waiting);
  out += one_value("ingot_prompt_tokens_total", "counter", "Tokens of prompts that were read.",
                   engine.tokens_read);
  out += one_value("ingot_prompt_tokens_shared_total", "counter",
                   "Tokens of prompts that an earlier request had read.", engine.tokens_shared);
  out += one_value("ingot_generated_tokens_total", "counter", "Tokens written.",
                   engine.tokens_written);
  out += one_value("ingot_cache_pages_used", "gauge", "Pages of keys and values in use.",
                   engine.pages_used);
  out += one_value("ingot_cache_pages", "gauge", "Pages that there are.", engine.pages);
  out +=
      one_value("ingot_cache_bytes", "gauge", "Bytes that these pages take.", engine.cache_bytes);
  out += first_token_.text("ingot_first_token_seconds", "From a request to its first token.");
  out += seconds_.text("ingot_request_seconds", "From a request to the end of its answer.");
  return out;
}

}  // namespace ingot
