#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ingot/tensor/tensor_dict.h"

namespace ingot {

// How one parameter is treated: multipliers of the step's learning rate and of the rule's weight
// decay, and whether rules that work on whole matrices take it as one.
struct Group {
  double learning_rate = 1;
  double decay = 1;  // 0: not decayed
  bool matrix = false;

  friend bool operator==(const Group&, const Group&) = default;
};

// Sets what it states for the parameters whose names match.
struct GroupRule {
  std::string pattern;  // as in TensorDict::select: "**.bias", "embedding.*"
  std::optional<double> learning_rate = {};
  std::optional<double> decay = {};
  std::optional<bool> matrix = {};
};
using GroupRules = std::vector<GroupRule>;  // applied in order: a later rule overrides

// A rule from its text: a pattern, then `lr=NUMBER`, `decay=on|off|NUMBER`, `matrix=on|off`:
//   "embedding.** lr=0.1 decay=off"
// Throws Error(config) saying which word it cannot read.
GroupRule group_rule(std::string_view text);
GroupRules group_rules(const std::vector<std::string>& texts);

// The group of each parameter, in order. Without rules: tensors of two and more dimensions are
// decayed, vectors (biases, norm gains) are not; tensors of two dimensions are matrices, but for
// embeddings, positions and the head, whose rows belong to single tokens. Throws Error(config) for
// a rule that matches no parameter, or that calls one without two dimensions a matrix.
std::vector<Group> groups_of(const TensorDict& parameters, const GroupRules& rules);

}  // namespace ingot
