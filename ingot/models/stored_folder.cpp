#include <cstring>
#include <nlohmann/json.hpp>

#include "ingot/base/files.h"
#include "ingot/base/json.h"
#include "ingot/io/release.h"
#include "ingot/io/safetensors_shards.h"
#include "ingot/models/architecture.h"
#include "ingot/models/stored_model.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/layout.h"

// Models in the Hugging Face layout, read from maps of their safetensors files.
namespace ingot {
namespace {

constexpr const char* carried[] = {"tokenizer.json",
                                   "tokenizer_config.json",
                                   "special_tokens_map.json",
                                   "generation_config.json",
                                   "chat_template.jinja",
                                   "vocab.json",
                                   "merges.txt"};

// Rows of a view as f32. A map stored as [In, Out] is a transposed view here.
void read_rows(const Tensor& ours, int64_t begin, int64_t end, std::span<float> out) {
  const Tensor rows = sliced(ours, 0, begin, end);
  const Tensor values = dense(converted(rows, DType::f32));
  std::memcpy(out.data(), values.view().data, out.size_bytes());
}

void release_files(const SafetensorsSet& set) {
  for (const SafetensorsFile& file : set.files()) {
    if (!file.entries().empty()) {
      const std::byte* begin = file.header_bytes().data();
      const auto last = file.bytes(file.entries().back());
      release_pages({begin, last.data() + last.size()});
    }
  }
}

}  // namespace

StoredModel open_folder(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "config.json";
  const nlohmann::json config = parse_json_file(file);
  StoredModel out;
  out.origin = folder.string();
  out.kind = "folder";
  out.model_type = json_field<std::string>(config, "model_type", file.string());
  const Architecture& architecture = architecture_named(out.model_type);
  out.config = architecture.read(config, file.string());
  out.published = config.dump(2);
  out.shapes = Decoder(out.config, DType::f32, meta_device).parameters();
  const auto set = std::make_shared<const SafetensorsSet>(folder);
  const auto ours = std::make_shared<const TensorDict>(from_published(
      architecture.names(out.config), set->tensors().renamed(architecture.spelled), out.shapes));
  out.dtype = ours->at("embedding.weight").dtype();
  for (const char* name : carried) {
    if (file_exists(folder / name)) {
      out.texts[name] = read_file(folder / name);
    }
  }
  out.read = [ours](const std::string& name, int64_t begin, int64_t end, std::span<float> values) {
    read_rows(ours->at(name), begin, end, values);
  };
  out.release = [set] { release_files(*set); };
  return out;
}

}  // namespace ingot
