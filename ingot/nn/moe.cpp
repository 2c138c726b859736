#include "ingot/nn/moe.h"

#include <algorithm>
#include <limits>

#include "ingot/autograd/record.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/grouped_linear.h"
#include "ingot/ops/index.h"
#include "ingot/ops/linear.h"
#include "ingot/ops/reduce.h"
#include "ingot/ops/shape.h"
#include "ingot/ops/softmax.h"
#include "ingot/tensor/factories.h"

namespace ingot::nn {
namespace {

void check_options(const RouterOptions& o) {
  check(o.top_k >= 1 && o.top_k <= o.experts, ErrorKind::argument,
        "router: chooses more experts than there are, or none: top_k is ", o.top_k, ", experts is ",
        o.experts);
  check(o.groups >= 1 && o.experts % o.groups == 0, ErrorKind::argument,
        "router: experts do not divide into groups: experts is ", o.experts, ", groups is ",
        o.groups);
  const int64_t size = o.experts / o.groups;
  check(o.groups_kept >= 1 && o.groups_kept <= o.groups && o.top_k <= o.groups_kept * size,
        ErrorKind::argument,
        "router: the kept groups hold too few experts, or are too many: ", "groups_kept is ",
        o.groups_kept, ", groups is ", o.groups, " of ", size, " experts, top_k is ", o.top_k);
  check(o.groups == 1 || o.group_score == GroupScore::best || size >= 2, ErrorKind::argument,
        "router: groups of one expert have no best two: experts is ", o.experts, ", groups is ",
        o.groups);
}

// 1 for the members of the best groups, [N, E] in the type of scores.
Tensor in_kept_groups(const Tensor& scores, const RouterOptions& o) {
  const int64_t rows = scores.size(0);
  const Tensor grouped = reshape(scores, {rows, o.groups, o.experts / o.groups});
  const Tensor of_groups =
      o.group_score == GroupScore::best ? max(grouped, -1) : sum(topk(grouped, 2).values, -1);
  const Tensor kept = topk(of_groups, o.groups_kept).indices;
  const Tensor marks = sum(one_hot(kept, o.groups, scores.dtype()), 1);  // [N, G]
  return reshape(expand(unsqueeze(marks, -1), grouped.shape()), scores.shape());
}

TensorList weights_of(const std::vector<std::unique_ptr<Mlp>>& experts,
                      const Linear& (*map)(const Mlp&)) {
  TensorList out;
  for (const auto& expert : experts) {
    out.push_back(map(*expert).weight);
  }
  return out;
}

// The N·k pairs of a token and an expert it chose, sorted by expert; tokens keep their order.
struct Dispatch {
  Tensor tokens;  // [N·k] i64, the token of each pair
  Tensor places;  // [N·k] i64, where pair n·k + j stands
  Tensor counts;  // [E] i64, pairs of each expert
};

Dispatch dispatch_of(const Tensor& chosen, int64_t experts) {
  const int64_t rows = chosen.size(0);
  const Tensor flat = reshape(chosen, {chosen.elements()});
  const Tensor order = sort(flat).indices;
  const Tensor tokens =
      reshape(expand(unsqueeze(arange(rows, DType::i64, chosen.device()), -1), chosen.shape()),
              flat.shape());
  const Tensor none = zeros({experts}, DType::i64, chosen.device());
  const Tensor ones = full(flat.shape(), 1, DType::i64, chosen.device());
  return {index_select(tokens, 0, order), sort(order).indices, scatter_add(none, 0, flat, ones)};
}

}  // namespace

Router::Router(const RouterOptions& o, DType dtype, Device device)
    : weight(parameter({o.experts, o.width}, dtype, device)), options_(o) {
  check_options(o);
  if (o.correction) {
    correction = parameter({o.experts}, accumulator(dtype), device);
  }
}

Tensor Router::choice(const Tensor& scores) const {
  const RouterOptions& o = options_;
  Tensor steered = correction.defined() ? scores + detach(correction) : scores;
  if (o.groups > 1) {
    const Tensor never =
        scalar(-std::numeric_limits<double>::infinity(), scores.dtype(), scores.device());
    const Tensor nothing = scalar(0, scores.dtype(), scores.device());
    steered = where(greater(in_kept_groups(steered, o), nothing), steered, never);
  }
  return topk(steered, o.top_k).indices;
}

Routed Router::operator()(const Tensor& x) const {
  const DType wide = accumulator(x.dtype());
  Routed out;
  out.logits = linear(cast(x, wide), cast(weight, wide));
  const Tensor scores =
      options_.score == RouterScore::softmax ? softmax(out.logits) : sigmoid(out.logits);
  out.chosen = choice(detach(scores));
  out.weights = gather(scores, -1, out.chosen);
  if (options_.renormalise) {
    out.weights = out.weights / (sum(out.weights, -1, Keep::yes) + 1e-20);
  }
  if (options_.scale != 1) {
    out.weights = out.weights * options_.scale;
  }
  return out;
}

void Router::visit(Visitor& v) {
  v("weight", weight, Role::matrix);
  v("correction", correction, Role::bias);
}

Moe::Moe(const MoeOptions& o, DType dtype, Device device)
    : router(o.router, dtype, device), activation_(o.expert.activation) {
  check(o.expert.bias == Bias::no, ErrorKind::argument, "moe: experts have no biases");
  for (int64_t e = 0; e < o.router.experts; ++e) {
    experts.push_back(std::make_unique<Mlp>(o.expert, dtype, device));
  }
  if (o.shared_hidden > 0) {
    MlpOptions wider = o.expert;
    wider.hidden = o.shared_hidden;
    shared.emplace(wider, dtype, device);
  }
}

// Expert by expert, as each keeps its weights.
Tensor Moe::one_by_one(const Tensor& rows, const Tensor& counts) const {
  const bool known = counts.device().kind != DeviceKind::meta;
  const auto count = static_cast<int64_t>(experts.size());
  TensorList parts;
  int64_t begin = 0;
  for (size_t e = 0; e < experts.size(); ++e) {
    const int64_t end = known ? begin + counts.values<int64_t>()[e]
                              : rows.size(0) * (static_cast<int64_t>(e) + 1) / count;
    parts.push_back((*experts[e])(slice(rows, 0, begin, end)));
    begin = end;
  }
  return concat(parts, int64_t{0});
}

// Whether every expert is no more than its weights.
bool Moe::plain() const {
  const auto is_plain = [](const Linear& map) {
    return map.weight.defined() && map.adapters.empty();
  };
  return std::ranges::all_of(experts, [&](const auto& expert) {
    return is_plain(expert->up) && is_plain(expert->down) &&
           (!expert->gate || is_plain(*expert->gate));
  });
}

// Each row by its expert's MLP.
Tensor Moe::transformed(const Tensor& rows, const Tensor& counts) const {
  if (!plain()) {
    return one_by_one(rows, counts);
  }
  const TensorList ups = weights_of(experts, [](const Mlp& m) -> const Linear& { return m.up; });
  const TensorList downs =
      weights_of(experts, [](const Mlp& m) -> const Linear& { return m.down; });
  if (!is_gated(activation_)) {
    return grouped_linear(activate(grouped_linear(rows, ups, counts), activation_), downs, counts);
  }
  const TensorList gates =
      weights_of(experts, [](const Mlp& m) -> const Linear& { return *m.gate; });
  const TensorList both = grouped_linears(rows, {gates, ups}, counts);
  return grouped_linear(activate(both[0], both[1], activation_), downs, counts);
}

Tensor Moe::operator()(const Tensor& x, const Context& context) const {
  const int64_t width = x.size(-1);
  const Tensor flat = reshape(x, {x.elements() / width, width});  // [N, D]
  const Routed routed = router(flat);
  if (context.aside != nullptr) {
    context.aside->push_back(routed.logits);
    context.aside->push_back(routed.chosen);
  }
  const Dispatch dispatch = dispatch_of(routed.chosen, static_cast<int64_t>(experts.size()));
  const Tensor rows = index_select(flat, 0, dispatch.tokens);  // [N·k, D]
  const Tensor done = index_select(transformed(rows, dispatch.counts), 0, dispatch.places);
  const int64_t k = routed.chosen.size(1);
  const Tensor weights = unsqueeze(cast(routed.weights, x.dtype()), -1);  // [N, k, 1]
  Tensor y = reshape(sum(reshape(done, {flat.size(0), k, width}) * weights, 1), x.shape());
  return shared ? y + (*shared)(x) : y;
}

void Moe::visit(Visitor& v) {
  v("router", router);
  v("experts", experts);
  v("shared", shared);
}

}  // namespace ingot::nn
