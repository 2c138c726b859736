#include "ingot/nn/moe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/gradcheck.h"
#include "ingot/autograd/record.h"
#include "ingot/nn/expert_load.h"
#include "ingot/nn/initialise.h"
#include "ingot/nn/router_losses.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/index.h"
#include "ingot/ops/reduce.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

using Row = std::vector<double>;

nn::MoeOptions options_of(int64_t experts, int64_t top_k) {
  nn::MoeOptions o;
  o.router.width = 6;
  o.router.experts = experts;
  o.router.top_k = top_k;
  o.expert.width = 6;
  o.expert.hidden = 5;
  return o;
}

nn::MoeOptions grouped_options() {
  nn::MoeOptions o = options_of(12, 3);
  o.router.score = nn::RouterScore::sigmoid;
  o.router.scale = 2.5;
  o.router.groups = 4;
  o.router.groups_kept = 2;
  o.router.group_score = nn::GroupScore::best_two;
  o.router.correction = true;
  o.shared_hidden = 7;
  return o;
}

// With random weights; a correction, which starts at 0, too.
std::unique_ptr<nn::Moe> moe_of(const nn::MoeOptions& options, DType dtype = DType::f64) {
  auto moe = std::make_unique<nn::Moe>(options, dtype, cpu_device);
  nn::initialise(*moe, {"normal", 0.8}, 5);
  if (options.router.correction) {
    copy_into(moe->router.correction, random_tensor({options.router.experts}, 8, 0.2));
  }
  return moe;
}

Row row_of(const Tensor& x, int64_t row) {
  const Tensor line = dense(sliced(x, 0, row, row + 1));
  const auto values = line.values<double>();
  return {values.begin(), values.end()};
}

double dot(const Row& a, const Row& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

Row times(const Tensor& weight, const Row& x) {
  Row out;
  for (int64_t o = 0; o < weight.size(0); ++o) {
    out.push_back(dot(row_of(weight, o), x));
  }
  return out;
}

Row mlp_by_loops(const nn::Mlp& mlp, const Row& x) {
  Row h = times(mlp.up.weight, x);
  const Row g = mlp.gate ? times(mlp.gate->weight, x) : h;
  for (size_t i = 0; i < h.size(); ++i) {
    const double silu = g[i] / (1 + std::exp(-g[i]));
    h[i] = mlp.gate ? silu * h[i] : std::max(h[i], 0.0);
  }
  return times(mlp.down.weight, h);
}

// The positions of the largest, the largest first.
std::vector<size_t> best_of(const Row& values, size_t count) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return values[a] > values[b]; });
  order.resize(count);
  return order;
}

// Scores with which a token's experts compete; −∞ for those of groups that are not kept.
Row competing(const Row& scores, const nn::Moe& moe, const nn::RouterOptions& o) {
  Row out = scores;
  if (moe.router.correction.defined()) {
    for (size_t e = 0; e < out.size(); ++e) {
      out[e] += moe.router.correction.values<double>()[e];
    }
  }
  const size_t size = out.size() / static_cast<size_t>(o.groups);
  Row of_groups;
  for (size_t g = 0; g < static_cast<size_t>(o.groups); ++g) {
    Row members(out.begin() + static_cast<int64_t>(g * size),
                out.begin() + static_cast<int64_t>((g + 1) * size));
    std::ranges::sort(members, std::greater<>());
    of_groups.push_back(o.group_score == nn::GroupScore::best ? members[0]
                                                              : members[0] + members[1]);
  }
  const auto kept = best_of(of_groups, static_cast<size_t>(o.groups_kept));
  for (size_t e = 0; e < out.size(); ++e) {
    out[e] = std::ranges::count(kept, e / size) > 0 ? out[e] : -HUGE_VAL;
  }
  return out;
}

