#include "ingot/io/checkpoint.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "ingot/base/error.h"
#include "ingot/base/files.h"
#include "ingot/base/text_size.h"
#include "ingot/io/checkpoint_part.h"
#include "ingot/io/safetensors.h"

namespace ingot {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view prefix = "step-";
constexpr std::string_view temporary_suffix = ".tmp";
constexpr std::string_view manifest_name = "manifest.json";

std::string step_name(int64_t step) { return fmt::format("{}{:08}", prefix, step); }

fs::path temporary_path(const fs::path& folder, int64_t step) {
  return checkpoint_path(folder, step).string() + std::string(temporary_suffix);
}

// 2000 for "step-00002000"; absent for every other name.
std::optional<int64_t> step_of(std::string_view name) {
  int64_t step = 0;
  const std::string_view digits = name.substr(std::min(prefix.size(), name.size()));
  const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  const bool is_step = end.ec == std::errc() && step >= 0 && name == step_name(step);
  return is_step ? std::optional<int64_t>(step) : std::nullopt;
}

// Puts a finished folder in its place. Where one of that step exists the two swap names in one go,
// so that at every moment a complete one has the final name.
void publish(const fs::path& temporary, const fs::path& path) {
  if (file_exists(path)) {
    const int swapped =
        ::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE);
    if (swapped == 0) {
      sync_folder(path.parent_path());
      remove_tree(temporary);
      return;
    }
    remove_tree(path);  // a file system that cannot swap: the checkpoints of other steps remain
  }
  rename_path(temporary, path);
}

// The newest checkpoint below `folder` whose manifest can be read: what a new one may share files
// with.
std::optional<EarlierCheckpoint> earlier_checkpoint(const fs::path& folder) {
  const std::vector<int64_t> steps = checkpoint_steps(folder);
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const fs::path path = checkpoint_path(folder, *step);
    try {
      return EarlierCheckpoint{path, read_manifest(path)};
    } catch (const Error&) {
      continue;  // damaged: there is nothing to share, and resuming will say so
    }
  }
  return std::nullopt;
}

void write_below(const fs::path& temporary, const Checkpoint& checkpoint) {
  const auto earlier = earlier_checkpoint(temporary.parent_path());
  Manifest manifest{checkpoint.step, {}, checkpoint.state, checkpoint.recipe};
  for (const auto& [name, tensors] : checkpoint.parts) {
    for (ManifestFile& file : write_part(temporary, name, tensors, checkpoint.step, earlier)) {
      manifest.files.push_back(std::move(file));
    }
  }
  write_file(temporary / manifest_name, manifest_text(manifest));
}

}  // namespace

const TensorDict& Checkpoint::part(std::string_view name) const {
  std::string names;
  for (const auto& [known, tensors] : parts) {
    if (known == name) {
      return tensors;
    }
    names += (names.empty() ? "" : ", ") + known;
  }
  throw Error(ErrorKind::format, concat("checkpoint of step ", step, ": no part ", name,
                                        ": it has ", names.empty() ? "none" : names));
}

fs::path checkpoint_path(const fs::path& folder, int64_t step) { return folder / step_name(step); }

int64_t checkpoint_bytes(const Checkpoint& checkpoint) {
  constexpr int64_t manifest_entry = 256;  // a tensor's line without its name
  auto total =
      static_cast<int64_t>(2 * (checkpoint.state.size() + checkpoint.recipe.size())) + 4096;
  for (const auto& [part, tensors] : checkpoint.parts) {
    total += safetensors_bytes(tensors);
    for (const auto& [name, tensor] : tensors) {
      total += manifest_entry + static_cast<int64_t>(2 * name.size());
    }
  }
  return total;
}

void check_free_space(const fs::path& folder, int64_t bytes) {
  const int64_t free = free_bytes(folder);
  check(bytes <= free, ErrorKind::io, folder.string(),
        ": not enough space for checkpoints: they take ", text_bytes(bytes), ", free are ",
        text_bytes(free), "; free some space, keep fewer of them, or choose another folder");
}

