// Post-training losses against the files of methods/losses: every file is run by its form (the
// names of its inputs and settings), so that further files of a form need no code. Forms that
// tests/ops/loss_oracle_test.cpp runs are left to it.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/record.h"
#include "ingot/ops/cross_entropy.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/reduce.h"
#include "ingot/ops/shape.h"
#include "ingot/posttrain/advantages.h"
#include "ingot/posttrain/cpo.h"
#include "ingot/posttrain/divergence.h"
#include "ingot/posttrain/dpo.h"
#include "ingot/posttrain/ewc.h"
#include "ingot/posttrain/grpo.h"
#include "ingot/posttrain/kl_estimators.h"
#include "ingot/posttrain/kto.h"
#include "ingot/posttrain/orpo.h"
#include "ingot/posttrain/ppo.h"
#include "ingot/posttrain/reinforce.h"
#include "ingot/posttrain/reward.h"
#include "ingot/posttrain/sequence_logprobs.h"
#include "ingot/posttrain/simpo.h"
#include "ingot/posttrain/token_mean.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "tests/support/oracle.h"

namespace ingot::testing {
namespace {

// Inputs whose gradients are compared, and what is computed from them.
class Fixture {
 public:
  Fixture(const Oracle& oracle, DType dtype) : oracle_(oracle), dtype_(dtype) {}

  std::map<std::string, Tensor> out;

  Tensor input(const std::string& name) const { return oracle_.input(name, dtype_); }
  double setting(const std::string& name) const { return oracle_.setting(name); }
  DType dtype() const { return dtype_; }
  const Oracle& oracle() const { return oracle_; }
  Tensor leaf(const std::string& name) {
    Tensor x = copy_of(input(name));
    leaves_.emplace_back(name, require_grad(x));
    return x;
  }

  // The mean of the losses is the loss; its gradients are compared too.
  void finish(const Tensor& loss) {
    backward(loss);
    out["loss"] = detach(loss);
    for (const auto& [name, x] : leaves_) {
      out["grad_" + name] = grad(x);
    }
  }
  void finish_mean(const Tensor& losses) {
    out["losses"] = detach(losses);
    finish(mean(losses));
  }

  void expect_all() const {
    for (const auto& [entry, value] : oracle_.expected.items()) {
      const auto got = out.find(entry);
      ASSERT_NE(got, out.end()) << oracle_.file << ": nothing computed for " << entry;
      expect_entry(oracle_, entry, got->second, dtype_);
    }
  }