// One token by the formulas of the papers.
Row token_by_loops(const nn::Moe& moe, const nn::MoeOptions& options, const Row& x) {
  const nn::RouterOptions& o = options.router;
  Row scores = times(moe.router.weight, x);
  double total = 0;
  for (double& s : scores) {
    s = o.score == nn::RouterScore::softmax ? std::exp(s) : 1 / (1 + std::exp(-s));
    total += s;
  }
  for (double& s : scores) {
    s = o.score == nn::RouterScore::softmax ? s / total : s;
  }
  const auto chosen = best_of(competing(scores, moe, o), static_cast<size_t>(o.top_k));
  double weight_sum = 0;
  for (const size_t e : chosen) {
    weight_sum += scores[e];
  }
  Row y = moe.shared ? mlp_by_loops(*moe.shared, x) : Row(x.size(), 0);
  for (const size_t e : chosen) {
    const double weight = o.scale * scores[e] / (o.renormalise ? weight_sum : 1);
    const Row part = mlp_by_loops(*moe.experts[e], x);
    for (size_t i = 0; i < y.size(); ++i) {
      y[i] += weight * part[i];
    }
  }
  return y;
}

void expect_by_loops(const nn::MoeOptions& options) {
  const auto moe = moe_of(options);
  const Tensor x = random_tensor({3, 7, 6}, 1);
  const Tensor y = (*moe)(x, {});
  ASSERT_EQ(y.shape(), x.shape());
  for (int64_t n = 0; n < 21; ++n) {
    const Row expected = token_by_loops(*moe, options, row_of(reshaped(x, {21, 6}), n));
    EXPECT_LE(
        difference(reshape(slice(reshape(y, {21, 6}), 0, n, n + 1), {6}), tensor_of(expected, {6})),
        1e-12)
        << n;
  }
}

TEST(Moe, FollowsTheFormulasTokenByToken) {
  expect_by_loops(options_of(4, 2));
  expect_by_loops(options_of(5, 5));
  expect_by_loops(grouped_options());
  nn::MoeOptions raw = options_of(6, 2);
  raw.router.renormalise = false;
  raw.router.groups = 3;
  raw.router.groups_kept = 1;
  expect_by_loops(raw);
  raw.expert.activation = nn::Activation::relu;
  expect_by_loops(raw);
}

// Σ w·y with the parameters as inputs, so that gradcheck can move each.
std::string checked_gradients(const nn::MoeOptions& options) {
  const auto moe = moe_of(options);
  TensorList inputs = {random_tensor({9, 6}, 1)};
  std::vector<nn::Slot> slots = moe->slots();
  std::erase_if(slots, [](const nn::Slot& s) { return s.path == "router.correction"; });
  for (const nn::Slot& slot : slots) {
    inputs.push_back(slot.tensor());
  }
  return gradcheck(
      [&](const TensorList& in) {
        for (size_t i = 0; i < slots.size(); ++i) {
          slots[i].set(in[i + 1]);
        }
        return TensorList{(*moe)(in[0], {})};
      },
      inputs, {.step = 1e-6, .tolerance = 1e-7});
}

TEST(Moe, GradientsOfInputRouterAndExpertsMatchFiniteDifferences) {
  EXPECT_EQ(checked_gradients(options_of(4, 2)), "");
  EXPECT_EQ(checked_gradients(grouped_options()), "");
}

TEST(Moe, DropsNoTokenWhenAllChooseTheSameExperts) {
  nn::MoeOptions options = options_of(8, 2);
  options.router.correction = true;
  const auto moe = moe_of(options);
  copy_into(moe->router.correction, tensor_of<double>({0, 0, 50, 0, 0, 60, 0, 0}, {8}));
  const Tensor x = random_tensor({40, 6}, 1);
  const nn::Routed routed = moe->router(x);
  for (int64_t n = 0; n < 40; ++n) {
    EXPECT_EQ(routed.chosen.values<int64_t>()[static_cast<size_t>(2 * n)], 5);
    EXPECT_EQ(routed.chosen.values<int64_t>()[static_cast<size_t>(2 * n + 1)], 2);
  }
  const Tensor y = (*moe)(x, {});
  for (int64_t n = 0; n < 40; ++n) {
    const Row expected = token_by_loops(*moe, options, row_of(x, n));
    EXPECT_LE(difference(reshape(slice(y, 0, n, n + 1), {6}), tensor_of(expected, {6})), 1e-12);
  }
}

