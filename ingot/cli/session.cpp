#include "ingot/cli/session.h"

#include <algorithm>
#include <bit>

#include "ingot/autograd/checkpoint.h"
#include "ingot/autograd/grad_mode.h"
#include "ingot/base/log.h"
#include "ingot/cli/adapter_model.h"
#include "ingot/cli/frozen_base.h"
#include "ingot/cli/kinds.h"
#include "ingot/cli/model_source.h"
#include "ingot/cli/recipe_effects.h"
#include "ingot/models/routing.h"
#include "ingot/models/stored_model.h"
#include "ingot/models/upcycle.h"
#include "ingot/nn/freeze.h"
#include "ingot/nn/linear.h"
#include "ingot/ops/cross_entropy.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/reduce.h"
#include "ingot/ops/shape.h"
#include "ingot/posttrain/neftune.h"
#include "ingot/quant/product_rounding.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "ingot/train/diagnosis.h"
#include "ingot/train/multi_token_losses.h"
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

// Frozen parameters hold the values themselves; trained ones are the optimizer's to round.
void start_weights(Decoder& model, Optimizer& optimizer, const Recipe& recipe,
                   const AddedRows& added) {
  const auto seed = static_cast<uint64_t>(recipe.seed);
  TensorDict values = recipe.model.from.empty()
                          ? nn::initial_values(model, recipe.init, seed)
                          : source_weights(recipe.model.from, model, added, seed);
  // Heads that a trained model is given start as those of a new one.
  for (size_t k = 0; k < model.mtp.size(); ++k) {
    for (const auto& [name, tensor] : nn::initial_values(*model.mtp[k], recipe.init, seed + k)) {
      const std::string full = concat("mtp.", k, ".", name);
      if (!values.contains(full)) {
        values.add(full, tensor);
      }
    }
  }
  if (recipe.mup.on()) {
    scale_initial(values, recipe.mup, recipe.model.width, recipe.init.scheme);
  }
  if (optimizer.parameters().size() < values.size()) {
    model.load(values);
  }
  for (const auto& [name, tensor] : optimizer.parameters()) {
    if (values.contains(name)) {  // a reward model's head starts at 0
      optimizer.set_master(name, values.at(name));
    }
  }
}

// Noise on the embeddings while training, around the first layer; `documents` are those of the
// batch that is being computed.
void add_noise(Decoder& model, double alpha, std::shared_ptr<const Tensor> documents) {
  model.layers.front()->wrap([alpha, documents = std::move(documents), random = model.randomness()](
                                 const nn::Block::Run& run, const Tensor& x) {
    return run(random->training
                   ? with_embedding_noise(x, *documents, alpha, random->key(site_named("neftune")))
                   : x);
  });
}

// LoRA+: B learns faster than A.
OptimizerConfig with_ratio(OptimizerConfig optim, const peft::PeftConfig& peft) {
  if (peft.low_rank() && peft.plus_ratio > 1) {
    optim.groups.insert(optim.groups.begin(), concat("**.lora_b lr=", peft.plus_ratio));
  }
  return optim;
}

// muP: a rule for each parameter, before those of the recipe.
OptimizerConfig with_widths(OptimizerConfig optim, const Recipe& recipe,
                            const TensorDict& trained) {
  if (recipe.mup.on()) {
    std::vector<std::string> groups;
    for (const auto& [name, p] : trained) {
      groups.push_back(
          mup_group(name, p.rank(), recipe.mup, recipe.model.width, mup_rule(recipe.optim.kind)));
    }
    std::erase(groups, "");
    optim.groups.insert(optim.groups.begin(), groups.begin(), groups.end());
  }
  return optim;
}

bool has_teacher(const Recipe& recipe) {
  return recipe.kind == "distill" && !recipe.distill.teacher.empty();
}

void check_teacher(const Recipe& recipe) {
  const std::string& from = recipe.distill.teacher;
  const DecoderConfig config = source_config(from);
  check(config.vocab == recipe.model.vocab, ErrorKind::config,
        "distill.teacher: must have the student's vocabulary: ", from, " has ", config.vocab,
        " tokens, the model has ", recipe.model.vocab);
}

