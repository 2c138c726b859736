#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace ingot {

// Where two runs part, by the hashes in their checkpoints' manifests.
struct Bisection {
  std::vector<int64_t> steps;  // that both have saved
  std::optional<int64_t> last_same;
  std::optional<int64_t> first_differing;
  std::vector<std::string> tensors;  // that differ there, "optimizer: adamw.m/embedding.weight"
};

// Searches by halves: about log₂ of the number of checkpoints are read. Throws Error(io) where one
// of them is no run, Error(argument) where no step is saved in both.
Bisection bisect_runs(const std::filesystem::path& a, const std::filesystem::path& b);

// Prints it, at most `count` tensors, 0: all. Whether the runs are the same.
bool print_bisection(const Bisection& found, bool json, int64_t count);

}  // namespace ingot
