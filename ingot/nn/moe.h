#pragma once

#include "ingot/nn/block.h"
#include "ingot/nn/mlp.h"

namespace ingot::nn {

enum class RouterScore : uint8_t { softmax, sigmoid };
enum class GroupScore : uint8_t { best, best_two };  // of a group: its best expert's, or two's sum

struct RouterOptions {
  int64_t width = 0;    // D
  int64_t experts = 0;  // E
  int64_t top_k = 0;    // k
  RouterScore score = RouterScore::softmax;
  bool renormalise = true;  // the k weights are divided by their sum
  double scale = 1;         // of the weights, after that
  int64_t groups = 1;       // experts are chosen among those of the groups_kept best groups
  int64_t groups_kept = 1;
  GroupScore group_score = GroupScore::best;
  bool correction = false;  // whether a bias for each expert is added for the choice alone
};

// Where N tokens go.
struct Routed {
  Tensor logits;   // [N, E], f32 (f64 for f64), with history
  Tensor chosen;   // [N, k] i64, the best first
  Tensor weights;  // [N, k], of logits' type, with history; undefined where it is not kept
};

// Each token's k experts and their weights, by its own choice:
//   s = softmax(x Wᵀ) or σ(x Wᵀ);  chosen = top k of s + bias;  weights = s at the chosen
// The product and the scores are in f32 for half types too (Fedus et al. 2022, arXiv:2101.03961,
// section 2.4: selective precision). Grouped choice: DeepSeek-AI 2024, arXiv:2405.04434, section
// 2.2.3; sigmoid and bias: arXiv:2412.19437, equations 12 to 16.
class Router : public Module {
 public:
  Router(const RouterOptions& options, DType dtype, Device device);

  Routed operator()(const Tensor& x) const;  // x: [N, D]
  void visit(Visitor& v) override;

  Tensor weight;      // [E, D]
  Tensor correction;  // [E] f32, or undefined: changed by steer() (expert_load.h), no gradient

 private:
  Tensor choice(const Tensor& scores) const;

  RouterOptions options_;
};

struct MoeOptions {
  RouterOptions router;
  MlpOptions expert;
  int64_t shared_hidden = 0;  // width of what every token passes besides; 0: nothing
};

// A mixture of experts: y = shared(x) + Σ_j weight_j expert_{chosen_j}(x).   x, y: [..., D]
// No token is dropped: the tokens, sorted by expert, are multiplied range by range
// (ops/grouped_linear.h). Puts logits and choice aside (Context::aside) where they are asked for.
// Shazeer et al. 2017, arXiv:1701.06538; shared experts: Dai et al. 2024, arXiv:2401.06066.
class Moe : public Module {
 public:
  Moe(const MoeOptions& options, DType dtype, Device device);

  Tensor operator()(const Tensor& x, const Context& context) const;
  void visit(Visitor& v) override;

  Router router;
  std::vector<std::unique_ptr<Mlp>> experts;
  std::optional<Mlp> shared;

 private:
  Tensor transformed(const Tensor& rows, const Tensor& counts) const;
  bool plain() const;
  Tensor one_by_one(const Tensor& rows, const Tensor& counts) const;

  Activation activation_;
};

}  // namespace ingot::nn
