// ingot bench generate: tokens per second of a model, read and written through the paged engine.
#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <memory>

#include "ingot/autograd/grad_mode.h"
#include "ingot/base/json_library.h"
#include "ingot/cli/bench.h"
#include "ingot/cli/loaded_model.h"
#include "ingot/cli/session.h"
#include "ingot/device/flops.h"
#include "ingot/generate/paged_decoding.h"
#include "ingot/train/machine_peak.h"

namespace ingot {
namespace {

// Counts the bytes of weights: of parameters, and of codes with their scales.
class WeightBytes : public nn::Visitor {
 public:
  double total = 0;

 protected:
  void on_parameter(const std::string&, Tensor& parameter, nn::Role role) override {
    total += role == nn::Role::embedding ? 0 : static_cast<double>(parameter.bytes());
  }
  void on_module(const std::string&, nn::Module& module) override {
    const auto* map = dynamic_cast<nn::Linear*>(&module);
    if (map != nullptr && map->coded.defined()) {
      total += static_cast<double>(map->coded.codes.bytes() + map->coded.scales.bytes());
    }
  }
};

// Bytes that one step must read: every weight that it multiplies by (of tables that are looked up
// in, next to nothing) once for each forward, and the cache's keys and values at the middle of the
// text.
double bytes_of_step(Decoder& model, const GenerateBench& arguments, int64_t forwards) {
  WeightBytes weights;
  model.visit(weights);
  const double tied = model.head ? 0 : static_cast<double>(model.embedding.weight.bytes());
  const int64_t times = arguments.prompt + arguments.tokens / 2;
  const int64_t per_token =
      nn::PagedCache::bytes_per_token(model.cache_shape(1, 1), kv_dtype(model, arguments.kv));
  return static_cast<double>(forwards) * (weights.total + tied) +
         static_cast<double>(arguments.batch * times * per_token);
}

// A recipe's model with random weights, or one that is read.
class BenchedModel {
 public:
  explicit BenchedModel(const GenerateBench& arguments) {
    if (std::filesystem::path(arguments.model).extension() == ".toml") {
      session_ = std::make_unique<Session>(read_recipe(arguments.model, arguments.assignments),
                                           cpu_device);
    } else {
      check(arguments.assignments.empty(), ErrorKind::config,
            "bench generate: --set is for recipes: got the model ", arguments.model);
      ModelArguments where;
      where.path = arguments.model;
      where.text = false;
      loaded_ = load_model(where);
    }
    if (arguments.int8) {
      model().to_int8();
    }
  }
  Decoder& model() { return session_ ? session_->model() : *loaded_.model; }

 private:
  std::unique_ptr<Session> session_;
  LoadedModel loaded_;
};

// Equal texts, read and then written side by side through pages, as `ingot serve` does.
class SideBySide {
 public:
  SideBySide(const Decoder& model, const GenerateBench& arguments)
      : decoding_(model, arguments.batch * pages(arguments), page, arguments.kv) {
    texts_.resize(static_cast<size_t>(arguments.batch));
    for (PagedText& text : texts_) {
      text.tokens.assign(static_cast<size_t>(arguments.prompt), 0);
      decoding_.begin(text, arguments.prompt + arguments.tokens, Sharing::no);
      rows_.push_back(&text);
    }
  }

  void read() {
    for (PagedText& text : texts_) {
      decoding_.read_all(text);
    }
  }
  void write() {
    for (PagedText& text : texts_) {
      text.tokens.push_back(0);
    }
    decoding_.read_tokens(rows_);
  }
  int64_t forwards() const {
    const auto rows = static_cast<int64_t>(rows_.size());
    return (rows + decoding_.rows_together() - 1) / decoding_.rows_together();
  }

 private:
  static constexpr int64_t page = 64;
  static int64_t pages(const GenerateBench& arguments) {
    return (arguments.prompt + arguments.tokens + page - 1) / page;
  }

