#include "ingot/peft/adapters.h"

#include <gtest/gtest.h>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/grad_mode.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/matmul.h"
#include "ingot/ops/reduce.h"
#include "ingot/peft/dora.h"
#include "ingot/peft/ia3.h"
#include "ingot/peft/start.h"
#include "ingot/tensor/copy.h"
#include "tests/peft/tiny_model.h"

namespace ingot::testing {
namespace {

using namespace peft;

Adapters::Options wide() {
  Adapters::Options out;
  out.dtype = DType::f64;
  return out;
}

PeftConfig config(const std::string& kind, std::vector<std::string> targets = {}) {
  PeftConfig out;
  out.kind = kind;
  out.rank = 2;
  out.alpha = 4;
  out.width = 3;
  out.targets = std::move(targets);
  return out;
}

// Values that make every adapter do something.
void disturb(Adapters& adapters, uint64_t seed = 5) {
  for (const auto& [name, p] : adapters.parameters()) {
    Tensor target = p;
    copy_into(target, converted(p, DType::f64) + random_tensor(p.shape(), seed++, 0.2));
  }
}

const std::vector<std::string> kinds = {"lora", "dora", "ia3", "bottleneck"};

TEST(Adapters, StartAsTheModelItself) {
  for (const std::string& kind : kinds) {
    TinyLayers model;
    const Tensor before = model(tiny_input());
    const Adapters adapters(model, config(kind), wide());
    EXPECT_LE(difference(model(tiny_input()), before), 1e-14) << kind;
    EXPECT_GT(adapters.coverage().trained, 0) << kind;
  }
}

TEST(Adapters, AreTheModelAgainWhileTheyAreOffAndWhenTheyAreGone) {
  for (const std::string& kind : kinds) {
    TinyLayers model;
    const Tensor before = model(tiny_input());
    {
      Adapters adapters(model, config(kind), wide());
      disturb(adapters);
      EXPECT_GT(difference(model(tiny_input()), before), 1e-3) << kind;
      {
        const AdaptersOff off(&adapters);
        EXPECT_TRUE(same_bits(model(tiny_input()), before)) << kind;
      }
      EXPECT_GT(difference(model(tiny_input()), before), 1e-3) << kind;
    }
    EXPECT_TRUE(same_bits(model(tiny_input()), before)) << kind;
  }
}

TEST(Adapters, TrainNothingButTheirOwnParameters) {
  for (const std::string& kind : kinds) {
    TinyLayers model;
    Adapters adapters(model, config(kind), wide());
    disturb(adapters);
    adapters.require_gradients();
    backward(sum(square(model(tiny_input()))));
    for (const auto& [name, p] : adapters.parameters()) {
      ASSERT_TRUE(grad(p).defined()) << kind << " " << name;
      EXPECT_GT(norm(grad(p)).item(), 0) << kind << " " << name;
    }
    for (const auto& [name, p] : model.parameters()) {
      EXPECT_EQ(p.node(), nullptr) << name;
    }
  }
}

TEST(Adapters, HaveTheParametersThatTheirRankSays) {
  TinyLayers model;
  const Adapters adapters(model, config("lora", {"wq", "mlp.down"}), wide());
  // rank · (In + Out) for each of two layers.
  EXPECT_EQ(adapters.count(), 2 * (2 * (8 + 8) + 2 * (12 + 8)));
  EXPECT_EQ(adapters.coverage().maps,
            (std::vector<std::string>{"layers.0.attention.wq", "layers.0.mlp.down",
                                      "layers.1.attention.wq", "layers.1.mlp.down"}));
  EXPECT_EQ(adapters.coverage().text("lora"),
            "lora on 4 of 14 linear maps (layers.*.attention.wq, layers.*.mlp.down), not on "
            "layers.*.attention.wk, layers.*.attention.wv, layers.*.attention.wo, "
            "layers.*.mlp.gate, layers.*.mlp.up; 144 of 1264 parameters are trained, 11 %");
}

TEST(Adapters, MergedIntoTheWeightsGiveTheSame) {
  for (const std::string kind : {"lora", "dora", "ia3"}) {
    TinyLayers model;
    Adapters adapters(model, config(kind), wide());
    disturb(adapters);
    const Tensor with = model(tiny_input());
    adapters.merge();
    EXPECT_LE(difference(model(tiny_input()), with), 1e-12) << kind;
    EXPECT_TRUE(model.layers[0]->attention->wq.adapters.empty());
  }
  TinyLayers model;
  Adapters bottleneck(model, config("bottleneck"), wide());
  expect_error([&] { bottleneck.merge(); }, "cannot be merged into weights");
}

TEST(Adapters, OfSeveralSetsAddUpByTheirWeights) {
  TinyLayers model;
  const Tensor base = copy_of(model.layers[0]->attention->wq.weight);
  Adapters::Options second = wide();
  second.name = "second";
  Adapters a(model, config("lora", {"wq"}), wide());
  Adapters b(model, config("lora", {"wq"}), second);
  disturb(a, 5);
  disturb(b, 50);
  const nn::Linear& map = model.layers[0]->attention->wq;
  const auto delta = [&](double wa, double wb) {
    a.set_weight(wa);
    b.set_weight(wb);
    return map.plain_weight(DType::f64) - base;
  };
  const Tensor only_a = delta(1, 0);
  const Tensor only_b = delta(0, 1);
  EXPECT_LE(difference(delta(0.5, -2), only_a * 0.5 - only_b * 2.0), 1e-13);
  b.set_active(false);
  EXPECT_LE(difference(map.plain_weight(DType::f64) - base, only_a * 0.5), 1e-13);
}

TEST(Adapters, DoubleTheirDeltaWithDoubleAlpha) {
  TinyLayers model;
  PeftConfig one = config("lora", {"wq"});
  const auto delta = [&](const PeftConfig& c) {
    Adapters adapters(model, c, wide());
    disturb(adapters);
    const nn::Linear& map = model.layers[0]->attention->wq;
    return map.plain_weight(DType::f64) - map.weight;
  };
  const Tensor once = delta(one);
  one.alpha *= 2;
  EXPECT_LE(difference(delta(one), once * 2.0), 1e-15);
  one.alpha /= 2;
  one.rslora = true;
  EXPECT_LE(difference(delta(one), once * std::sqrt(2.0)), 1e-14);
}

TEST(Adapters, AreTheSameOverAWeightInFewBits) {
  for (const std::string base : {"nf4", "int8"}) {
    for (const std::string kind : {"lora", "dora", "ia3"}) {
      TinyLayers coded, plain;
      for (const auto& [path, map] : nn::linear_maps(coded)) {
        keep_in_few_bits(*map, base);
      }
      const auto from = nn::linear_maps(coded);
      const auto to = nn::linear_maps(plain);
      for (size_t i = 0; i < to.size(); ++i) {
        copy_into(to[i].second->weight, from[i].second->plain_weight(DType::f64));
      }
      Adapters over_codes(coded, config(kind), wide());
      Adapters over_values(plain, config(kind), wide());
      disturb(over_codes);
      disturb(over_values);
      over_codes.require_gradients();
      over_values.require_gradients();
      const Tensor a = coded(tiny_input());
      const Tensor b = plain(tiny_input());
      EXPECT_LE(difference(a, b), 1e-12) << base << " " << kind;
      backward(sum(square(a)));
      backward(sum(square(b)));
      for (const auto& [name, p] : over_codes.parameters()) {
        EXPECT_LE(difference(grad(p), grad(over_values.parameters().at(name))), 1e-11) << name;
      }
    }
  }
}

TEST(Adapters, CannotBeMergedIntoAWeightInFewBits) {
  TinyLayers model;
  Adapters adapters(model, config("lora", {"wq"}), wide());
  for (const Adapters::Entry& entry : adapters.entries()) {
    keep_in_few_bits(*entry.map, "nf4");
  }
  expect_error(
      [&] { adapters.merge(); },
      "layers.0.attention.wq: its weight is kept in few bits and cannot take an adapter in");
}

TEST(Adapters, StartFromPrincipalComponentsWithTheSameModel) {
  TinyLayers model;
  const Tensor before = model(tiny_input());
  const Tensor weight = copy_of(model.layers[0]->attention->wq.weight);
  PeftConfig c = config("lora");
  c.init = "pissa";
  Adapters adapters(model, c, wide());
  start_from_weights(adapters);
  EXPECT_LE(difference(model(tiny_input()), before), 1e-12);
  // What is exported applies to the weight as it was: after a change of B, by that change alone.
  auto& lora = dynamic_cast<Lora&>(*adapters.entries()[0].adapter);
  disturb(adapters);
  const LowRankPair pair = exported(lora);
  EXPECT_EQ(pair.a.size(0), 4);
  EXPECT_LE(difference(weight + matmul(pair.b, pair.a) * lora.scaling(),
                       model.layers[0]->attention->wq.plain_weight(DType::f64)),
            1e-12);
}

TEST(Adapters, FitWhatNf4LosesBetterThanNf4Alone) {
  TinyLayers fitted, rounded;
  const Tensor exact = copy_of(fitted.layers[0]->mlp->down.weight);
  PeftConfig c = config("lora");
  c.init = "loftq";
  c.base = "nf4";
  Adapters adapters(fitted, c, wide());
  start_from_weights(adapters);
  keep_in_few_bits(rounded.layers[0]->mlp->down, "nf4");
  const auto error = [&](const TinyLayers& model) {
    return norm(model.layers[0]->mlp->down.plain_weight(DType::f64) - exact).item();
  };
  EXPECT_LT(error(fitted), 0.9 * error(rounded));
}

TEST(Adapters, RefuseTargetsThatMeanNothing) {
  TinyLayers model;
  expect_error(
      [&] {
        Adapters(model, config("lora", {"wq", "w_k"}), wide());
      },
      "peft.targets: 'w_k' matches none of the 14 linear maps; the nearest is 'wk'");
  expect_error([&] { Adapters(model, config("lora", {"layers.7.**"}), wide()); },
               "peft.targets: 'layers.7.**' matches none of the 14 linear maps");
  nn::Norm none(nn::NormKind::rms, 8, 1e-5, DType::f64, cpu_device);
  expect_error([&] { Adapters(none, config("lora"), wide()); },
               "peft: the model has no linear maps");
  EXPECT_TRUE(model.layers[0]->attention->wq.adapters.empty());
}

TEST(Adapters, SayWhereBStaysZero) {
  TinyLayers model;
  Adapters adapters(model, config("lora", {"wq", "wo"}), wide());
  expect_error([&] { adapters.check_learning(20); },
               "peft: after 20 steps B is still 0 in 4 of 4 adapters: layers.*.attention.wq, "
               "layers.*.attention.wo; nothing reaches them");
  disturb(adapters);
  adapters.check_learning(20);
}

TEST(Adapters, DropTheirInputInTrainingAlone) {
  TinyLayers model;
  const auto random = std::make_shared<Randomness>();
  Adapters::Options options = wide();
  options.randomness = random;
  PeftConfig c = config("lora");
  c.dropout = 0.5;
  Adapters adapters(model, c, options);
  disturb(adapters);
  const Tensor quiet = model(tiny_input());
  random->training = true;
  const Tensor first = model(tiny_input());
  EXPECT_GT(difference(first, quiet), 1e-3);
  EXPECT_TRUE(same_bits(model(tiny_input()), first));
  random->step = 1;
  EXPECT_GT(difference(model(tiny_input()), first), 1e-3);
  random->training = false;
  EXPECT_TRUE(same_bits(model(tiny_input()), quiet));
}

TEST(PeftConfig, RefusesKeysThatContradictEachOther) {
  PeftConfig c;
  c.base = "nf4";
  expect_error([&] { check_peft(c); },
               "peft.base: \"nf4\" keeps frozen weights in few bits, but peft.kind is empty");
  c = config("ia3");
  c.init = "pissa";
  expect_error([&] { check_peft(c); },
               "peft.init: \"pissa\" is a start of lora: peft.kind is \"ia3\"");
  c = config("lora");
  c.init = "loftq";
  expect_error([&] { check_peft(c); },
               "peft.init: loftq fits what NF4 loses: peft.base is \"as_is\"; set it to \"nf4\"");
  c.init = "pissa";
  c.base = "int8";
  expect_error([&] { check_peft(c); }, "peft.init: pissa changes the frozen weight");
  c = config("");
  c.from = "x";
  expect_error([&] { check_peft(c); }, "peft.from: names an adapter, but peft.kind is empty");
}

}  // namespace
}  // namespace ingot::testing