 private:
  const Oracle& oracle_;
  DType dtype_;
  std::vector<std::pair<std::string, Tensor>> leaves_;
};

Tensor in_order(const Tensor& chosen, const Tensor& rejected) {
  return scalar(pairs_in_order(chosen, rejected) / static_cast<double>(chosen.elements()),
                DType::f64);
}

void bradley_terry(Fixture& run) {
  const Tensor chosen = run.leaf("chosen");
  const Tensor rejected = run.leaf("rejected");
  const bool has_margin = run.oracle().inputs.contains("margin");
  const Tensor margin = has_margin ? run.input("margin") : Tensor();
  const double center = run.oracle().setting("center_coefficient", 0);
  run.out["accuracy"] = in_order(detach(chosen), detach(rejected));
  run.finish_mean(bradley_terry_losses(chosen, rejected, margin, center));
  // The file's losses are those before centring.
  run.out["losses"] = bradley_terry_losses(detach(chosen), detach(rejected), margin);
}

void direct_preference(Fixture& run) {
  const PairLogprobs policy{{run.leaf("policy_chosen"), run.input("length_chosen")},
                            {run.leaf("policy_rejected"), run.input("length_rejected")}};
  const PairLogprobs reference{{run.input("ref_chosen"), run.input("length_chosen")},
                               {run.input("ref_rejected"), run.input("length_rejected")}};
  DpoConfig config;
  config.loss = run.oracle().word("kind");
  config.beta = run.setting("beta");
  config.label_smoothing = run.oracle().setting("label_smoothing", 0);
  const PairLosses found = dpo_losses(policy, reference, config);
  run.out["chosen_rewards"] = found.chosen_rewards;
  run.out["rejected_rewards"] = found.rejected_rewards;
  run.out["reward_accuracy"] = in_order(found.chosen_rewards, found.rejected_rewards);
  EXPECT_NEAR(
      pair_metrics(found, policy).at("accuracy"),
      run.out["reward_accuracy"].item() * static_cast<double>(found.chosen_rewards.elements()),
      1e-9);
  run.finish_mean(found.losses);
}

PairLogprobs summed_pairs(Fixture& run) {
  return {{run.leaf("logp_chosen"), run.input("length_chosen")},
          {run.leaf("logp_rejected"), run.input("length_rejected")}};
}

void simpo(Fixture& run) {
  run.finish_mean(
      simpo_losses(summed_pairs(run), {run.setting("beta"), run.setting("gamma")}).losses);
}

void cpo(Fixture& run) {
  const PairLogprobs policy = summed_pairs(run);
  const Tensor preference = mean(cpo_preference(policy, run.setting("beta")));
  const Tensor nll = cpo_token_nll(policy);
  run.out["preference"] = detach(preference);
  run.out["nll"] = detach(nll);
  run.finish(preference + nll * run.setting("alpha"));
}

void orpo(Fixture& run) {
  const Tensor chosen = run.leaf("mean_logp_chosen");
  const Tensor rejected = run.leaf("mean_logp_rejected");
  run.out["log_odds"] = detach(log_odds(chosen) - log_odds(rejected));
  run.finish_mean(orpo_losses(chosen, rejected, run.leaf("nll_chosen"), run.setting("lambda")));
}

void kto(Fixture& run) {
  const KtoConfig config{run.setting("beta"), run.setting("weight_desirable"),
                         run.setting("weight_undesirable")};
  const Tensor desirable =
      not_equal(run.oracle().input("desirable", DType::f64), scalar(0, DType::f64));
  run.finish_mean(kto_losses(run.leaf("policy"), run.input("reference"), desirable,
                             number_from(run.oracle().inputs.at("kl")), config));
}

// hidden = logits and head = identity, so that the kernel without logits is what is compared.
void sequence_log_probabilities(Fixture& run) {
  const Tensor logits = run.leaf("logits");
  const int64_t T = logits.size(1), V = logits.size(2);
  Tensor identity = zeros({V, V}, run.dtype());
  for (int64_t i = 0; i < V; ++i) {
    Tensor one = identity.aliased({}, {}, i * (V + 1));
    fill(one, 1);
  }
  const Tensor hidden = slice(logits, 1, 0, T - 1);
  const Tensor labels = contiguous(slice(run.input("labels"), 1, 1, T));
  const SequenceLogprobs got = sequence_logprobs(hidden, identity, labels);
  run.out["per_token"] = detach(token_logprobs(hidden, identity, labels));
  run.out["sum"] = detach(got.sums);
  run.out["mean"] = detach(got.means());
  run.finish(sum(got.sums * run.input("upstream")));
}

double beta_of(const Oracle& oracle) {
  const std::string kind = oracle.word("kind");
  return kind == "jsd" ? oracle.setting("beta") : (kind == "reverse" ? 1 : 0);
}

void divergences(Fixture& run) {
  const Tensor rows = divergence(run.input("teacher"), run.leaf("student"), beta_of(run.oracle()),
                                 run.oracle().setting("temperature", 1));
  const Tensor mask = run.input("mask");
  run.out["per_token"] = detach(rows);
  run.finish(sum(rows * mask) / sum(mask));
}

void distillation(Fixture& run) {
  const double T = run.setting("temperature");
  const double alpha = run.setting("alpha");
  const Tensor student = run.leaf("student");
  const Tensor hard = cross_entropy(student, run.input("targets"), Reduction::mean);
  const Tensor soft = mean(divergence(run.input("teacher"), student, 0, T)) * (T * T);
  run.out["hard"] = detach(hard);
  run.out["soft"] = detach(soft);
  run.finish(hard * (1 - alpha) + soft * alpha);
}

void clipped_policy(Fixture& run) {
  const Oracle& oracle = run.oracle();
  GrpoConfig config;
  config.clip = {run.setting("clip_low"), run.setting("clip_high"), oracle.setting("dual_clip", 0)};
  config.mean.over = oracle.word("aggregation");
  config.mean.max_length = static_cast<int64_t>(oracle.setting("max_length", 0));
  config.ratio = oracle.word("ratio");
  config.beta = run.setting("beta");
  const Tensor reference = config.beta == 0 ? Tensor() : run.input("ref_logps");
  const GrpoLoss found = grpo_loss(run.leaf("logps"), run.input("old_logps"), reference,
                                   run.input("advantages"), run.input("mask"), config);
  run.out["clip_fraction"] = found.clip_fraction;
  run.finish(found.loss);
}

void ppo(Fixture& run) {
  const Tensor logits = run.leaf("logits");
  PpoBatch batch;
  batch.logps = -cross_entropy(logits, run.input("actions"), Reduction::none);
  batch.values = run.leaf("values");
  batch.entropies = entropies(logits);
  batch.old_logps = run.input("old_logps");
  batch.old_values = run.input("old_values");
  batch.advantages = run.input("advantages");
  batch.returns = run.input("returns");
  batch.mask = run.input("mask");
  PpoConfig config;
  config.clip = {run.setting("clip"), run.setting("clip"), 0};
  config.value_clip = run.setting("value_clip");
  config.value_coefficient = run.setting("value_coefficient");
  config.entropy_coefficient = run.setting("entropy_coefficient");
  const PpoLoss found = ppo_loss(batch, config);
  run.out["policy"] = found.policy;
  run.out["value"] = found.value;
  run.out["entropy"] = found.entropy;
  run.out["approx_kl"] = found.approx_kl;
  run.finish(found.loss);
}

void generalized_advantages(Fixture& run) {
  const Tensor mask = run.input("mask");
  const Advantages found = gae(run.input("rewards"), run.input("values"), mask,
                               run.setting("gamma"), run.setting("lambda"));
  run.out["advantages"] = found.advantages;
  run.out["returns"] = found.returns;
  run.out["whitened"] = whitened(found.advantages, mask);
}

void group_advantages(Fixture& run) {
  const Tensor rewards = run.input("rewards");
  const std::string kind = run.oracle().word("kind");
  Tensor& found = run.out["advantages"];
  if (kind == "rloo") {
    found = leave_one_out_advantages(rewards);
  } else if (kind == "dr_grpo") {
    found = centered_advantages(rewards);
  } else {
    ASSERT_EQ(kind, "grpo") << run.oracle().file;
    const bool sample = run.oracle().word("std") == "sample";
    found = normalized_advantages(rewards, run.setting("eps"),
                                  sample ? Deviation::sample : Deviation::population);
  }
}

void reinforce(Fixture& run) {
  const Tensor rewards = run.input("rewards");
  Tensor advantages;
  if (run.oracle().word("baseline") == "leave_one_out") {
    const auto group = static_cast<int64_t>(run.setting("group"));
    advantages = reshape(leave_one_out_advantages(reshape(rewards, {-1, group})), rewards.shape());
  } else {
    advantages = rewards - run.input("baseline");
  }
  run.out["advantages"] = advantages;
  run.finish(reinforce_loss(run.leaf("logps"), run.input("mask"), advantages));
}

void divergence_estimates(Fixture& run) {
  const Tensor found = kl_estimates(run.leaf("logps"), run.input("ref_logps"),
                                    kl_estimator_of(run.oracle().word("kind")));
  run.out["per_token"] = detach(found);
  run.finish(mean_of_tokens(found, run.input("mask")));
}

void importance_sampling(Fixture& run) {
  const Tensor mask = run.input("mask");
  const bool by_token = run.oracle().word("level") == "token";
  const Tensor weights =
      importance_weights(run.input("train_logps"), run.input("rollout_logps"), mask,
                         run.setting("cap"), by_token ? WeightLevel::token : WeightLevel::sequence);
  run.out["weights"] = weights;
  run.finish(weighted_reinforce_loss(run.leaf("logps"), weights, mask, run.input("advantages")));
}

void elastic_weights(Fixture& run) {
  const Tensor fisher = fisher_diagonal(run.input("sample_grads"));
  run.out["fisher"] = fisher;
  run.finish(
      ewc_penalty({run.leaf("theta")}, {run.input("theta_star")}, {fisher}, run.setting("lambda")));
}

using Check = void (*)(Fixture&);
struct Form {
  std::vector<const char*> inputs;
  Check check;
};

const std::vector<Form>& forms() {
  static const std::vector<Form> all = {
      {{"chosen", "rejected"}, bradley_terry},
      {{"chosen", "rejected", "margin"}, bradley_terry},
      {{"policy_chosen", "policy_rejected", "ref_chosen", "ref_rejected", "length_chosen",
        "length_rejected"},
       direct_preference},
      {{"mean_logp_chosen", "mean_logp_rejected", "nll_chosen"}, orpo},
      {{"policy", "reference", "desirable", "kl"}, kto},
      {{"logits", "labels", "upstream"}, sequence_log_probabilities},
      {{"student", "teacher", "mask"}, divergences},
      {{"student", "teacher", "targets"}, distillation},
      {{"logps", "old_logps", "mask", "advantages"}, clipped_policy},
      {{"logps", "old_logps", "mask", "advantages", "ref_logps"}, clipped_policy},
      {{"logits", "actions", "old_logps", "advantages", "values", "old_values", "returns", "mask"},
       ppo},
      {{"rewards", "values", "mask"}, generalized_advantages},
      {{"rewards"}, group_advantages},
      {{"rewards", "logps", "mask"}, reinforce},
      {{"rewards", "logps", "mask", "baseline"}, reinforce},
      {{"logps", "ref_logps", "mask"}, divergence_estimates},
      {{"train_logps", "rollout_logps", "logps", "advantages", "mask"}, importance_sampling},
      {{"theta", "theta_star", "sample_grads"}, elastic_weights}};
  return all;
}

// Forms that tests/ops/loss_oracle_test.cpp runs.
const std::vector<std::vector<const char*>> elsewhere = {
    {"logits", "targets"}, {"token_losses", "mask"}, {"query", "key"}};

bool takes(const Oracle& oracle, const std::vector<const char*>& names) {
  return oracle.inputs.size() == names.size() &&
         std::all_of(names.begin(), names.end(),
                     [&](const char* name) { return oracle.inputs.contains(name); });
}

Check check_of(const Oracle& oracle) {
  if (takes(oracle, {"logp_chosen", "logp_rejected", "length_chosen", "length_rejected"})) {
    return oracle.hyper.contains("gamma") ? simpo : cpo;
  }
  for (const Form& form : forms()) {
    if (takes(oracle, form.inputs)) {
      return form.check;
    }
  }
  return nullptr;
}

TEST(PosttrainOracles, AreMetByEveryFile) {
  int checked = 0;
  for (const auto& path : oracle_files("methods/losses")) {
    const Oracle oracle = read_oracle(path);
    const Check check = check_of(oracle);
    const bool other = std::any_of(elsewhere.begin(), elsewhere.end(),
                                   [&](const auto& names) { return takes(oracle, names); });
    if (check == nullptr) {
      EXPECT_TRUE(other) << oracle.file << ": no test knows a loss with its inputs and settings";
      continue;
    }
    SCOPED_TRACE(oracle.file);
    for (const DType dtype : {DType::f64, DType::f32}) {
      Fixture run(oracle, dtype);
      check(run);
      run.expect_all();
    }
    ++checked;
  }
  EXPECT_GT(checked, 0) << "no file in methods/losses of the oracle folder";
}

}  // namespace
}  // namespace ingot::testing
