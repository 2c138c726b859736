#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ingot/io/manifest.h"
#include "ingot/tensor/tensor_dict.h"

namespace ingot {

// Checkpoints that are whole or absent. Below a folder of the run,
//   step-00002000/            a complete checkpoint
//     parameters.safetensors  one file per part, more where tensors rest (checkpoint_part.h)
//     optimizer.safetensors
//     manifest.json           sizes and hashes of all that, the train state, the recipe; written
//     last
//   step-00002001.tmp/        one being written, or left by a process that was killed
// A checkpoint is written below its .tmp name, flushed to the disk, and renamed; so whatever
// happens, every step-N folder is complete, and the one before is untouched until then.

struct Checkpoint {
  int64_t step = 0;
  std::vector<std::pair<std::string, TensorDict>>
      parts;                 // file name without .safetensors → tensors
  std::string state = "{}";  // JSON, opaque here
  std::string recipe;        // TOML, opaque here

  // Throws Error(format) naming the parts there are.
  const TensorDict& part(std::string_view name) const;
};

// folder/step-00002000
std::filesystem::path checkpoint_path(const std::filesystem::path& folder, int64_t step);

// Bytes that saving takes, the manifest estimated from above.
int64_t checkpoint_bytes(const Checkpoint& checkpoint);

// Throws Error(io) unless `bytes` more fit on the disk of `folder`.
void check_free_space(const std::filesystem::path& folder, int64_t bytes);

// Writes folder/step-N, in place of one of that step that may be there. Throws Error(io) where
// space, rights or the disk fail; then nothing of the new checkpoint remains, and the old ones are
// untouched.
void save_checkpoint(const std::filesystem::path& folder, const Checkpoint& checkpoint);

// Reads one checkpoint folder (…/step-00002000) and verifies every byte of it. The tensors are
// mapped from the files, read only. Throws Error(io) where a file is missing or cannot be read,
// Error(format) where one is truncated or damaged; both name file and tensor.
Checkpoint read_checkpoint(const std::filesystem::path& path);

// What a checkpoint says of itself, its files unread. Throws Error(io) where there is no manifest,
// Error(format) where it is damaged.
Manifest read_manifest(const std::filesystem::path& path);

// The newest checkpoint below `folder` that verifies; and one line for each newer that does not,
// with the reason. `folder` may be absent.
struct Latest {
  std::optional<std::filesystem::path> path;
  std::vector<std::string> skipped;
};
Latest latest_checkpoint(const std::filesystem::path& folder);

// The steps of the checkpoints below `folder`, ascending.
std::vector<int64_t> checkpoint_steps(const std::filesystem::path& folder);

// Removes all but the `count` newest checkpoints below `folder`, and those whose step `kept` says
// is to stay; count ≥ 1.
void keep_last(const std::filesystem::path& folder, int64_t count,
               const std::function<bool(int64_t step)>& kept = nullptr);

// Removes what killed processes left below `folder`, and returns the names. Only one process may
// use the folder.
std::vector<std::string> remove_leftovers(const std::filesystem::path& folder);

}  // namespace ingot
