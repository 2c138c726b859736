#include "ingot/models/upcycle.h"

#include "ingot/nn/initialise.h"

namespace ingot {
namespace {

constexpr double router_deviation = 0.02;

void check_equal_start(const DecoderConfig& dense, const DecoderConfig& config) {
  const MoeConfig& moe = config.moe;
  check(dense.moe.experts == 0, ErrorKind::config,
        "upcycle: the model has experts already: moe.experts is ", dense.moe.experts);
  check(moe.experts > 0, ErrorKind::config, "upcycle: moe.experts is 0; say how many to make");
  check(*moe.renormalise && moe.scale == 1 && moe.shared == 0, ErrorKind::config,
        "upcycle: a token's weights must sum to 1 for the model to start as the dense one: ",
        "moe.renormalise is ", *moe.renormalise, ", moe.scale is ", moe.scale, ", moe.shared is ",
        moe.shared, "; set true, 1 and 0");
  check(moe.hidden == dense.hidden, ErrorKind::config,
        "upcycle: experts are copies of the feed-forward layer: moe.hidden is ", moe.hidden,
        ", the model's hidden is ", dense.hidden);
  check(!*dense.mlp_bias, ErrorKind::config,
        "upcycle: experts have no biases, the model's feed-forward layers do");
}

// "layers.2.mlp.up.weight" for "layers.2.moe.experts.7.up.weight"; the name itself for others.
std::string origin(const std::string& name) {
  constexpr std::string_view experts = ".moe.experts.";
  const size_t at = name.find(experts);
  if (at == std::string::npos) {
    return name;
  }
  const size_t rest = name.find('.', at + experts.size());
  return name.substr(0, at) + ".mlp" + name.substr(rest);
}

}  // namespace

std::unique_ptr<Decoder> upcycled(const Decoder& dense, const MoeConfig& moe, uint64_t seed) {
  DecoderConfig config = dense.config();
  config.moe = moe;
  config = complete(config);
  check_equal_start(dense.config(), config);
  auto model = std::make_unique<Decoder>(config, dense.dtype(), dense.embedding.weight.device());
  const TensorDict source = dense.parameters();
  const TensorDict fresh = nn::initial_values(*model, {"normal", router_deviation}, seed);
  model->load(fresh.mapped([&](const std::string& name, const Tensor& value) {
    const std::string from = origin(name);
    return source.contains(from) ? source.at(from) : value;
  }));
  return model;
}

}  // namespace ingot
