#include <cstring>

#include "ingot/base/files.h"
#include "ingot/io/release.h"
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

void release_maps(const TensorDict& published) {
  for (const auto& [name, tensor] : published) {
    if (!tensor.storage()->writable()) {
      release_pages({tensor.storage()->data(), static_cast<size_t>(tensor.storage()->bytes())});
    }
  }
}

}  // namespace

StoredModel open_folder(const std::filesystem::path& folder) {
  const auto published = std::make_shared<const PublishedFolder>(read_published(folder));
  StoredModel out;
  out.origin = folder.string();
  out.kind = "folder";
  out.model_type = published->architecture->model_type;
  out.config = published->config;
  out.published = published->json;
  out.shapes = Decoder(out.config, DType::f32, meta_device).parameters();
  const auto ours = std::make_shared<const TensorDict>(published->weights(out.config));
  out.dtype = ours->at("embedding.weight").dtype();
  for (const char* name : carried) {
    if (file_exists(folder / name)) {
      out.texts[name] = read_file(folder / name);
    }
  }
  out.read = [ours](const std::string& name, int64_t begin, int64_t end, std::span<float> values) {
    read_rows(ours->at(name), begin, end, values);
  };
  out.release = [published] { release_maps(published->tensors); };
  return out;
}

}  // namespace ingot
