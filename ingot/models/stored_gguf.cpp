
#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "ingot/io/release.h"
#include "ingot/models/architecture.h"
#include "ingot/models/gguf_rows.h"
#include "ingot/models/gguf_texts.h"
#include "ingot/models/stored_model.h"

// Models in GGUF files.
namespace ingot {
namespace {

// What is asked for if nothing else is: the type of the largest tensor where it is a plain one, f32
// where the weights are blocks (which f32 holds exactly).
DType plain_type(const GgufFile& file) {
  const GgufTensor* largest = nullptr;
  for (const GgufTensor& one : file.tensors()) {
    if (largest == nullptr || one.end - one.begin > largest->end - largest->begin) {
      largest = &one;
    }
  }
  if (largest == nullptr) {
    return DType::f32;
  }
  return largest->type == GgmlType::bf16  ? DType::bf16
         : largest->type == GgmlType::f16 ? DType::f16
                                          : DType::f32;
}

// The config.json that the file was made from, if it still says what the file's own keys say.
std::optional<nlohmann::json> kept_config(const GgufFile& file,
                                          const GgufArchitecture& architecture) {
  if (!file.metadata().contains(gguf_config_key)) {
    return std::nullopt;
  }
  const std::string text = file.metadata().text(gguf_config_key, file.name());
  nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || json.value("model_type", nlohmann::json()) != architecture.model_type) {
    return std::nullopt;
  }
  GgufMetadata expected;
  const auto& published = architecture_named(architecture.model_type);
  architecture.write(published.read(json, file.name()), expected);
  for (const auto& [key, value] : expected) {
    const GgufValue* there = file.metadata().find(key);
    if (there == nullptr || *there != value) {
      return std::nullopt;
    }
  }
  return json;
}

// Of several rows of the table with one name, the one whose published configuration the file keeps.
const GgufArchitecture& row_for(const GgufFile& file) {
  const GgufArchitecture& first = gguf_architecture_for(file.metadata(), file.name());
  for (const GgufArchitecture& entry : gguf_architectures()) {
    if (entry.name == first.name && kept_config(file, entry)) {
      return entry;
    }
  }
  return first;
}

void take_config(const GgufFile& file, const GgufArchitecture& row, StoredModel& out) {
  const Architecture& published = architecture_named(row.model_type);
  if (const auto json = kept_config(file, row)) {
    out.config = published.read(*json, file.name());
    check_sizes(out.config, file.name(), static_cast<int64_t>(file.tensors().size()));
    out.published = json->dump(2);
    return;
  }
  out.config = row.read({file.header(), out.origin, std::string(row.name) + ".",
                         [&](const GgufTensor& tensor) { return file.bytes(tensor); }});
  check_sizes(out.config, file.name(), static_cast<int64_t>(file.tensors().size()));
  nlohmann::json json = nlohmann::json::object();
  published.write(plainest(out.config), json);
  out.published = json.dump(2);
}

}  // namespace

StoredModel open_gguf(const std::filesystem::path& path) {
  const auto file = std::make_shared<const GgufFile>(path);
  const GgufArchitecture& row = row_for(*file);
  StoredModel out;
  out.origin = path.string();
  out.kind = "GGUF file";
  out.model_type = row.model_type;
  take_config(*file, row, out);
  out.dtype = plain_type(*file);
  take_texts(*file, out);
  out.shapes = Decoder(out.config, DType::f32, meta_device).parameters();
  const auto pairs = std::make_shared<const std::vector<GgufPair>>(row.pairs(out.config));
  check_gguf_tensors(*file, *pairs, out.shapes);
  std::map<std::string, std::vector<const GgufPair*>> pairs_of;  // two where heads are divided
  for (const GgufPair& pair : *pairs) {
    for (const std::string& ours : pair.ours) {
      pairs_of[ours].push_back(&pair);
    }
  }
  out.read = [file, pairs, pairs_of, shapes = out.shapes](const std::string& ours, int64_t begin,
                                                          int64_t end, std::span<float> values) {
    for (const GgufPair* pair : pairs_of.at(ours)) {
      read_gguf_rows(*file, *pair, ours, shapes, begin, end, values);
    }
  };
  out.release = [file] {
    if (!file->tensors().empty()) {
      const std::byte* begin = file->bytes(file->tensors().front()).data();
      int64_t most = 0;
      for (const GgufTensor& one : file->tensors()) {
        most = std::max(most, one.end);
      }
      const int64_t first = file->tensors().front().begin;
      release_pages({begin - first, static_cast<size_t>(most)});
    }
  };
  return out;
}

}  // namespace ingot