TEST(Moe, OfAnExpertThatNobodyChoseTheGradientIsZero) {
  nn::MoeOptions options = options_of(3, 1);
  options.router.correction = true;
  const auto moe = moe_of(options);
  copy_into(moe->router.correction, tensor_of<double>({9, 0, 0}, {3}));
  moe->require_gradients();
  backward(sum((*moe)(random_tensor({5, 6}, 1), {})));
  for (const auto& [name, parameter] : moe->parameters()) {
    if (name == "router.correction") {
      EXPECT_FALSE(grad(parameter).defined());
      continue;
    }
    ASSERT_TRUE(grad(parameter).defined()) << name;
    if (name == "router.weight") {
      continue;
    }
    const bool busy = name.starts_with("experts.0.");
    EXPECT_EQ(norm(grad(parameter)).item() > 0, busy) << name;
  }
}

TEST(Router, ChoosesFromTheKeptGroupsOnly) {
  const nn::MoeOptions options = grouped_options();
  const auto moe = moe_of(options);
  const nn::Routed routed = moe->router(random_tensor({200, 6}, 1));
  const auto chosen = routed.chosen.values<int64_t>();
  for (size_t n = 0; n < 200; ++n) {
    std::set<int64_t> groups, experts;
    for (size_t j = 0; j < 3; ++j) {
      experts.insert(chosen[3 * n + j]);
      groups.insert(chosen[3 * n + j] / 3);
    }
    EXPECT_EQ(experts.size(), 3U);
    EXPECT_LE(groups.size(), 2U);
  }
}

TEST(Router, TheCorrectionSteersTheChoiceAndNoWeight) {
  nn::RouterOptions options = options_of(4, 4).router;
  options.score = nn::RouterScore::sigmoid;
  options.renormalise = false;
  options.correction = true;
  nn::Router router(options, DType::f64, cpu_device);
  nn::initialise(router, {"normal", 0.8}, 5);
  const Tensor x = random_tensor({10, 6}, 1);
  const nn::Routed before = router(x);
  copy_into(router.correction, tensor_of<double>({0.5, -1, 2, 0}, {4}));
  const nn::Routed after = router(x);
  const Tensor plain = sigmoid(before.logits);
  EXPECT_FALSE(same_bits(before.chosen, after.chosen));
  EXPECT_TRUE(same_bits(after.weights, gather(plain, -1, after.chosen)));
}

TEST(Router, ScoresHalfTypesInF32) {
  const nn::MoeOptions options = options_of(4, 2);
  const auto half = moe_of(options, DType::bf16);
  const auto full = moe_of(options, DType::f32);
  full->load(half->parameters());
  const Tensor x = converted(random_tensor({50, 6}, 1), DType::bf16);
  const nn::Routed rounded = half->router(x);
  const nn::Routed wide = full->router(converted(x, DType::f32));
  EXPECT_EQ(rounded.logits.dtype(), DType::f32);
  EXPECT_TRUE(same_bits(rounded.chosen, wide.chosen));
  EXPECT_TRUE(same_bits(rounded.weights, wide.weights));
  const Tensor y = (*half)(x, {});
  EXPECT_EQ(y.dtype(), DType::bf16);
  // 2.2e-2 is two and a half units in the last place of bf16: 7e-3 found.
  EXPECT_LE(difference(y, (*full)(converted(x, DType::f32), {})), 2.2e-2);
}

