// Losses of ingot/ops against the files of methods/losses: a file is run by its form (the names of
// its inputs and settings), so that further files of a form need no code. Those of other losses are
// left to tests/posttrain/loss_oracle_test.cpp, where a file of which no test knows the form fails.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/record.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/info_nce.h"
#include "ingot/ops/losses.h"
#include "ingot/ops/reduce.h"
#include "ingot/ops/shape.h"
#include "ingot/ops/softmax.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "tests/support/oracle.h"

namespace ingot::testing {
namespace {

using Results = std::map<std::string, Tensor>;

// Inputs whose gradients are compared, and what is computed from them.
class Run {
 public:
  Run(const Oracle& oracle, DType dtype) : oracle_(oracle), dtype_(dtype) {}

  Results out;

  Tensor input(const std::string& name) const { return oracle_.input(name, dtype_); }
  Tensor leaf(const std::string& name) {
    Tensor x = copy_of(input(name));
    leaves_.emplace_back(name, require_grad(x));
    return x;
  }

  // Adds the loss and its gradients.
  void finish(const Tensor& loss) {
    backward(loss);
    out["loss"] = detach(loss);
    for (const auto& [name, x] : leaves_) {
      out["grad_" + name] = grad(x);
    }
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

// 1 where a label counts.
Tensor counted(const Tensor& labels, DType dtype) {
  return cast(not_equal(labels, scalar(-100, DType::i64)), dtype);
}

// The loss and gradient of linear_cross_entropy with the identity for a weight, times `scale`.
void expect_fused(const Oracle& oracle, DType dtype, const CrossEntropyOptions& options,
                  double scale) {
  Tensor x = copy_of(oracle.input("logits", dtype));
  require_grad(x);
  Tensor identity = zeros({x.size(-1), x.size(-1)}, dtype);
  for (int64_t i = 0; i < x.size(-1); ++i) {
    Tensor one = identity.aliased({}, {}, i * (x.size(-1) + 1));
    fill(one, 1);
  }
  const Tensor loss =
      linear_cross_entropy(x, identity, oracle.input("targets", dtype), options) * scale;
  backward(loss);
  expect_entry(oracle, "loss", loss);
  expect_entry(oracle, "grad_logits", grad(x));
}

void cross_entropy_family(const Oracle& oracle, DType dtype) {
  Run run(oracle, dtype);
  const Tensor logits = run.leaf("logits");
  const Tensor labels = run.input("targets");
  const auto classes = static_cast<double>(logits.size(-1));
  CrossEntropyOptions options;
  options.label_smoothing = oracle.setting("label_smoothing", 0);
  if (oracle.word("style") == "fairseq") {  // e spread over the other V − 1 classes
    options.label_smoothing *= classes / (classes - 1);
  }
  const bool mean = oracle.word("reduction") == "mean";
  const double count = sum(counted(labels, DType::f64)).item();
  run.out["per_token"] = cross_entropy(detach(logits), labels, Reduction::none, options);
  run.out["count"] = scalar(count, DType::i64);
  run.finish(cross_entropy(logits, labels, mean ? Reduction::mean : Reduction::sum, options));
  run.expect_all();
  expect_fused(oracle, dtype, options, mean ? 1 / count : 1);
}

void z_loss(const Oracle& oracle, DType dtype) {
  Run run(oracle, dtype);
  const Tensor logits = run.leaf("logits");
  const Tensor labels = run.input("targets");
  CrossEntropyOptions options;
  options.z_loss = oracle.setting("coefficient");
  run.finish(cross_entropy(logits, labels, Reduction::mean, options));
  run.out["cross_entropy"] = cross_entropy(detach(logits), labels, Reduction::mean);
  const Tensor weights = counted(labels, dtype);
  run.out["z_loss"] = sum(square(logsumexp(detach(logits), -1)) * weights) / sum(weights) *
                      oracle.setting("coefficient");
  run.expect_all();
  expect_fused(oracle, dtype, options, 1 / sum(weights).item());
}

void sequence_log_probabilities(const Oracle& oracle, DType dtype) {
  Run run(oracle, dtype);
  const Tensor logits = run.leaf("logits");
  const Tensor labels = slice(run.input("labels"), 1, 1, logits.size(1));
  const Tensor per_token =
      -cross_entropy(slice(logits, 1, 0, logits.size(1) - 1), labels, Reduction::none);
  const Tensor sums = sum(per_token, -1);
  run.out["per_token"] = detach(per_token);
  run.out["sum"] = detach(sums);
  run.out["mean"] = detach(sums) / sum(counted(labels, dtype), -1);
  run.finish(sum(sums * run.input("upstream")));
  run.expect_all();
}

// Axes: micro-batch, sequence, token.
void token_losses(const Oracle& oracle, DType dtype) {
  Run run(oracle, dtype);
  const Tensor losses = run.leaf("token_losses");
  const Tensor mask = run.input("mask");
  const Tensor sums = sum(losses * mask, -1);
  const Tensor counts = sum(mask, -1);
  const Tensor batch_sums = sum(sums, -1);
  const Tensor batch_counts = sum(counts, -1);
  run.out["sum_per_microbatch"] = detach(batch_sums);
  run.out["tokens_per_microbatch"] = batch_counts;
  const std::string mode = oracle.word("mode");
  if (mode == "token_mean") {
    run.finish(sum(batch_sums) / sum(batch_counts));
  } else if (mode == "mean_of_microbatch_means") {
    run.finish(mean(batch_sums / batch_counts));
  } else {
    ASSERT_EQ(mode, "sequence_mean") << oracle.file;
    run.finish(mean(sums / counts));
  }
  run.expect_all();
}

// p: teacher, q: student.
Tensor divergence(const Oracle& oracle, const Tensor& teacher, const Tensor& student) {
  const std::string kind = oracle.word("kind");
  const double beta = kind == "jsd" ? oracle.setting("beta") : (kind == "reverse" ? 1 : 0);
  if (beta == 0) {
    return kl_divergence(teacher, student);
  }
  if (beta == 1) {
    return kl_divergence(student, teacher);
  }
  const Tensor mixture = log(softmax(teacher) * beta + softmax(student) * (1 - beta));
  return kl_divergence(teacher, mixture) * beta + kl_divergence(student, mixture) * (1 - beta);
}

void divergences(const Oracle& oracle, DType dtype) {
  Run run(oracle, dtype);
  const double temperature = oracle.setting("temperature", 1);
  const Tensor per_token =
      divergence(oracle, run.input("teacher") / temperature, run.leaf("student") / temperature);
  const Tensor mask = run.input("mask");
  run.out["per_token"] = detach(per_token);
  run.finish(sum(per_token * mask) / sum(mask));
  run.expect_all();
}

void distillation(const Oracle& oracle, DType dtype) {
  Run run(oracle, dtype);
  const double temperature = oracle.setting("temperature");
  const double alpha = oracle.setting("alpha");
  const Tensor student = run.leaf("student");
  const Tensor hard = cross_entropy(student, run.input("targets"), Reduction::mean);
  const Tensor soft =
      mean(kl_divergence(run.input("teacher") / temperature, student / temperature));
  run.out["hard"] = detach(hard);
  run.out["soft"] = detach(soft) * (temperature * temperature);
  run.finish(hard * (1 - alpha) + soft * (alpha * temperature * temperature));
  run.expect_all();
}

void contrastive(const Oracle& oracle, DType dtype) {
  Run run(oracle, dtype);
  const Tensor query = run.leaf("query");
  const Tensor key = run.leaf("key");
  const double temperature = oracle.setting("temperature");
  const bool symmetric = oracle.setting("symmetric", 0) != 0;
  run.out["similarity"] = detach(scaled_cosines(query, key, temperature));
  run.finish(
      info_nce(query, key, temperature, symmetric ? Contrast::both_ways : Contrast::one_way));
  run.expect_all();
}

using Check = void (*)(const Oracle&, DType);

// The check of a file's form; null where it is not one of operations.
Check check_of(const Oracle& oracle) {
  const auto takes = [&](std::initializer_list<const char*> names) {
    return oracle.inputs.size() == names.size() &&
           std::all_of(names.begin(), names.end(),
                       [&](const char* name) { return oracle.inputs.contains(name); });
  };
  if (takes({"logits", "targets"})) {
    return oracle.hyper.contains("coefficient") ? z_loss : cross_entropy_family;
  }
  if (takes({"logits", "labels", "upstream"})) {
    return sequence_log_probabilities;
  }
  if (takes({"token_losses", "mask"})) {
    return token_losses;
  }
  if (takes({"student", "teacher", "mask"})) {
    return divergences;
  }
  if (takes({"student", "teacher", "targets"})) {
    return distillation;
  }
  return takes({"query", "key"}) ? contrastive : nullptr;
}

TEST(LossOracles, AreMetByEveryFileOfAKnownForm) {
  int checked = 0;
  for (const auto& path : oracle_files("methods/losses")) {
    const Oracle oracle = read_oracle(path);
    const Check check = check_of(oracle);
    if (check == nullptr) {
      continue;
    }
    SCOPED_TRACE(oracle.file);
    check(oracle, DType::f64);
    check(oracle, DType::f32);
    ++checked;
  }
  EXPECT_GT(checked, 0) << "no file in methods/losses of the oracle folder";
}

}  // namespace
}  // namespace ingot::testing