void save_checkpoint(const fs::path& folder, const Checkpoint& checkpoint) {
  check(checkpoint.step >= 0, ErrorKind::argument, "checkpoint: negative step: ", checkpoint.step);
  make_directories(folder);
  const fs::path temporary = temporary_path(folder, checkpoint.step);
  remove_tree(temporary);
  check_free_space(folder, checkpoint_bytes(checkpoint));
  try {
    make_directories(temporary);
    write_below(temporary, checkpoint);
    publish(temporary, checkpoint_path(folder, checkpoint.step));
  } catch (Error& error) {
    std::error_code ignored;  // the first failure is the one to report
    fs::remove_all(temporary, ignored);
    error.within(concat("while saving the checkpoint of step ", checkpoint.step));
    throw;
  }
}

Manifest read_manifest(const fs::path& path) {
  const fs::path manifest_path = path / manifest_name;
  check(file_exists(manifest_path), ErrorKind::io, path.string(),
        ": not a complete checkpoint: no ", manifest_name, " in it; use another one");
  return parse_manifest(read_file(manifest_path), manifest_path.string());
}

Checkpoint read_checkpoint(const fs::path& path) {
  const Manifest manifest = read_manifest(path);
  Checkpoint checkpoint{manifest.step, {}, manifest.state, manifest.recipe};
  for (const ManifestFile& file : manifest.files) {
    const std::string part = part_of_file(file.name, (path / manifest_name).string());
    const TensorDict tensors = verified_file(path / file.name, file);
    const auto at = std::find_if(checkpoint.parts.begin(), checkpoint.parts.end(),
                                 [&](const auto& known) { return known.first == part; });
    if (at == checkpoint.parts.end()) {
      checkpoint.parts.emplace_back(part, tensors);
    } else {
      at->second.merge(tensors);
    }
  }
  return checkpoint;
}

std::vector<int64_t> checkpoint_steps(const fs::path& folder) {
  std::vector<int64_t> steps;
  if (file_exists(folder)) {
    for (const std::string& name : list_folder(folder)) {
      if (const std::optional<int64_t> step = step_of(name)) {
        steps.push_back(*step);
      }
    }
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

Latest latest_checkpoint(const fs::path& folder) {
  Latest latest;
  std::vector<int64_t> steps = checkpoint_steps(folder);
  for (auto step = steps.rbegin(); step != steps.rend() && !latest.path; ++step) {
    const fs::path path = checkpoint_path(folder, *step);
    try {
      read_checkpoint(path);
      latest.path = path;
    } catch (const Error& error) {
      latest.skipped.emplace_back(error.what());
    }
  }
  return latest;
}

void keep_last(const fs::path& folder, int64_t count, const std::function<bool(int64_t)>& kept) {
  check(count >= 1, ErrorKind::argument, "keep_last: must keep at least one checkpoint: got ",
        count);
  const std::vector<int64_t> steps = checkpoint_steps(folder);
  for (size_t i = 0; i + static_cast<size_t>(count) < steps.size(); ++i) {
    if (kept && kept(steps[i])) {
      continue;
    }
    // Renamed first: one that is removed by half must not look like a complete one.
    const fs::path temporary = temporary_path(folder, steps[i]);
    remove_tree(temporary);
    rename_path(checkpoint_path(folder, steps[i]), temporary);
    remove_tree(temporary);
  }
}

std::vector<std::string> remove_leftovers(const fs::path& folder) {
  std::vector<std::string> removed;
  if (!file_exists(folder)) {
    return removed;
  }
  for (const std::string& name : list_folder(folder)) {
    if (name.ends_with(temporary_suffix) &&
        step_of(std::string_view(name).substr(0, name.size() - temporary_suffix.size()))) {
      remove_tree(folder / name);
      removed.push_back(name);
    }
  }
  return removed;
}

}  // namespace ingot
