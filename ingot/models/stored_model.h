#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "ingot/base/ggml_type.h"
#include "ingot/io/gguf_value.h"
#include "ingot/models/pretrained.h"
#include "ingot/tensor/tensor_dict.h"

namespace ingot {

// A model as it lies on disk, in whatever kind of file: its shape, and its weights row by row under
// our names. Nothing of the weights is in memory until it is read.
struct StoredModel {
  std::string origin;            // the path, for messages
  std::string kind;              // "GGUF file"
  DecoderConfig config;          // complete
  std::string model_type;        // of the Architecture that writes config.json
  std::string published = "{}";  // the config.json whose keys that Ingot ignores are kept
  DType dtype = DType::f32;      // what weights are read as if nothing else is asked for
  TensorDict shapes;             // our parameters, on meta

  // Files beside the weights that are carried over as they are: tokenizer.json, … by name.
  std::map<std::string, std::string> texts;
  GgufMetadata tokenizer;  // the keys of a GGUF file that are about tokens

  // Rows [begin, end) of one of our tensors, seen as [rows, columns] (a vector is one column), in
  // f32.
  std::function<void(const std::string& ours, int64_t begin, int64_t end, std::span<float> out)>
      read;
  // Takes the pages that reading has brought in out of this process's memory.
  std::function<void()> release = [] {};
};

// Rows and columns of one of our tensors.
int64_t rows_of(const Tensor& parameter);
int64_t columns_of(const Tensor& parameter);

// Which kind of file `path` is, is read from its first bytes:
//   a folder         config.json and safetensors, as Hugging Face lays them out
//   "GGUF"           a GGUF file of an architecture in gguf_architectures()
//   llama2.c         checkpoints of github.com/karpathy/llama2.c, versions 0 (f32, no magic), 1, 2
//   llm.c            checkpoints of github.com/karpathy/llm.c, GPT-2 in f32 or bf16
// Throws Error(format) for anything else.
StoredModel open_model(const std::filesystem::path& path);

StoredModel open_folder(const std::filesystem::path& folder);
StoredModel open_gguf(const std::filesystem::path& path);
StoredModel open_llama2c(const std::filesystem::path& path);
StoredModel open_llmc(const std::filesystem::path& path);

// The model without the heads that predict further tokens, for programs that know none.
StoredModel without_heads(StoredModel model);

// The whole model in memory. Without `dtype`: the stored model's.
Pretrained load_stored(const StoredModel& stored, std::optional<DType> dtype = std::nullopt);

}  // namespace ingot