TEST(Moe, RefusesWhatCannotBeChosen) {
  const auto made = [](const std::function<void(nn::MoeOptions&)>& change) {
    return [change] {
      nn::MoeOptions options = options_of(6, 2);
      change(options);
      nn::Moe(options, DType::f32, cpu_device);
    };
  };
  expect_error(made([](auto& o) { o.router.top_k = 7; }), "top_k is 7, experts is 6");
  expect_error(made([](auto& o) { o.router.top_k = 0; }), "top_k is 0, experts is 6");
  expect_error(made([](auto& o) { o.router.groups = 4; }), "experts is 6, groups is 4");
  expect_error(made([](auto& o) {
                 o.router.groups = 6;
                 o.router.groups_kept = 1;
               }),
               "groups_kept is 1, groups is 6 of 1 experts, top_k is 2");
  expect_error(made([](auto& o) {
                 o.router.groups = 6;
                 o.router.groups_kept = 3;
                 o.router.group_score = nn::GroupScore::best_two;
               }),
               "groups of one expert have no best two");
  expect_error(made([](auto& o) { o.expert.bias = nn::Bias::yes; }), "experts have no biases");
}

nn::Routed routed_of(const Tensor& logits, int64_t k) {
  return {logits, topk(detach(logits), k).indices, {}};
}

// E Σ_e f_e P_e in plain loops over the layers laid end to end.
double balance_by_loops(const std::vector<nn::Routed>& layers, const std::vector<double>& counted) {
  const auto experts = static_cast<size_t>(layers[0].logits.size(1));
  const auto k = static_cast<size_t>(layers[0].chosen.size(1));
  Row taken(experts, 0), likely(experts, 0);
  double tokens = 0;
  for (const nn::Routed& layer : layers) {
    for (size_t n = 0; n < counted.size(); ++n) {
      if (counted[n] == 0) {
        continue;
      }
      tokens += 1;
      Row p = row_of(layer.logits, static_cast<int64_t>(n));
      double total = 0;
      for (double& value : p) {
        value = std::exp(value);
        total += value;
      }
      for (size_t e = 0; e < experts; ++e) {
        likely[e] += p[e] / total;
      }
      for (size_t j = 0; j < k; ++j) {
        taken[static_cast<size_t>(layer.chosen.values<int64_t>()[n * k + j])] += 1;
      }
    }
  }
  return static_cast<double>(experts) * dot(taken, likely) / (tokens * tokens);
}

TEST(LoadBalancingLoss, FollowsItsFormulaOverAllLayersWithoutPadding) {
  const std::vector<nn::Routed> layers = {routed_of(random_tensor({10, 5}, 1, 2), 2),
                                          routed_of(random_tensor({10, 5}, 2, 2), 2)};
  const std::vector<double> all(10, 1.0);
  EXPECT_NEAR(nn::load_balancing_loss(layers, nn::RouterScore::softmax).item(),
              balance_by_loops(layers, all), 1e-12);
  const std::vector<double> some = {1, 1, 1, 0, 1, 1, 0, 0, 0, 1};
  EXPECT_NEAR(
      nn::load_balancing_loss(layers, nn::RouterScore::softmax, tensor_of(some, {10})).item(),
      balance_by_loops(layers, some), 1e-12);
  EXPECT_EQ(
      nn::load_balancing_loss(layers, nn::RouterScore::softmax, zeros({10}, DType::f64)).item(), 0);
}

TEST(LoadBalancingLoss, IsTopKAtPerfectBalanceAndLargerOtherwise) {
  Tensor even = zeros({4, 4}, DType::f64);
  nn::Routed routed{even, tensor_of<int64_t>({0, 1, 1, 2, 2, 3, 3, 0}, {4, 2}), {}};
  for (const auto score : {nn::RouterScore::softmax, nn::RouterScore::sigmoid}) {
    EXPECT_NEAR(nn::load_balancing_loss({routed}, score).item(), 2, 1e-12);
  }
  const Tensor biased = tensor_of<double>({3, 0, 0, 0}, {1, 4});
  nn::Routed skewed = routed_of(copy_of(expanded(biased, {4, 4})), 1);
  EXPECT_GT(nn::load_balancing_loss({skewed}, nn::RouterScore::softmax).item(), 3);
}

