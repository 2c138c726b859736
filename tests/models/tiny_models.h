#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "ingot/io/gguf.h"
#include "ingot/models/export.h"
#include "ingot/models/pretrained.h"
#include "ingot/models/stored_model.h"
#include "ingot/nn/initialise.h"
#include "ingot/tensor/factories.h"
#include "tests/support/op_case.h"
#include "tests/support/paths.h"

// Small models with random weights, for the tests of file formats.
namespace ingot::testing {

inline DecoderConfig tiny(const std::string& architecture) {
  DecoderConfig c;
  c.architecture = architecture;
  c.vocab = 256;
  c.width = 64;
  c.layers = 2;
  c.heads = 4;
  c.hidden = 96;
  c.context = 32;
  return c;
}

inline StoredModel saved(const DecoderConfig& config, const std::filesystem::path& folder,
                         DType dtype = DType::f32, const std::string& base = "{}") {
  Decoder model(config, dtype);
  nn::initialise(model, {"normal", 0.3}, 11);
  SaveOptions options;
  options.base_config = base;
  save_pretrained(model, folder, options);
  return open_model(folder);
}

inline Tensor tiny_ids() {
  return tensor_of(std::vector<int64_t>{1, 5, 255, 0, 7, 7, 12, 3}, {2, 4});
}

inline Tensor logits_of(const StoredModel& stored) {
  return load_stored(stored, DType::f32).model->logits(tiny_ids());
}

inline void expect_same_logits(const StoredModel& a, const StoredModel& b) {
  EXPECT_TRUE(same_bits(logits_of(a), logits_of(b)));
}

// The same file without the configuration it was made from: what its own keys say.
inline StoredModel by_its_own_keys(const std::filesystem::path& file) {
  std::filesystem::path bare = file;
  bare += ".bare.gguf";
  GgufMetadata none;
  none.set("ingot.config", "{}");
  rewrite_gguf(GgufFile(file), bare, std::nullopt, none);
  return open_model(bare);
}

}  // namespace ingot::testing
