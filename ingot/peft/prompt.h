#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ingot/nn/attention.h"
#include "ingot/peft/adapter.h"

namespace ingot::peft {

// Prompt tuning: P learnt vectors in the place of embedded tokens before every text, the model
// frozen. Lester et al. 2021, arXiv:2104.08691.
class SoftPrompt : public nn::Module {
 public:
  // Normal values of the given deviation; a trained model's embeddings have about 0.02.
  SoftPrompt(int64_t tokens, int64_t width, double deviation, uint64_t seed, DType dtype,
             Device device);
  // The rows of an embedding table [V, D] that these tokens have: then the model starts as it would
  // with that text before every other.
  SoftPrompt(const Tensor& table, const std::vector<int64_t>& tokens);

  void visit(nn::Visitor& v) override;
  // What a model asks for; undefined while switched off.
  Tensor operator()() const { return active ? vectors : Tensor(); }

  Tensor vectors;  // [P, D]
  bool active = true;
};

// Prefix tuning: P learnt keys and values before those of the text, in every attention layer of a
// frozen model. Without the reparametrisation by an MLP that the paper trains through and throws
// away. Li & Liang 2021, arXiv:2101.00190, section 4.2.
class PrefixTuning : public nn::Module {
 public:
  // Every attention layer of `model`, which must outlive this. Throws Error(config) where it has
  // none, or one with a window.
  PrefixTuning(nn::Module& model, int64_t tokens, double deviation, uint64_t seed, DType dtype,
               Device device);
  ~PrefixTuning() override;

  void visit(nn::Visitor& v) override;
  void set_active(bool active) { *active_ = active; }
  int64_t layers() const { return static_cast<int64_t>(entries_.size()); }

 private:
  class Layer;
  struct Entry {
    std::string path;
    nn::Attention* attention;
    std::shared_ptr<Layer> layer;
  };
  std::shared_ptr<bool> active_ = std::make_shared<bool>(true);
  std::vector<Entry> entries_;
};

}  // namespace ingot::peft
