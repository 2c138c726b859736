#include "ingot/io/manifest.h"

#include <utility>

#include "ingot/base/error.h"
#include "ingot/base/hash.h"
#include "ingot/base/json.h"
#include "ingot/base/json_library.h"

namespace ingot {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr int64_t version = 1;
// Stands for the hash while it is computed.
constexpr std::string_view no_hash = "00000000000000000000000000000000";

ordered_json json_of(const ManifestFile& file) {
  ordered_json tensors = ordered_json::array();
  for (const ManifestTensor& tensor : file.tensors) {
    tensors.push_back({{"name", tensor.name},
                       {"dtype", name(tensor.dtype)},
                       {"shape", std::vector<int64_t>(tensor.shape.begin(), tensor.shape.end())},
                       {"hash", tensor.hash}});
  }
  return {{"name", file.name},
          {"bytes", file.bytes},
          {"header_hash", file.header_hash},
          {"tensors", std::move(tensors)}};
}

// A list of objects, each read by `read`.
template <class T, class Read>
std::vector<T> list_of(const json& object, const char* key, const std::string& where,
                       const Read& read) {
  check(object.contains(key) && object[key].is_array(), ErrorKind::format, where, ": ", key,
        ": missing key: expected a list");
  std::vector<T> out;
  for (const json& item : object[key]) {
    out.push_back(read(item, where));
  }
  return out;
}

ManifestTensor tensor_of(const json& about, const std::string& where) {
  ManifestTensor tensor;
  tensor.name = json_field<std::string>(about, "name", where);
  const auto type = json_field<std::string>(about, "dtype", where);
  const auto dtype = dtype_named(type);
  check(dtype, ErrorKind::format, where, ": ", tensor.name, ": unknown dtype ", type);
  tensor.dtype = *dtype;
  const auto sizes = json_field<std::vector<int64_t>>(about, "shape", where);
  check(static_cast<int64_t>(sizes.size()) <= Shape::max_rank, ErrorKind::format, where, ": ",
        tensor.name, ": has ", sizes.size(), " dimensions; at most ", Shape::max_rank);
  tensor.shape = Shape(std::span<const int64_t>(sizes));
  tensor.hash = json_field<std::string>(about, "hash", where);
  return tensor;
}

ManifestFile file_of(const json& about, const std::string& where) {
  ManifestFile file;
  file.name = json_field<std::string>(about, "name", where);
  file.bytes = json_field<int64_t>(about, "bytes", where);
  file.header_hash = json_field<std::string>(about, "header_hash", where);
  file.tensors = list_of<ManifestTensor>(about, "tensors", where, tensor_of);
  return file;
}

void check_own_hash(std::string_view text, const std::string& stored, const std::string& file) {
  std::string bare(text);
  const size_t at = bare.rfind(stored);
  if (at != std::string::npos && stored.size() == no_hash.size()) {
    bare.replace(at, stored.size(), no_hash);
  }
  const std::string found = hash_hex(bare);
  check(found == stored, ErrorKind::format, file, ": hash differs: expected ", stored, ", found ",
        found, "; the manifest is damaged, use an older checkpoint");
}

}  // namespace

std::string manifest_text(const Manifest& manifest) {
  ordered_json files = ordered_json::array();
  for (const ManifestFile& file : manifest.files) {
    files.push_back(json_of(file));
  }
  ordered_json root = {{"format", version}, {"step", manifest.step}};
  root["state"] = ordered_json::parse(manifest.state, nullptr, false);
  check(!root["state"].is_discarded(), ErrorKind::argument,
        "manifest: the state is not valid JSON");
  root["recipe"] = manifest.recipe;
  root["files"] = std::move(files);
  root["hash"] = no_hash;
  std::string text = root.dump(1) + "\n";
  text.replace(text.rfind(no_hash), no_hash.size(), hash_hex(text));
  return text;
}

Manifest parse_manifest(std::string_view text, const std::string& file) {
  const json root = parse_json(text, file);
  const auto format = json_field<int64_t>(root, "format", file);
  check(format == version, ErrorKind::format, file, ": unknown format version: this Ingot reads ",
        version, ", the checkpoint has ", format, "; use the Ingot that wrote it");
  check_own_hash(text, json_field<std::string>(root, "hash", file), file);
  Manifest manifest;
  manifest.step = json_field<int64_t>(root, "step", file);
  check(root.contains("state"), ErrorKind::format, file, ": state: missing key");
  manifest.state = root["state"].dump();
  manifest.recipe = json_field<std::string>(root, "recipe", file);
  manifest.files = list_of<ManifestFile>(root, "files", file, file_of);
  return manifest;
}

}  // namespace ingot
