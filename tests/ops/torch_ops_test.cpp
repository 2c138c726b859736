// Layers and losses against PyTorch's values and gradients in num-torch-ops/ops.json.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/record.h"
#include "ingot/base/json_library.h"
#include "ingot/ops/attention.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/embedding.h"
#include "ingot/ops/glu.h"
#include "ingot/ops/index.h"
#include "ingot/ops/linear.h"
#include "ingot/ops/losses.h"
#include "ingot/ops/matmul.h"
#include "ingot/ops/norm.h"
#include "ingot/ops/reduce.h"
#include "ingot/ops/rope.h"
#include "ingot/ops/shape.h"
#include "ingot/ops/softmax.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "tests/support/oracle.h"
#include "tests/support/paths.h"

namespace ingot::testing {
namespace {

using nlohmann::json;

// {"shape": […], "data": […]}
Tensor tensor_of_case(const json& value) {
  Shape shape;
  for (const auto& size : value.at("shape")) {
    shape.push_back(size.get<int64_t>());
  }
  const json& data = value.at("data");
  return reshape(tensor_from(data.is_array() ? data : json::array({data})), shape);
}

// The inputs of a case by name, and its attributes.
struct Inputs {
  std::map<std::string, Tensor> tensors;
  json attributes;

  const Tensor& operator[](const char* name) const { return tensors.at(name); }
  double attribute(const char* name) const { return attributes.at(name).get<double>(); }
};
using Run = Tensor (*)(const Inputs&);

CrossEntropyOptions smoothed(const Inputs& in) {
  CrossEntropyOptions options;
  options.label_smoothing = in.attributes.value("label_smoothing", 0.0);
  return options;
}

// x: [H, T, C], positions pos0, pos0 + 1, …
Tensor rotated(const Inputs& in, RopeLayout layout) {
  const Tensor& x = in["x"];
  Tensor positions = arange(x.size(1), DType::i64);
  for (int64_t& position : positions.mutable_values<int64_t>()) {
    position += static_cast<int64_t>(in.attribute("pos0"));
  }
  const RopeTables tables =
      rope_tables(positions, x.size(2), in.attribute("theta"), accumulator(x.dtype()));
  return squeeze(rope(unsqueeze(x, 2), tables.cos, tables.sin, layout), 2);
}

// PyTorch's [B, H, T, C] is [B, T, H, C] here.
Tensor attended(const Inputs& in) {
  const auto swapped = [](const Tensor& x) { return contiguous(permute(x, {0, 2, 1, 3})); };
  AttentionOptions options;
  options.query_offset = in["k"].size(2) - in["q"].size(2);
  options.window = in.attributes.value("window", int64_t{0});
  return swapped(attention(swapped(in["q"]), swapped(in["k"]), swapped(in["v"]), options));
}

// Σ over the chosen experts e of w_e · x E_e, the weights of the two best renormalised.
Tensor mixture(const Inputs& in) {
  const Tensor& x = in["x"];
  const Tensor p = softmax(linear(x, in["g"]));
  const Tensor chosen = topk(p, 2).indices;
  const Tensor best = gather(p, 1, chosen);
  const Tensor weights =
      scatter_add(zeros(p.shape(), p.dtype()), 1, chosen, best / sum(best, -1, Keep::yes));
  const Tensor per_expert = matmul(unsqueeze(x, 0), in["e"]);  // [E, N, D]
  return sum(per_expert * unsqueeze(transpose(weights), -1), 0);
}

Tensor balance(const Inputs& in) {
  const Tensor p = softmax(linear(in["x"], in["g"]));
  const int64_t experts = p.size(-1);
  const Tensor slots = one_hot(reshape(topk(p, 2).indices, {-1}), experts, p.dtype());
  return sum(mean(slots, 0) * mean(p, 0)) * static_cast<double>(experts);
}

// By the beginning of a case's name; the first that fits.
const std::vector<std::pair<std::string, Run>>& runs() {
  static const std::vector<std::pair<std::string, Run>> all = {
      {"linear", [](const Inputs& in) { return linear(in["x"], in["W"], in["b"]); }},
      {"batched matmul", [](const Inputs& in) { return matmul(in["a"], in["b"]); }},
      {"softmax", [](const Inputs& in) { return softmax(in["x"]); }},
      {"log_softmax", [](const Inputs& in) { return log_softmax(in["x"]); }},
      {"layer_norm",
       [](const Inputs& in) { return layer_norm(in["x"], in["w"], in["b"], in.attribute("eps")); }},
      {"rms_norm gemma",
       [](const Inputs& in) { return rms_norm(in["x"], in["w"] + 1, in.attribute("eps")); }},
      {"rms_norm",
       [](const Inputs& in) { return rms_norm(in["x"], in["w"], in.attribute("eps")); }},
      {"gelu exact", [](const Inputs& in) { return gelu(in["x"]); }},
      {"gelu tanh", [](const Inputs& in) { return gelu_tanh(in["x"]); }},
      {"silu", [](const Inputs& in) { return silu(in["x"]); }},
      {"swiglu", [](const Inputs& in) { return gated(in["a"], in["b"], Gate::silu); }},
      {"geglu", [](const Inputs& in) { return gated(in["a"], in["b"], Gate::gelu_tanh); }},
      {"relu squared", [](const Inputs& in) { return relu_squared(in["x"]); }},
      {"embedding", [](const Inputs& in) { return embedding(in["W"], in["ids"]); }},
      {"cross_entropy sum",
       [](const Inputs& in) { return cross_entropy(in["x"], in["t"], Reduction::sum); }},
      {"cross_entropy",
       [](const Inputs& in) {
         return cross_entropy(in["x"], in["t"], Reduction::mean, smoothed(in));
       }},
      {"z-loss",
       [](const Inputs& in) {
         return mean(square(logsumexp(in["x"], -1))) * in.attribute("coef");
       }},
      {"logit softcap",
       [](const Inputs& in) { return tanh(in["x"] / in.attribute("cap")) * in.attribute("cap"); }},
      {"kl_div forward", [](const Inputs& in) { return mean(kl_divergence(in["a"], in["b"])); }},
      {"reverse KL", [](const Inputs& in) { return mean(kl_divergence(in["b"], in["a"])); }},
      {"bce_with_logits",
       [](const Inputs& in) { return mean(softplus(in["x"]) - in["x"] * sigmoid(in["y"])); }},
      {"bradley-terry", [](const Inputs& in) { return -mean(log_sigmoid(in["a"] - in["b"])); }},
      {"rope half-split", [](const Inputs& in) { return rotated(in, RopeLayout::half_split); }},
      {"rope interleaved", [](const Inputs& in) { return rotated(in, RopeLayout::interleaved); }},
      {"attention", attended},
      {"MoE top-2", mixture},
      {"MoE load-balancing", balance},
  };
  return all;
}

void check_case(const json& one, Run run, DType dtype, double limit) {
  Inputs in;
  in.attributes = one.at("attrs");
  for (const auto& [name, value] : one.at("inputs").items()) {
    Tensor x = copy_of(converted(tensor_of_case(value), dtype));
    in.tensors[name] = require_grad(x);
  }
  for (const auto& [name, value] : one.at("int_inputs").items()) {
    in.tensors[name] = tensor_of_case(value);
  }
  const Tensor y = run(in);
  EXPECT_LE(normwise_error(y, tensor_of_case(one.at("output"))), limit) << "output";
  backward(y, converted(tensor_of_case(one.at("grad_output")), dtype));
  for (const auto& [name, value] : one.at("grads").items()) {
    EXPECT_LE(normwise_error(grad(in[name.c_str()]), tensor_of_case(value)), limit)
        << "gradient of " << name;
  }
}

TEST(TorchOps, AgreeWithIngots) {
  if (!data_folder()) {
    GTEST_SKIP() << no_data_folder;
  }
  std::ifstream file(*data_folder() / "num-torch-ops" / "ops.json");
  ASSERT_TRUE(file.good()) << "no num-torch-ops/ops.json in the data folder";
  const json all = json::parse(file);
  int checked = 0;
  for (const json& one : all.at("cases")) {
    const std::string name = one.at("op").get<std::string>();
    const auto found = std::find_if(runs().begin(), runs().end(), [&](const auto& entry) {
      return name.starts_with(entry.first);
    });
    if (found == runs().end()) {
      ADD_FAILURE() << name << ": no operation of this name is known to the test";
      continue;
    }
    SCOPED_TRACE(name);
    check_case(one, found->second, DType::f64, 1e-8);  // the file holds nine digits
    check_case(one, found->second, DType::f32, 4e-6);
    ++checked;
  }
  EXPECT_GE(checked, 30);
}

}  // namespace
}  // namespace ingot::testing