TEST(RouterLosses, HaveTheGradientsOfDifferencesThroughTheProbabilitiesAlone) {
  const Tensor logits = random_tensor({7, 4}, 3, 2);
  const Tensor chosen = topk(logits, 2).indices;
  const Tensor counted = tensor_of<double>({1, 0, 1, 1, 1, 0, 1}, {7});
  const auto with = [&](auto f) {
    return gradcheck(
        [&](const TensorList& in) {
          return TensorList{f({nn::Routed{in[0], chosen, {}}})};
        },
        {logits});
  };
  using Layers = std::vector<nn::Routed>;
  for (const auto score : {nn::RouterScore::softmax, nn::RouterScore::sigmoid}) {
    EXPECT_EQ(with([&](const Layers& l) { return nn::load_balancing_loss(l, score, counted); }),
              "");
  }
  EXPECT_EQ(with([&](const Layers& l) { return nn::router_z_loss(l, counted); }), "");
}

TEST(RouterZLoss, IsTheMeanOfSquaredLogsumexps) {
  const nn::Routed a = routed_of(random_tensor({3, 4}, 1), 1);
  const nn::Routed b = routed_of(random_tensor({3, 4}, 2), 1);
  double expected = 0;
  for (const nn::Routed* layer : {&a, &b}) {
    for (int64_t n = 0; n < 3; ++n) {
      double total = 0;
      for (const double value : row_of(layer->logits, n)) {
        total += std::exp(value);
      }
      expected += std::log(total) * std::log(total) / 6;
    }
  }
  EXPECT_NEAR(nn::router_z_loss({a, b}).item(), expected, 1e-12);
  expect_error([&] { nn::router_z_loss({a}, zeros({4}, DType::f64)); },
               "counted is [4], logits are [3, 4]");
  expect_error([] { nn::router_z_loss({}); }, "there is no router");
}

TEST(ExpertLoads, AddUpOverMicroBatchesAndNameTheBusiest) {
  const Tensor logits = zeros({4, 4}, DType::f32);
  const nn::Routed even{logits, tensor_of<int64_t>({0, 1, 2, 3}, {4, 1}), {}};
  const nn::Routed odd{logits, tensor_of<int64_t>({0, 0, 0, 1}, {4, 1}), {}};
  nn::ExpertLoads loads;
  EXPECT_EQ(loads.busiest(), 0);
  loads.add({even, odd});
  loads.add({even, even});
  EXPECT_EQ(loads.loads(), (std::vector<Row>{{2, 2, 2, 2}, {4, 2, 1, 1}}));
  EXPECT_EQ(loads.busiest(), 2);
  EXPECT_EQ(loads.idle(), 0);
  loads.clear();
  loads.add({odd}, tensor_of<float>({1, 0, 1, 0}, {4}));
  EXPECT_EQ(loads.busiest(), 4);
  EXPECT_EQ(loads.idle(), 0.75);
}

TEST(Steer, RaisesIdleExpertsAndLowersBusyOnes) {
  Tensor correction = zeros({3}, DType::f32);
  nn::steer(correction, {6, 2, 4}, 0.25);
  EXPECT_TRUE(same_bits(correction, tensor_of<float>({-0.25F, 0.25F, 0}, {3})));
  expect_error([&] { nn::steer(correction, {1, 2}, 0.1); }, "2 loads, 3 experts");
}

// Wang et al. 2024: without any loss the bias alone evens out a router that prefers two experts.
TEST(Steer, EvensOutALopsidedRouter) {
  nn::MoeOptions options = options_of(8, 2);
  options.router.score = nn::RouterScore::sigmoid;
  options.router.correction = true;
  const auto moe = moe_of(options, DType::f32);
  Tensor x = converted(random_tensor({512, 6}, 1), DType::f32);
  x = x + tensor_of<float>({2, 0, 0, 0, 0, 0}, {1, 6});  // what all tokens share
  fill(moe->router.correction, 0);
  nn::ExpertLoads loads;
  loads.add({moe->router(x)});
  EXPECT_GT(loads.busiest(), 2);
  for (int step = 0; step < 400; ++step) {
    loads.clear();
    loads.add({moe->router(x)});
    nn::steer(moe->router.correction, loads.loads()[0], 0.005);
  }
  EXPECT_LT(loads.busiest(), 1.15);
}

}  // namespace
}  // namespace ingot::testing
