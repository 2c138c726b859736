#pragma once

#include <string>
#include <vector>

#include "ingot/base/range.h"

namespace ingot::peft {

// What a recipe says about training few parameters beside a frozen model. One flat list of keys;
// which of them count depends on `kind`.
struct PeftConfig {
  std::string kind;
  std::vector<std::string> targets;
  int64_t rank = 8;
  double alpha = 16;
  bool rslora = false;
  double dropout = 0;
  std::string init = "zero";
  int64_t loftq_iterations = 4;
  double plus_ratio = 1;
  bool dora_whole_gradient = false;
  int64_t width = 32;
  std::string base = "as_is";
  std::string from;

  bool on() const { return !kind.empty(); }
  bool low_rank() const { return kind == "lora" || kind == "dora"; }

  template <class V>
  void describe(V& v) {
    v("kind", kind, one_of({"", "lora", "dora", "ia3", "bottleneck"}),
      "adapters that are trained while the model is frozen; empty: none, all weights are trained");
    v("targets", targets,
      "linear maps that get one: globs of their paths, or last parts such as wq; empty: lora and "
      "dora all of the layers, ia3 wk, wv and mlp.down, bottleneck wo and mlp.down");
    v("rank", rank, at_least(1), "of lora and dora");
    v("alpha", alpha, above(0), "of lora and dora: what they add is scaled by alpha / rank");
    v("rslora", rslora, "scale by alpha / √rank");
    v("dropout", dropout, half_open(0, 1), "of the input of lora and dora");
    v("init", init, one_of({"zero", "pissa", "loftq"}),
      "what lora starts from: B = 0, the principal components of the weight, or what NF4 lost");
    v("loftq_iterations", loftq_iterations, at_least(1), "of init = \"loftq\"");
    v("plus_ratio", plus_ratio, at_least(1),
      "LoRA+: learning rate of B over that of A (Hayou et al. 2024, arXiv:2402.12354)");
    v("dora_whole_gradient", dora_whole_gradient, "differentiate dora's norm too");
    v("width", width, at_least(1), "of bottleneck adapters");
    v("base", base, one_of({"as_is", "int8", "nf4", "file"}),
      "how the frozen weights of the layers' linear maps are kept: nf4 is QLoRA; file: decoded "
      "from "
      "the blocks of the GGUF file that model.from names");
    v("from", from, "folder of an adapter in PEFT's layout to start from; empty: none");
  }
};

// Throws Error(config) for keys that contradict each other.
void check_peft(const PeftConfig& config);

}  // namespace ingot::peft
