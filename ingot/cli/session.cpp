#include "ingot/cli/session.h"

#include <algorithm>
#include <bit>

#include "ingot/autograd/checkpoint.h"
#include "ingot/autograd/grad_mode.h"
#include "ingot/models/pretrained.h"
#include "ingot/models/routing.h"
#include "ingot/models/upcycle.h"
#include "ingot/nn/linear.h"
#include "ingot/ops/cross_entropy.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/reduce.h"
#include "ingot/ops/shape.h"
#include "ingot/quant/product_rounding.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "ingot/train/diagnosis.h"
#include "ingot/train/router_losses.h"

namespace ingot {
namespace {

double counted(const Tensor& labels) {
  if (labels.device().kind == DeviceKind::meta) {
    return static_cast<double>(labels.elements());
  }
  const auto values = labels.values<int64_t>();
  return static_cast<double>(values.size()) -
         static_cast<double>(std::count(values.begin(), values.end(), ignored_label));
}

// The weights of a trained model, as they lie in its files; those of a dense model upcycled where
// the recipe gives it experts.
TensorDict trained_values(const Decoder& model, const std::string& folder, uint64_t seed) {
  const Device device = model.embedding.weight.device();
  const PublishedFolder source = read_published(folder);
  const bool sparse = source.config.moe.experts == 0 && model.config().moe.experts > 0;
  return (sparse ? upcycled_weights(model, source.config, source.weights(source.config), seed)
                 : source.weights(model.config()))
      .mapped([&](const std::string&, const Tensor& x) {
        return converted(moved(x, device), DType::f32);
      });
}

void start_weights(Decoder& model, Optimizer& optimizer, const Recipe& recipe) {
  const TensorDict values =
      recipe.model.from.empty()
          ? nn::initial_values(model, recipe.init, static_cast<uint64_t>(recipe.seed))
          : trained_values(model, recipe.model.from, static_cast<uint64_t>(recipe.seed));
  for (const auto& [name, tensor] : values) {
    optimizer.set_master(name, tensor);
  }
}

std::shared_ptr<const nn::ProductRounding> rounding_to(quant::ProductFormat format) {
  auto out = std::make_shared<nn::ProductRounding>();
  out->input = [format](const Tensor& x) {
    return quant::rounded_straight_through(x, format, quant::Operand::input);
  };
  out->weight = [format](const Tensor& w) {
    return quant::rounded_straight_through(w, format, quant::Operand::weight);
  };
  out->output_gradient = [format](const Tensor& y) {
    return quant::with_rounded_gradient(y, format);
  };
  return out;
}

// The power of two at or above the tokens of a step: with it the gradients of the sum, times
// loss_scale / unit, are about those of the mean times loss_scale.
double loss_unit(const Recipe& recipe) {
  const int64_t tokens = recipe.train.batch * recipe.train.sequence;
  return recipe.dtype == "f16" ? static_cast<double>(std::bit_ceil(static_cast<uint64_t>(tokens)))
                               : 0;
}

}  // namespace

Session::Session(const Recipe& recipe, Device device)
    : recipe_(recipe), dtype_(*dtype_named(recipe.dtype)) {
  model_ = std::make_unique<Decoder>(recipe_.model, dtype_, device);
  model_->require_gradients();
  model_->randomness()->seed = static_cast<uint64_t>(recipe_.seed);
  optimizer_ = std::make_unique<Optimizer>(
      make_optimizer(recipe_.optim, model_->parameters(), static_cast<uint64_t>(recipe_.seed)));
  start_weights(*model_, *optimizer_, recipe_);
  for (size_t i = 0; i < model_->layers.size(); ++i) {
    model_->layers[i]->wrap(named_part(concat("layers.", i)));
    if (recipe_.train.recompute) {
      model_->layers[i]->wrap(
          [](const nn::Block::Run& run, const Tensor& x) { return recomputed(run, x); });
    }
  }
  if (const auto format = quant::product_format_named(recipe_.products)) {
    for (const auto& layer : model_->layers) {
      nn::round_products(*layer, rounding_to(*format));
    }
  }
  objective_ = next_token_objective(*model_, recipe_.train, loads_);
}

TokensPerParameter Session::tokens_per_parameter(int64_t tokens) const {
  const Decoder& model = *model_;
  int64_t tables = model.embedding.weight.elements();
  tables += model.positions ? model.positions->weight.elements() : 0;
  tables += model.head ? model.head->weight.elements() : 0;
  return {tokens, model.count(), model.count() - tables};
}

Training Session::training(std::function<Batch(int64_t)> batch) {
  Training out;
  out.steps = recipe_.train.steps;
  out.accumulate = recipe_.train.accumulate;
  out.max_norm = recipe_.optim.clip;
  out.max_value = recipe_.optim.clip_value;
  out.sam = recipe_.optim.sam;
  out.with_drawn_labels = [model = model_.get()](const Batch& any) {
    return with_drawn_labels(*model, any);
  };
  out.batch = std::move(batch);
  out.micro_batches = [loop = recipe_.train](int64_t step) { return micro_batches(loop, step); };
  out.learning_rate = [config = recipe_](int64_t step) {
    return learning_rate_of_step(config, step);
  };
  out.objective = objective_;
  out.optimizer = optimizer_.get();
  out.randomness = model_->randomness().get();
  out.invariant = recipe_.deterministic == "invariant";
  out.numbers = recipe_.numbers;
  out.loss_unit = loss_unit(recipe_);
  if (model_->config().moe.experts > 0) {
    out.begin = [this] { loads_.clear(); };
    out.after_update = [this](StepReport& report) {
      report.metrics["expert_load_max_over_mean"] = loads_.busiest();
      report.metrics["idle_experts"] = loads_.idle();
      steer_routers(*model_, loads_, model_->config().moe.bias_rate);
      loads_.clear();
    };
  }
  return out;
}

Objective next_token_objective(const Decoder& model, const LoopConfig& config,
                               nn::ExpertLoads& loads) {
  CrossEntropyOptions options;
  options.ignore_index = ignored_label;
  options.z_loss = config.z_loss;
  options.label_smoothing = config.label_smoothing;
  options.softcap = model.config().logit_softcap;
  return [&model, &loads, options](const Batch& batch) {
    BatchInfo info;
    info.documents = batch.documents.value_or(Tensor());
    std::vector<nn::Routed> routed;
    const Tensor hidden =
        recording() ? model.hidden(batch.ids, info, routed) : model.hidden(batch.ids, info);
    Loss loss;
    loss.sum = linear_cross_entropy(hidden, model.output_weight(), batch.labels, options);
    loss.count = counted(batch.labels);
    add_router_losses(loss, routed, model.config().moe, batch.labels, loads);
    return loss;
  };
}

Batch with_drawn_labels(const Decoder& model, const Batch& batch) {
  constexpr int64_t piece = 256;  // rows whose logits exist at a time
  const NoGrad quiet;
  BatchInfo info;
  info.documents = batch.documents.value_or(Tensor());
  const Tensor all = model.hidden(batch.ids, info);
  const int64_t rows = batch.ids.elements();
  const Tensor hidden = reshape(all, {rows, all.size(-1)});
  RandomKey key = model.randomness()->key(site_named("drawn labels"));
  Batch out = batch;
  out.labels = copy_of(batch.labels);
  for (int64_t begin = 0; begin < rows; begin += piece) {
    const int64_t end = std::min(rows, begin + piece);
    const Tensor logits = cast(model.logits_of(slice(hidden, 0, begin, end)), DType::f32);
    key.site += 1;
    // The largest of logit + Gumbel noise is a draw from the softmax.
    const Tensor u = uniform(logits.shape(), 1e-30, 1, key, DType::f32, logits.device());
    const Tensor drawn = argmax(logits - log(-log(u)), -1);
    if (drawn.device().kind == DeviceKind::meta) {
      continue;
    }
    auto labels = out.labels.mutable_values<int64_t>();
    const auto values = drawn.values<int64_t>();
    for (int64_t row = begin; row < end; ++row) {
      int64_t& label = labels[static_cast<size_t>(row)];
      label = label == ignored_label ? label : values[static_cast<size_t>(row - begin)];
    }
  }
  return out;
}

Batch shape_batch(int64_t batch, int64_t sequence) {
  Batch out;
  out.ids = empty({batch, sequence}, DType::i64, meta_device);
  out.labels = empty({batch, sequence}, DType::i64, meta_device);
  return out;
}

}  // namespace ingot
