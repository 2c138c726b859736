#include "ingot/io/checkpoint_part.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "ingot/base/error.h"
#include "ingot/base/files.h"
#include "ingot/base/hash.h"
#include "ingot/io/safetensors.h"
#include "ingot/tensor/copy.h"

namespace ingot {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view extension = ".safetensors";
constexpr int64_t worth_a_file = int64_t{64} << 10;

using Hashes = std::map<std::string, std::string>;

std::string hash_of(const Tensor& x) {
  const Tensor whole = dense(x);
  return hash_hex(std::span(static_cast<const std::byte*>(whole.view().data),
                            static_cast<size_t>(whole.bytes())));
}

// Hashes are taken of memory, not of what was written: damage on the way to the disk counts too.
ManifestFile written_file(const fs::path& path, const TensorDict& tensors, const Hashes& hashes) {
  write_safetensors(path, tensors);
  const SafetensorsFile written(path);
  ManifestFile file{path.filename().string(),
                    static_cast<int64_t>(fs::file_size(path)),
                    hash_hex(written.header_bytes()),
                    {}};
  for (const SafetensorsEntry& entry : written.entries()) {
    file.tensors.push_back({entry.name, entry.dtype, entry.shape, hashes.at(entry.name)});
  }
  return file;
}

bool is_same(const ManifestTensor& tensor, const TensorDict& tensors, const Hashes& hashes) {
  return tensors.contains(tensor.name) && hashes.at(tensor.name) == tensor.hash &&
         tensors.at(tensor.name).dtype() == tensor.dtype &&
         tensors.at(tensor.name).shape() == tensor.shape;
}

// Links a file of an earlier checkpoint; false where it is damaged or the disk has no links.
bool linked(const ManifestFile& file, const fs::path& from, const fs::path& to) {
  try {
    verified_file(from, file);
  } catch (const Error&) {
    return false;
  }
  std::error_code failed;
  fs::create_hard_link(from, to, failed);
  return !failed;
}

// "name.safetensors", or with a number where a linked file has that name.
std::string free_name(const fs::path& folder, const std::string& name) {
  std::string out = name + std::string(extension);
  for (int n = 2; file_exists(folder / out); ++n) {
    out = fmt::format("{}.{}{}", name, n, extension);
  }
  return out;
}

void check_hash(std::span<const std::byte> bytes, const std::string& expected,
                const std::string& subject) {
  const std::string found = hash_hex(bytes);
  check(found == expected, ErrorKind::format, subject, ": hash differs: expected ", expected,
        ", found ", found, "; the file is damaged, use an older checkpoint");
}

}  // namespace

std::vector<ManifestFile> write_part(const fs::path& folder, const std::string& name,
                                     const TensorDict& tensors, int64_t step,
                                     const std::optional<EarlierCheckpoint>& earlier) {
  Hashes hashes;
  for (const auto& [path, tensor] : tensors) {
    hashes[path] = hash_of(tensor);
  }
  std::vector<ManifestFile> files;
  std::set<std::string> done, unchanged;
  if (earlier) {
    for (const ManifestFile& file : earlier->manifest.files) {
      if (part_of_file(file.name, earlier->path.string()) != name) {
        continue;
      }
      std::vector<std::string> same;
      for (const ManifestTensor& tensor : file.tensors) {
        if (is_same(tensor, tensors, hashes)) {
          same.push_back(tensor.name);
        }
      }
      const bool whole = !same.empty() && same.size() == file.tensors.size();
      if (whole && linked(file, earlier->path / file.name, folder / file.name)) {
        files.push_back(file);
        done.insert(same.begin(), same.end());
      } else {
        unchanged.insert(same.begin(), same.end());
      }
    }
  }
  TensorDict kept, rest;
  for (const auto& [path, tensor] : tensors) {
    if (!done.contains(path)) {
      (unchanged.contains(path) ? kept : rest).add(path, tensor);
    }
  }
  const auto write = [&](const std::string& file, const TensorDict& some) {
    files.push_back(written_file(folder / file, some, hashes));
  };
  if (rest.size() > 0 && kept.bytes() >= worth_a_file) {
    write(free_name(folder, fmt::format("{}.since-{:08}", name, step)), kept);
    kept = {};
  }
  rest.merge(kept);
  if (rest.size() > 0 || files.empty()) {
    write(free_name(folder, name), rest);
  }
  return files;
}

std::string part_of_file(const std::string& file, const std::string& manifest) {
  const size_t end = file.find('.');
  check(file.ends_with(extension) && end > 0 && file.find('/') == std::string::npos,
        ErrorKind::format, manifest, ": ", file, ": no name of a part");
  return file.substr(0, end);
}

TensorDict verified_file(const fs::path& path, const ManifestFile& expected) {
  const std::string name = path.string();
  const MappedFile whole(path);
  const auto found = static_cast<int64_t>(whole.bytes().size());
  check(found == expected.bytes, ErrorKind::format, name,
        found < expected.bytes ? ": truncated" : ": longer than it was written", ": expected ",
        expected.bytes, " bytes, found ", found, "; use an older checkpoint");
  const SafetensorsFile file(path);
  check_hash(file.header_bytes(), expected.header_hash, name + ": header");
  check(file.entries().size() == expected.tensors.size(), ErrorKind::format, name,
        ": the manifest names ", expected.tensors.size(), " tensors, the file holds ",
        file.entries().size());
  for (const ManifestTensor& tensor : expected.tensors) {
    const SafetensorsEntry& entry = file.entry(tensor.name);
    check(entry.dtype == tensor.dtype && entry.shape == tensor.shape, ErrorKind::format, name, ": ",
          tensor.name, ": differs from the manifest: expected ", tensor.dtype, " ", tensor.shape,
          ", found ", entry.dtype, " ", entry.shape);
    check_hash(file.bytes(entry), tensor.hash, name + ": " + tensor.name);
  }
  return file.tensors();
}

}  // namespace ingot
