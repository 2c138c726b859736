#include <algorithm>
#include <charconv>
#include <cstring>
#include <string>

#include "ingot/models/gguf_families.h"

namespace ingot {
namespace {

constexpr int64_t largest_size = int64_t{1} << 30;

// 1e-05 of the float that is 9.999999747378752e-06 as a double.
double shortest(double value) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, static_cast<float>(value));
  double out = value;
  std::from_chars(digits, end.ptr, out);
  return out;
}

}  // namespace

std::span<const GgufArchitecture> gguf_architectures() {
  static const GgufArchitecture table[] = {gguf_gpt2(),
                                           gguf_llama(),
                                           gguf_mistral(),
                                           gguf_mixtral(),
                                           gguf_smollm3(),
                                           gguf_qwen2(),
                                           gguf_qwen3(),
                                           gguf_olmo2(),
                                           gguf_qwen3_moe(),
                                           gguf_gemma(),
                                           gguf_gemma2(),
                                           gguf_gemma3(),
                                           gguf_phi3(),
                                           gguf_gpt_neox(),
                                           gguf_deepseek_v2(),
                                           gguf_deepseek_v3(),
                                           gguf_joined_deepseek_v2(),
                                           gguf_joined_deepseek_v3()};
  return table;
}

const GgufArchitecture& gguf_architecture_for(const GgufMetadata& metadata,
                                              const std::string& file) {
  const std::string name = metadata.text("general.architecture", file);
  std::string all;
  for (const GgufArchitecture& entry : gguf_architectures()) {
    if (entry.name == name && (entry.takes == nullptr || entry.takes(metadata))) {
      return entry;
    }
    const bool named = all.find(entry.name) != std::string::npos;
    all += named ? "" : (all.empty() ? "" : ", ") + std::string(entry.name);
  }
  throw Error(ErrorKind::config,
              concat(file, ": general.architecture '", name, "' is not known; known are ", all));
}

const GgufArchitecture& gguf_architecture_of(std::string_view model_type) {
  std::string all;
  for (const GgufArchitecture& entry : gguf_architectures()) {
    if (entry.model_type == model_type) {
      return entry;
    }
    all += (all.empty() ? "" : ", ") + std::string(entry.model_type);
  }
  throw Error(
      ErrorKind::config,
      concat("gguf: a model of model_type '", model_type,
             "' cannot be written: llama.cpp has no such architecture, or Ingot does not know "
             "it; known are ",
             all));
}

bool GgufKeys::has(std::string_view key) const {
  return header.metadata.contains(prefix + std::string(key));
}

int64_t GgufKeys::size(std::string_view key) const {
  const std::string full = prefix + std::string(key);
  const int64_t value = header.metadata.integer(full, file);
  check(value >= 0 && value <= largest_size, ErrorKind::format, file, ": ", full,
        ": not a size that a model has: ", value);
  return value;
}

int64_t GgufKeys::size_or(std::string_view key, int64_t otherwise) const {
  return has(key) ? size(key) : otherwise;
}

double GgufKeys::number(std::string_view key) const {
  return shortest(header.metadata.number(prefix + std::string(key), file));
}

double GgufKeys::number_or(std::string_view key, double otherwise) const {
  return has(key) ? number(key) : otherwise;
}

std::string GgufKeys::text_or(std::string_view key, std::string_view otherwise) const {
  return header.metadata.text_or(prefix + std::string(key), otherwise, file);
}

std::vector<int64_t> GgufKeys::flagged(std::string_view key) const {
  const std::string full = prefix + std::string(key);
  const GgufValue* value = header.metadata.find(full);
  const auto* array = value == nullptr ? nullptr : std::get_if<GgufArray>(&value->value);
  const auto* flags = array == nullptr ? nullptr : std::get_if<std::vector<bool>>(&array->values);
  check(flags != nullptr, ErrorKind::format, file, ": ", full,
        ": must be a list of booleans: ", value == nullptr ? "absent" : shown(*value));
  std::vector<int64_t> out;
  for (size_t i = 0; i < flags->size(); ++i) {
    if ((*flags)[i]) {
      out.push_back(static_cast<int64_t>(i));
    }
  }
  return out;
}

bool GgufKeys::flag_or(std::string_view key, bool otherwise) const {
  return header.metadata.flag_or(prefix + std::string(key), otherwise, file);
}

const GgufTensor* GgufKeys::find(std::string_view tensor) const {
  const auto at = std::find_if(header.tensors.begin(), header.tensors.end(),
                               [&](const GgufTensor& one) { return one.name == tensor; });
  return at == header.tensors.end() ? nullptr : &*at;
}

int64_t GgufKeys::rows(std::string_view tensor) const {
  const GgufTensor* about = find(tensor);
  check(about != nullptr, ErrorKind::format, file, ": ", tensor, ": no such tensor in the file");
  const Shape& shape = about->shape;
  check(shape.rank() == 2 && shape[0] <= largest_size, ErrorKind::format, file, ": ", tensor,
        ": must have two dimensions: it is ", shape);
  return shape[0];
}

std::vector<float> GgufKeys::values(std::string_view tensor) const {
  const GgufTensor* about = find(tensor);
  check(about != nullptr, ErrorKind::format, file, ": ", tensor, ": no such tensor in the file");
  check(about->type == GgmlType::f32 && about->shape.rank() == 1, ErrorKind::format, file, ": ",
        tensor, ": must be F32 of one dimension: it is ", ingot::name(about->type), " ",
        about->shape);
  const auto stored = bytes(*about);
  std::vector<float> out(stored.size() / sizeof(float));
  std::memcpy(out.data(), stored.data(), out.size() * sizeof(float));
  return out;
}

}  // namespace ingot
