#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "ingot/train/objective.h"

namespace ingot {

struct Recipe;
struct RunData;
class Session;

// What `kind` of a recipe selects: where batches come from, and what is made of one.
struct RunKind {
  std::string_view name;
  std::string_view help;
  // Opens the recipe's data and completes what the data decides: the vocabulary, the number of
  // steps. What is made for later runs, such as rows as tokens, goes into folders below `cache`.
  RunData (*open)(Recipe& recipe, const std::filesystem::path& cache);
  Objective (*objective)(Session& session);
  int64_t rows = 1;  // of a batch that one sample takes
};

// All kinds, in the order in which they are shown.
const std::vector<RunKind>& run_kinds();
const RunKind& run_kind(std::string_view name);  // must be one of them
std::vector<std::string> run_kind_names();

}  // namespace ingot