  PagedDecoding decoding_;
  std::vector<PagedText> texts_;
  std::vector<PagedText*> rows_;
};

// The prompts' reading: its seconds and floating-point operations.
Measured measured_reading(const Decoder& model, const GenerateBench& arguments) {
  SideBySide(model, arguments).read();  // to warm up
  SideBySide texts(model, arguments);
  const int64_t before = counted_flops();
  Measured out;
  out.seconds = seconds_of([&] { texts.read(); });
  out.flops = static_cast<double>(counted_flops() - before);
  return out;
}

}  // namespace

void bench_generate(const GenerateBench& arguments) {
  BenchedModel benched(arguments);
  Decoder& model = benched.model();
  const int64_t context = model.config().context;
  check(arguments.tokens < context && arguments.prompt < context - arguments.tokens,
        ErrorKind::config, "bench generate: --prompt ", arguments.prompt, " and --tokens ",
        arguments.tokens, " do not fit in model.context = ", context);
  const NoGrad quiet;
  const Measured reading = measured_reading(model, arguments);
  SideBySide texts(model, arguments);
  texts.read();
  texts.write();
  const int64_t recorded = (arguments.tokens - 1) / 4;  // steps at the end, for the table
  std::vector<double> seconds;
  for (int64_t i = 1 + recorded; i < arguments.tokens; ++i) {
    seconds.push_back(seconds_of([&] { texts.write(); }));
  }
  double recorded_seconds = 0;
  std::vector<KernelCall> calls;
  {
    const Recording recording;
    for (int64_t i = 0; i < recorded; ++i) {
      recorded_seconds += seconds_of([&] { texts.write(); });
    }
    calls = recording.calls();
  }
  const double step = median(seconds);
  const double bandwidth = measured_bandwidth().read;
  const Limits limits{measured_limits(model.dtype()).flops, bandwidth};
  const auto kernels = totals(calls, limits);
  const double bytes = bytes_of_step(model, arguments, texts.forwards());
  const auto rows = static_cast<double>(arguments.batch);
  const double prompt_rate = rows * static_cast<double>(arguments.prompt) / reading.seconds;
  const double prompt_flops = reading.flops / reading.seconds;
  if (arguments.json) {
    const nlohmann::ordered_json out = {{"batch", arguments.batch},
                                        {"prompt_tokens_per_second", prompt_rate},
                                        {"prompt_flops_per_second", prompt_flops},
                                        {"prompt_share", prompt_flops / limits.flops},
                                        {"tokens_per_second", rows / step},
                                        {"seconds_per_step", step},
                                        {"bytes_per_token", bytes / rows},
                                        {"bytes_per_second", bytes / step},
                                        {"memory_bytes_per_second", bandwidth},
                                        {"share", bytes / step / bandwidth},
                                        {"recorded_steps", recorded},
                                        {"recorded_seconds", recorded_seconds},
                                        {"kernels", kernels_json(kernels)}};
    std::cout << out.dump() << '\n';
    return;
  }
  fmt::print("prompt: {:.0f} tokens/s, {:.0f} GFLOP/s, {:.0f}% of the fastest product's {:.0f}\n",
             prompt_rate, 1e-9 * prompt_flops, 100 * prompt_flops / limits.flops,
             1e-9 * limits.flops);
  fmt::print("then {:.1f} tokens/s ({:.2f} ms a step of {} texts, median)\n", rows / step,
             1e3 * step, arguments.batch);
  fmt::print(
      "{:.1f} GB/s of weights and cache, {:.0f}% of the {:.1f} GB/s that memory is read at\n",
      1e-9 * bytes / step, 100 * bytes / step / bandwidth, 1e-9 * bandwidth);
  if (recorded > 0) {
    fmt::print("\nin {} of the steps:", recorded);
    print_kernels(kernels, recorded_seconds);
  }
}

}  // namespace ingot
