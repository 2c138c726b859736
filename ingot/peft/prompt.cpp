#include "ingot/peft/prompt.h"

#include "ingot/autograd/record.h"
#include "ingot/ops/index.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot::peft {
namespace {

Tensor drawn(const Shape& shape, double deviation, const AdapterSeed& seed, const char* name,
             DType dtype, Device device) {
  const PurposeScope scope(Purpose::parameters);
  return converted(normal(shape, 0, deviation, seed.key(name), DType::f32, device), dtype);
}

class AttentionCollector : public nn::Visitor {
 public:
  std::vector<std::pair<std::string, nn::Attention*>> found;

 protected:
  void on_parameter(const std::string&, Tensor&, nn::Role) override {}
  void on_module(const std::string& path, nn::Module& module) override {
    if (auto* attention = dynamic_cast<nn::Attention*>(&module)) {
      found.emplace_back(path, attention);
    }
  }
};

}  // namespace

SoftPrompt::SoftPrompt(int64_t tokens, int64_t width, double deviation, uint64_t seed, DType dtype,
                       Device device)
    : vectors(drawn({tokens, width}, deviation, {seed, "prompt"}, "vectors", dtype, device)) {
  check(tokens >= 1, ErrorKind::config, "peft.tokens: must be at least 1: got ", tokens);
}

SoftPrompt::SoftPrompt(const Tensor& table, const std::vector<int64_t>& tokens)
    : vectors(copy_of(index_select(detach(table), 0,
                                   tensor_of(tokens, {static_cast<int64_t>(tokens.size())})))) {}

void SoftPrompt::visit(nn::Visitor& v) { v("prompt", vectors, nn::Role::embedding); }

class PrefixTuning::Layer : public nn::KeyPrefix, public nn::Module {
 public:
  Layer(std::shared_ptr<const bool> active, Tensor keys, Tensor values)
      : active_(std::move(active)), keys_(std::move(keys)), values_(std::move(values)) {}

  bool active() const override { return *active_; }
  Tensor keys() const override { return keys_; }
  Tensor values() const override { return values_; }
  void visit(nn::Visitor& v) override {
    v("prefix_k", keys_, nn::Role::embedding);
    v("prefix_v", values_, nn::Role::embedding);
  }

 private:
  std::shared_ptr<const bool> active_;
  Tensor keys_, values_;  // [P, K, C]
};

PrefixTuning::PrefixTuning(nn::Module& model, int64_t tokens, double deviation, uint64_t seed,
                           DType dtype, Device device) {
  check(tokens >= 1, ErrorKind::config, "peft.tokens: must be at least 1: got ", tokens);
  AttentionCollector collector;
  model.visit(collector);
  check(!collector.found.empty(), ErrorKind::config,
        "prefix tuning: the model has no attention that takes keys besides its own");
  for (const auto& [path, attention] : collector.found) {
    const nn::AttentionShape& s = attention->shape();
    check(s.window == 0, ErrorKind::config, "prefix tuning: ", path, " sees the last ", s.window,
          " keys alone and would lose the prefix; use lora");
    const Shape shape = {tokens, s.kv_heads, s.head_dim};
    const AdapterSeed at{seed, path};
    auto layer =
        std::make_shared<Layer>(active_, drawn(shape, deviation, at, "prefix_k", dtype, device),
                                drawn(shape, deviation, at, "prefix_v", dtype, device));
    attention->prefix = layer;
    entries_.push_back({path, attention, std::move(layer)});
  }
}

PrefixTuning::~PrefixTuning() {
  for (const Entry& entry : entries_) {
    entry.attention->prefix = nullptr;
  }
}

void PrefixTuning::visit(nn::Visitor& v) {
  for (const Entry& entry : entries_) {
    v(entry.path, *entry.layer);
  }
}

}  // namespace ingot::peft
