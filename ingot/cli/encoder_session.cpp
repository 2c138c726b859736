#include "ingot/cli/encoder_session.h"

#include <algorithm>
#include <cmath>

#include "ingot/autograd/checkpoint.h"
#include "ingot/autograd/grad_mode.h"
#include "ingot/autograd/record.h"
#include "ingot/ops/counted_places.h"
#include "ingot/ops/cross_entropy.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/index.h"
#include "ingot/ops/info_nce.h"
#include "ingot/ops/reduce.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "ingot/train/diagnosis.h"

namespace ingot {
namespace {

constexpr int64_t most_candidates = 100;

// The published weights that the model has a place for; its other heads start anew.
TensorDict trained_values(const Bert& model, const std::string& folder) {
  const PublishedBert source = read_bert(folder);
  BertConfig shared = model.config();
  shared.mlm = shared.mlm && source.config.mlm;
  shared.labels = shared.labels == source.config.labels ? shared.labels : 0;
  const Bert planned(shared, DType::f32, meta_device);
  TensorDict out = from_published(bert_names(shared), source.tensors, planned.parameters());
  if (model.pooler && !out.contains("pooler.weight") &&
      source.tensors.contains("bert.pooler.dense.weight")) {
    out.add("pooler.weight", source.tensors.at("bert.pooler.dense.weight"));
    out.add("pooler.bias", source.tensors.at("bert.pooler.dense.bias"));
  }
  return out;
}

void start_weights(Bert& model, Optimizer& optimizer, const EncoderRecipe& recipe) {
  const TensorDict trained =
      recipe.model.from.empty() ? TensorDict() : trained_values(model, recipe.model.from);
  const TensorDict fresh =
      nn::initial_values(model, recipe.init, static_cast<uint64_t>(recipe.seed));
  for (const auto& [name, tensor] : fresh) {
    optimizer.set_master(name, trained.contains(name)
                                   ? converted(moved(trained.at(name), tensor.device()), DType::f32)
                                   : tensor);
  }
}

// The places of an "mlm" batch that are to be named. On the meta device about as many as there are:
// of each row `share` of the tokens within [CLS] and [SEP], rounded up or down by chance, and two
// standard deviations of the sum over all rows.
Tensor hidden_places(const Tensor& labels, double share) {
  if (labels.device().kind != DeviceKind::meta) {
    return counted_places(labels);
  }
  const auto rows = static_cast<double>(labels.size(0));
  const double of_row = std::max(1.0, share * static_cast<double>(labels.size(1) - 2));
  const auto most = static_cast<int64_t>(std::ceil(rows * of_row + std::sqrt(rows)));
  return arange(std::min(most, labels.elements()), DType::i64, labels.device());
}

// How many rows have their largest number at their label.
double hits(const Tensor& scores, const Tensor& labels) {
  const Tensor found = argmax(detach(scores), -1);
  if (found.device().kind == DeviceKind::meta) {
    return 0;
  }
  const auto best = found.values<int64_t>();
  const auto wanted = labels.values<int64_t>();
  double out = 0;
  for (size_t i = 0; i < best.size(); ++i) {
    out += best[i] == wanted[i] ? 1 : 0;
  }
  return out;
}

Loss masked_words(const Bert& model, const Batch& batch, const BertInfo& info, double share) {
  const Tensor places = hidden_places(batch.labels, share);
  const Tensor rows =
      reshape(model.hidden(batch.ids, info), {batch.ids.elements(), model.config().width});
  const Tensor labels = index_select(reshape(batch.labels, {batch.labels.elements()}), 0, places);
  const Tensor logits = model.logits_of(index_select(rows, 0, places));
  Loss loss;
  loss.sum = cross_entropy(logits, labels, Reduction::sum);
  loss.count = static_cast<double>(places.elements());
  loss.metrics["accuracy"] = hits(logits, labels);
  return loss;
}

Loss classes(const Bert& model, const Batch& batch, const BertInfo& info) {
  const Tensor logits = model.class_logits(batch.ids, info);
  Loss loss;
  loss.sum = cross_entropy(logits, batch.labels, Reduction::sum);
  loss.count = static_cast<double>(batch.labels.elements());
  loss.metrics["accuracy"] = hits(logits, batch.labels);
  return loss;
}

Loss pairs(const Bert& model, const Batch& batch, const BertInfo& info, double temperature) {
  const int64_t count = batch.labels.elements();
  const Tensor all = model.sentence_embedding(batch.ids, info);  // [2N, D]
  const Tensor query = contiguous(slice(all, 0, 0, count));
  const Tensor key = contiguous(slice(all, 0, count, 2 * count));
  Loss loss;
  loss.count = static_cast<double>(count);
  loss.sum = info_nce(query, key, temperature, Contrast::both_ways) * loss.count;
  const NoGrad quiet;
  loss.metrics["recall"] =
      hits(scaled_cosines(detach(query), detach(key), 1), arange(count, DType::i64));
  return loss;
}

// Recall among all held-out pairs at once, as many as are candidates.
void add_recall(const Bert& model, const EncoderData& data, std::map<std::string, double>& out) {
  TensorList queries;
  TensorList keys;
  int64_t found = 0;
  for (int64_t i = 0; i < data.validation_batches && found < most_candidates; ++i) {
    const Batch batch = data.validation(i);
    const int64_t count = batch.labels.elements();
    const Tensor all =
        model.sentence_embedding(batch.ids, {{}, lengths_of(batch.ids, data.tokens.padding)});
    const int64_t taken = std::min(count, most_candidates - found);
    queries.push_back(contiguous(slice(all, 0, 0, taken)));
    keys.push_back(contiguous(slice(all, 0, count, count + taken)));
    found += taken;
  }
  const Tensor scores = scaled_cosines(concat(queries, int64_t{0}), concat(keys, int64_t{0}), 1);
  const auto candidates = static_cast<double>(found);
  out["recall_at_1"] = hits(scores, arange(found, DType::i64)) / candidates;
  out["candidates"] = candidates;
  out["chance"] = 1 / candidates;
}

}  // namespace

EncoderSession::EncoderSession(const EncoderRecipe& recipe, const EncoderData& data, Device device)
    : recipe_(recipe) {
  BertConfig config = recipe_.model;
  config.labels = static_cast<int64_t>(data.labels.size());
  config.padding_id = data.tokens.padding;
  model_ = std::make_unique<Bert>(config, *dtype_named(recipe_.dtype), device);
  model_->require_gradients();
  model_->randomness()->seed = static_cast<uint64_t>(recipe_.seed);
  optimizer_ = std::make_unique<Optimizer>(make_optimizer(recipe_.optim, model_->parameters()));
  start_weights(*model_, *optimizer_, recipe_);
  for (size_t i = 0; i < model_->layers.size(); ++i) {
    model_->layers[i]->wrap(named_part(concat("layers.", i)));
    if (recipe_.train.recompute) {
      model_->layers[i]->wrap(
          [](const nn::Block::Run& run, const Tensor& x) { return recomputed(run, x); });
    }
  }
  objective_ = encoder_objective(*model_, recipe_, data.tokens.padding);
}

Training EncoderSession::training(std::function<Batch(int64_t)> batch) {
  Training out;
  out.steps = recipe_.train.steps;
  out.accumulate = recipe_.train.accumulate;
  out.max_norm = recipe_.optim.clip;
  out.max_value = recipe_.optim.clip_value;
  out.sam = recipe_.optim.sam;
  out.with_drawn_labels = [](const Batch&) -> Batch {
    throw Error(ErrorKind::config,
                "optim.kind: needs labels drawn from the model, which encoders do not give");
  };
  out.batch = std::move(batch);
  out.learning_rate = [config = recipe_](int64_t step) {
    return learning_rate(config.schedule.schedule, config.optim.learning_rate, step,
                         config.train.steps);
  };
  out.objective = objective_;
  out.optimizer = optimizer_.get();
  out.randomness = model_->randomness().get();
  out.rows_alone = recipe_.kind != "embed";  // texts are told from one another
  out.numbers = recipe_.numbers;
  return out;
}

Objective encoder_objective(const Bert& model, const EncoderRecipe& recipe, int64_t padding) {
  return [&model, kind = recipe.kind, temperature = recipe.embed.temperature,
          share = recipe.masking.share, padding](const Batch& batch) {
    const BertInfo info = {{}, lengths_of(batch.ids, padding)};
    if (kind == "mlm") {
      return masked_words(model, batch, info, share);
    }
    return kind == "classify" ? classes(model, batch, info)
                              : pairs(model, batch, info, temperature);
  };
}

std::map<std::string, double> encoder_scores(const Bert& model, const EncoderRecipe& recipe,
                                             const EncoderData& data) {
  const NoGrad quiet;
  const Objective objective = encoder_objective(model, recipe, data.tokens.padding);
  std::map<std::string, double> out;
  std::map<int64_t, double> frequency;
  double count = 0;
  for (int64_t i = 0; i < data.validation_batches; ++i) {
    const Batch batch = data.validation(i);
    const Loss loss = objective(batch);
    for (const auto& [name, value] : loss.metrics) {
      out[name] += value;
    }
    count += loss.count;
    for (const int64_t label : batch.labels.values<int64_t>()) {
      frequency[label] += label == ignored_label ? 0 : 1;
    }
  }
  for (auto& [name, value] : out) {
    value /= count;
  }
  if (recipe.kind == "mlm") {
    double most = 0;
    for (const auto& [label, times] : frequency) {
      most = std::max(most, times);
    }
    out["unigram"] = most / count;
  } else if (recipe.kind == "embed") {
    add_recall(model, data, out);
  }
  return out;
}

}  // namespace ingot
