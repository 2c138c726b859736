#pragma once

#include <memory>
#include <string>

#include "ingot/autograd/grad_mode.h"
#include "ingot/cli/adapter_model.h"
#include "ingot/models/pretrained.h"
#include "ingot/nn/initialise.h"
#include "ingot/ops/elementwise.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "tests/cli/program.h"
#include "tests/support/op_case.h"

namespace ingot::testing {

inline DecoderConfig small_decoder(const std::string& architecture, int64_t vocab) {
  DecoderConfig c;
  c.architecture = architecture;
  if (architecture == "gpt2") {
    c.norm = "layer";
    c.activation = "gelu_tanh";
    c.positions = "learned";
    c.attention_bias = c.output_bias = c.mlp_bias = true;
  }
  c.tied = true;
  c.vocab = vocab;
  c.width = 32;
  c.layers = 2;
  c.heads = 4;
  c.kv_heads = architecture == "llama" ? 2 : 4;
  c.hidden = 64;
  c.context = 64;
  return c;
}

// A base in base/, an adapter of it in adapter/.
class Adapted {
 public:
  explicit Adapted(const std::string& architecture, peft::PeftConfig config = lora(),
                   DType dtype = DType::f32, int64_t vocab = 64, const SaveOptions& options = {}) {
    model = std::make_unique<Decoder>(small_decoder(architecture, vocab), dtype);
    nn::initialise(*model, {"normal", 0.3}, 3);
    save_pretrained(*model, folder_ / "base", options);
    peft::Adapters::Options made;
    made.dtype = dtype;
    adapters = std::make_unique<peft::Adapters>(*model, config, made);
    uint64_t seed = 5;
    for (const auto& [name, p] : adapters->parameters()) {
      Tensor target = p;
      copy_into(target, converted(p, DType::f64) + random_tensor(p.shape(), seed++, 0.2));
    }
    peft::save_adapter(*adapters, published_maps(*model), folder_ / "adapter",
                       {"some/base", base_hash(folder_ / "base")});
  }

  static peft::PeftConfig lora() {
    peft::PeftConfig c;
    c.kind = "lora";
    c.rank = 3;
    c.alpha = 6;
    return c;
  }

  Outcome run(const Words& arguments) const { return ingot(folder_.path(), arguments); }
  std::filesystem::path operator/(const std::string& name) const { return folder_ / name; }
  Tensor logits() const {
    const NoGrad quiet;
    return model->logits(ids());
  }
  static Tensor ids() {
    std::vector<int64_t> out;
    for (int64_t i = 0; i < 24; ++i) {
      out.push_back(7 * i % 64);
    }
    return tensor_of(out, {2, 12});
  }

 private:
  TemporaryFolder folder_;

 public:
  std::unique_ptr<Decoder> model;
  std::unique_ptr<peft::Adapters> adapters;
};

}  // namespace ingot::testing
