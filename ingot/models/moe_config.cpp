#include "ingot/models/moe_config.h"

#include <algorithm>

#include "ingot/base/error.h"

namespace ingot {
namespace {

void check_consistent(const MoeConfig& c) {
  check(c.top_k <= c.experts, ErrorKind::config,
        "model.moe: more experts are chosen than there are: top_k is ", c.top_k, ", experts is ",
        c.experts);
  check(c.experts % c.groups == 0, ErrorKind::config,
        "model.moe: experts must be a multiple of groups: experts is ", c.experts, ", groups is ",
        c.groups);
  const int64_t size = c.experts / c.groups;
  check(c.groups_kept <= c.groups && c.top_k <= c.groups_kept * size, ErrorKind::config,
        "model.moe: the kept groups must hold top_k experts: groups_kept is ", c.groups_kept,
        " of ", c.groups, " groups of ", size, ", top_k is ", c.top_k);
  check(c.groups == 1 || *c.group_score == "best" || size >= 2, ErrorKind::config,
        "model.moe: groups of one expert have no best two: experts is ", c.experts, ", groups is ",
        c.groups, "; set group_score = \"best\"");
}

}  // namespace

bool has_experts(const MoeConfig& c, int64_t layer) {
  return c.experts > 0 && layer >= c.dense_first && (layer + 1) % c.every == 0 &&
         std::ranges::find(c.dense_layers, layer) == c.dense_layers.end();
}

void complete_moe(MoeConfig& c, const MoeConfig& family, int64_t hidden) {
  c.experts = c.experts > 0 ? c.experts : family.experts;
  c.score = c.score.value_or(family.score.value_or("softmax"));
  c.renormalise = c.renormalise.value_or(family.renormalise.value_or(true));
  c.group_score = c.group_score.value_or(family.group_score.value_or("best"));
  c.correction = c.correction.value_or(family.correction.value_or(false));
  c.hidden = c.hidden > 0 ? c.hidden : hidden;
  if (c.experts > 0) {
    c.balance = c.balance.value_or(*c.correction ? 0 : 0.01);
    check_consistent(c);
  }
}

nn::MoeOptions moe_options(const MoeConfig& c, int64_t width, nn::Activation activation) {
  nn::MoeOptions o;
  o.router.width = width;
  o.router.experts = c.experts;
  o.router.top_k = c.top_k;
  o.router.score = router_score(c);
  o.router.renormalise = *c.renormalise;
  o.router.scale = c.scale;
  o.router.groups = c.groups;
  o.router.groups_kept = c.groups_kept;
  o.router.group_score = *c.group_score == "best" ? nn::GroupScore::best : nn::GroupScore::best_two;
  o.router.correction = *c.correction;
  o.expert.width = width;
  o.expert.hidden = c.hidden;
  o.expert.activation = activation;
  o.shared_hidden = c.shared * c.hidden;
  return o;
}

nn::RouterScore router_score(const MoeConfig& c) {
  return *c.score == "softmax" ? nn::RouterScore::softmax : nn::RouterScore::sigmoid;
}

}  // namespace ingot
