// ingot bench generate: tokens per second of a recipe's model with random weights.
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "ingot/autograd/grad_mode.h"
#include "ingot/cli/bench.h"
#include "ingot/cli/session.h"
#include "ingot/generate/decoding.h"
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
// in, next to nothing), and the cache's keys and values at the middle of the text.
double bytes_of_step(Decoder& model, const GenerateBench& arguments) {
  const DecoderConfig& config = model.config();
  WeightBytes weights;
  model.visit(weights);
  const double tied = model.head ? 0 : static_cast<double>(model.embedding.weight.bytes());
  const int64_t times = arguments.prompt + arguments.tokens / 2;
  return weights.total + tied +
         static_cast<double>(2 * arguments.batch * times * config.layers * config.kv_heads *
                             config.head_dim * size_of(model.dtype()));
}

}  // namespace

void bench_generate(const GenerateBench& arguments) {
  const Recipe recipe = read_recipe(arguments.recipe, arguments.assignments);
  const int64_t context = recipe.model.context;
  check(arguments.tokens < context && arguments.prompt < context - arguments.tokens,
        ErrorKind::config, "bench generate: --prompt ", arguments.prompt, " and --tokens ",
        arguments.tokens, " do not fit in model.context = ", context);
  Session session(recipe, cpu_device);
  const NoGrad quiet;
  if (arguments.int8) {
    session.model().to_int8();
  }
  const std::vector<Tokens> prompts(static_cast<size_t>(arguments.batch),
                                    Tokens(static_cast<size_t>(arguments.prompt), 0));
  const Tokens next(static_cast<size_t>(arguments.batch), 0);
  std::unique_ptr<Decoding> decoding;
  const auto read = [&] {
    decoding = std::make_unique<Decoding>(session.model(), prompts, arguments.tokens + 1);
  };
  read();
  const double prompt_seconds = seconds_of(read);
  decoding->feed(next);
  const int64_t recorded = (arguments.tokens - 1) / 4;  // steps at the end, for the table
  std::vector<double> seconds;
  for (int64_t i = 1 + recorded; i < arguments.tokens; ++i) {
    seconds.push_back(seconds_of([&] { decoding->feed(next); }));
  }
  double recorded_seconds = 0;
  std::vector<KernelCall> calls;
  {
    const Recording recording;
    for (int64_t i = 0; i < recorded; ++i) {
      recorded_seconds += seconds_of([&] { decoding->feed(next); });
    }
    calls = recording.calls();
  }
  const double step = median(seconds);
  const double bandwidth = measured_bandwidth().read;
  const Limits limits{measured_limits(session.dtype()).flops, bandwidth};
  const auto kernels = totals(calls, limits);
  const double bytes = bytes_of_step(session.model(), arguments);
  const auto rows = static_cast<double>(arguments.batch);
  const double prompt_rate = rows * static_cast<double>(arguments.prompt) / prompt_seconds;
  if (arguments.json) {
    const nlohmann::ordered_json out = {{"batch", arguments.batch},
                                        {"prompt_tokens_per_second", prompt_rate},
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
  fmt::print("prompt: {:.0f} tokens/s\n", prompt_rate);
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