std::unique_ptr<TeacherCache> teacher_cache_of(const Recipe& recipe) {
  const DistillRun& config = recipe.distill;
  const std::string& from = config.teacher.empty() ? recipe.model.from : config.teacher;
  auto out = std::make_unique<TeacherCache>(
      config.cache,
      TeacherCache::Key{base_hash(from), recipe.dtype, config.top_k, config.temperature});
  log_info("teacher: ", out->rows(), " rows are in ", config.cache);
  return out;
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

BatchInfo info_of(const Batch& batch) {
  BatchInfo info;
  info.documents = batch.documents.value_or(Tensor());
  info.positions = batch.positions.value_or(Tensor());
  return info;
}

Decoder* Session::teacher() {
  if (teacher_ == nullptr && has_teacher(recipe_)) {
    teacher_ = load_stored(open_model(recipe_.distill.teacher), dtype_).model;
    log_info("teacher: ", recipe_.distill.teacher, " is read");
  }
  return teacher_.get();
}

Session::Session(const Recipe& recipe, Device device, const AddedRows& added)
    : recipe_(recipe), dtype_(*dtype_named(recipe.dtype)) {
  if (recipe_.mup.on() && recipe_.mup.base_head_dim > 0) {
    recipe_.model.attention_scale =
        mup_attention_scale(complete(recipe_.model).head_dim, recipe_.mup.base_head_dim);
  }
  TensorDict trained;
  if (recipe_.peft.on()) {
    model_ = frozen_decoder(recipe_, dtype_, device, added);
    adapters_ = recipe_adapters(recipe_, *model_);
    adapters_->require_gradients();
    trained = adapters_->parameters();
  } else {
    model_ = std::make_unique<Decoder>(recipe_.model, dtype_, device);
    trained = nn::freeze(*model_, recipe_.train.freeze);
  }
  if (recipe_.kind == "reward") {
    score_ = std::make_unique<nn::Linear>(recipe_.model.width, 1, nn::Bias::no, dtype_, device);
    score_->require_gradients();
    trained.merge(score_->parameters(), "score.");
  }
  if (has_teacher(recipe_)) {
    check_teacher(recipe_);
  }
  const bool real = device.kind != DeviceKind::meta;
  if (real && recipe_.kind == "distill" && !recipe_.distill.cache.empty()) {
    teacher_cache_ = teacher_cache_of(recipe_);
  } else if (real) {
    teacher();
  } else if (has_teacher(recipe_)) {
    teacher_ = std::make_unique<Decoder>(source_config(recipe_.distill.teacher), dtype_, device);
  }
  model_->randomness()->seed = static_cast<uint64_t>(recipe_.seed);
  optimizer_ = std::make_unique<Optimizer>(
      make_optimizer(with_widths(with_ratio(recipe_.optim, recipe_.peft), recipe_, trained),
                     trained, static_cast<uint64_t>(recipe_.seed)));
  if (!adapters_) {
    start_weights(*model_, *optimizer_, recipe_, added);
  }
  for (size_t i = 0; i < model_->layers.size(); ++i) {
    model_->layers[i]->wrap(named_part(concat("layers.", i)));
    const int64_t recomputed_layers = recipe_.train.recompute_layers;
    if (recipe_.train.recompute &&
        (recomputed_layers == 0 || static_cast<int64_t>(i) < recomputed_layers)) {
      model_->layers[i]->wrap(
          [](const nn::Block::Run& run, const Tensor& x) { return recomputed(run, x); });
    }
  }
  for (const auto& one : model_->mtp) {
    if (recipe_.train.recompute) {
      one->layer.wrap(
          [](const nn::Block::Run& run, const Tensor& x) { return recomputed(run, x); });
    }
  }
  if (const auto format = quant::product_format_named(recipe_.products)) {
    for (const auto& layer : model_->layers) {
      nn::round_products(*layer, rounding_to(*format));
    }
  }
  if (recipe_.train.neftune > 0) {
    add_noise(*model_, recipe_.train.neftune, documents_);
  }
  objective_ = run_kind(recipe_.kind).objective(*this);
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
  out.learning_rate = [this](int64_t step) {
    return learning_rate_of_step(recipe_, step, state.last_step);
  };
  out.last_step = [this](TrainState&) { return last_step(); };
  out.objective = objective_;
  out.optimizer = optimizer_.get();
  out.randomness = model_->randomness().get();
  out.rows_alone = run_kind(recipe_.kind).rows == 1;
  out.invariant = recipe_.deterministic == "invariant";
  out.numbers = recipe_.numbers;
  out.loss_unit = loss_unit(recipe_);
  if (model_->config().moe.experts > 0) {
    out.begin = [this] { loads_.clear(); };
  }
  constexpr int64_t soon = 20;
  if (adapters_) {
    out.after_update = [this](StepReport& report) {
      if (report.step == soon && report.learning_rate > 0) {
        adapters_->check_learning(soon);
      }
    };
  } else if (model_->config().moe.experts > 0 && learns_tokens(recipe_)) {
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
  return [&model, &loads, options, weight = config.mtp_weight](const Batch& batch) {
    const BatchInfo info = info_of(batch);
    std::vector<nn::Routed> routed;
    const Decoder::Ahead made = recording() ? model.hidden_ahead(batch.ids, info, routed)
                                            : Decoder::Ahead{model.hidden(batch.ids, info), {}};
    Loss loss;
    loss.sum = linear_cross_entropy(made.hidden, model.output_weight(), batch.labels, options);
    loss.count = counted(batch.labels);
    add_multi_token_losses(loss, made.further, model.output_weight(), batch, weight, options);
    add_router_losses(loss, routed, model.config().moe, batch.labels, loads);
    return loss;
  };
}

Objective next_token_objective_of(Session& session) {
  return [inner = next_token_objective(session.model(), session.recipe().train, session.loads()),
          documents = session.documents()](const Batch& batch) {
    *documents = batch.documents.value_or(Tensor());
    return inner(batch);
  };
}

Batch with_drawn_labels(const Decoder& model, const Batch& batch) {
  constexpr int64_t piece = 256;  // rows whose logits exist at a time
  const NoGrad quiet;
  const Tensor all = model.hidden(batch.ids, info_of(batch));
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

void place_memory(const Recipe& recipe, Device device, const std::filesystem::path& folder) {
  const LoopConfig& loop = recipe.train;
  for (const Purpose purpose : {Purpose::optimizer, Purpose::activations}) {
    const bool there =
        std::ranges::find(loop.offload, std::string(name(purpose))) != loop.offload.end();
    const auto where = loop.offload_to.empty() ? folder : std::filesystem::path(loop.offload_to);
    allocator(device).keep_on_disk(purpose, there ? where : std::filesystem::path());
  }
}

}  // namespace ingot
