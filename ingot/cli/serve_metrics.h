#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "ingot/cli/serve_engine.h"

namespace ingot {

// What a server counts, in the text format of Prometheus (version 0.0.4). From any threads.
class Metrics {
 public:
  void count_request(const std::string& endpoint, int status);
  void observe_seconds(double seconds);      // of a whole request that was answered
  void observe_first_token(double seconds);  // from the request to its first token

  std::string text(const Engine::Figures& engine) const;

 private:
  // How many values lie at or below each bound.
  struct Histogram {
    static constexpr std::array<double, 12> bounds = {0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
                                                      1,    2.5,   5,    10,  30,   120};
    std::array<int64_t, bounds.size()> below{};
    int64_t count = 0;
    double sum = 0;
    void add(double value);
    std::string text(const std::string& name, const std::string& help) const;
  };

  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, int64_t> requests_;
  Histogram seconds_, first_token_;
};

}  // namespace ingot
