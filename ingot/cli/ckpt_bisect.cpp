#include "ingot/cli/ckpt_bisect.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <optional>

#include "ingot/base/error.h"
#include "ingot/base/files.h"
#include "ingot/base/json_library.h"
#include "ingot/io/checkpoint.h"

namespace ingot {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

fs::path checkpoints_of(const fs::path& run) {
  const fs::path below = is_folder(run / "checkpoints") ? run / "checkpoints" : run;
  check(!checkpoint_steps(below).empty(), ErrorKind::io, run.string(),
        ": no checkpoints in it; give the folder of a run");
  return below;
}

std::map<std::string, std::string> hashes_of(const fs::path& checkpoint) {
  std::map<std::string, std::string> out;
  for (const ManifestFile& file : read_manifest(checkpoint).files) {
    for (const ManifestTensor& tensor : file.tensors) {
      out[file.name.substr(0, file.name.find('.')) + ": " + tensor.name] = tensor.hash;
    }
  }
  return out;
}

// Tensors that differ, or that only one has.
std::vector<std::string> differing(const fs::path& a, const fs::path& b) {
  const auto of_a = hashes_of(a);
  const auto of_b = hashes_of(b);
  std::vector<std::string> out;
  for (const auto& [name, hash] : of_a) {
    const auto at = of_b.find(name);
    if (at == of_b.end() || at->second != hash) {
      out.push_back(name);
    }
  }
  for (const auto& [name, hash] : of_b) {
    if (!of_a.contains(name)) {
      out.push_back(name);
    }
  }
  return out;
}

}  // namespace

Bisection bisect_runs(const fs::path& a, const fs::path& b) {
  const fs::path in_a = checkpoints_of(a);
  const fs::path in_b = checkpoints_of(b);
  const std::vector<int64_t> steps_a = checkpoint_steps(in_a);
  const std::vector<int64_t> steps_b = checkpoint_steps(in_b);
  Bisection out;
  std::set_intersection(steps_a.begin(), steps_a.end(), steps_b.begin(), steps_b.end(),
                        std::back_inserter(out.steps));
  check(!out.steps.empty(), ErrorKind::argument, "bisect: no step is saved in both: ", a.string(),
        " has ", steps_a.front(), " to ", steps_a.back(), ", ", b.string(), " ", steps_b.front(),
        " to ", steps_b.back());
  const auto differing_at = [&](int64_t step) {
    return differing(checkpoint_path(in_a, step), checkpoint_path(in_b, step));
  };
  // Runs that differ once differ ever after: search by halves.
  size_t low = 0;
  size_t high = out.steps.size();
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (differing_at(out.steps[middle]).empty()) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low > 0) {
    out.last_same = out.steps[low - 1];
  }
  if (low < out.steps.size()) {
    out.first_differing = out.steps[low];
    out.tensors = differing_at(out.steps[low]);
  }
  return out;
}

bool print_bisection(const Bisection& found, bool json, int64_t count) {
  if (json) {
    Json out;
    out["steps"] = found.steps;
    out["last_same"] = found.last_same ? Json(*found.last_same) : Json(nullptr);
    out["first_differing"] = found.first_differing ? Json(*found.first_differing) : Json(nullptr);
    out["tensors"] = found.tensors;
    std::cout << out.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
    return !found.first_differing;
  }
  if (!found.first_differing) {
    std::cout << "the same, bit for bit, at all " << found.steps.size()
              << " steps that both have saved\n";
    return true;
  }
  std::cout << "first differing checkpoint: step " << *found.first_differing
            << (found.last_same ? concat("; the same at step ", *found.last_same)
                                : std::string("; it is the first that both have saved"))
            << '\n';
  const auto shown = count == 0 ? found.tensors.size()
                                : std::min(found.tensors.size(), static_cast<size_t>(count));
  for (size_t i = 0; i < shown; ++i) {
    std::cout << "  " << found.tensors[i] << '\n';
  }
  if (shown < found.tensors.size()) {
    std::cout << "  … of " << found.tensors.size() << "; --count 0 shows all\n";
  }
  return false;
}

}  // namespace ingot
