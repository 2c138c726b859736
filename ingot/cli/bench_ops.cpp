// ingot bench ops: every fused kernel at the sizes of GPT-2 124M, forward and backward.
#include <fmt/format.h>

#include <iostream>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/record.h"
#include "ingot/base/json_library.h"
#include "ingot/cli/bench.h"
#include "ingot/device/allocator.h"
#include "ingot/ops/attention.h"
#include "ingot/ops/cross_entropy.h"
#include "ingot/ops/dropout.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/embedding.h"
#include "ingot/ops/glu.h"
#include "ingot/ops/linear.h"
#include "ingot/ops/norm.h"
#include "ingot/ops/rope.h"
#include "ingot/ops/softmax.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

constexpr int64_t op_rows = 1024;  // 4 sequences of 256
constexpr int64_t op_width = 768;
constexpr int64_t hidden = 3072;
constexpr int64_t op_vocab = 50304;

// An op on tensors that need gradients: inputs of these shapes, and the call.
struct OpBench {
  const char* name;
  std::vector<Shape> inputs;
  std::function<Tensor(const TensorList&)> call;
  double deviation = 1;  // of the inputs, which are normal
};

Tensor random_tokens(int64_t count, int64_t below) {
  std::vector<int64_t> out(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    out[static_cast<size_t>(i)] = i * 7919 % below;
  }
  return tensor_of(out, {count});
}

OpBench attention_bench(const char* name, int64_t batch, int64_t time) {
  const Shape heads{batch, time, 12, 64};
  return {
      name, {heads, heads, heads}, [](const TensorList& x) { return attention(x[0], x[1], x[2]); }};
}

OpBench linear_cross_entropy_bench(const char* name, int64_t count) {
  const Tensor labels = random_tokens(count, op_vocab);
  return {name,
          {{count, op_width}, {op_vocab, op_width}},
          [labels](const TensorList& in) { return linear_cross_entropy(in[0], in[1], labels); },
          0.2};  // logits as of a model that begins: a deviation of 0.2² √768 = 1.1
}

std::vector<OpBench> op_benches() {
  const Shape x{op_rows, op_width};
  const Shape wide{op_rows, hidden};
  const Shape row{op_width};
  const Shape heads{4, 256, 12, 64};
  const Tensor labels = random_tokens(op_rows, op_vocab);
  const RopeTables tables = rope_tables(arange(256, DType::i64), 64, 10000);
  return {
      {"layer_norm",
       {x, row, row},
       [](const TensorList& in) { return layer_norm(in[0], in[1], in[2], 1e-5); }},
      {"rms_norm", {x, row}, [](const TensorList& in) { return rms_norm(in[0], in[1], 1e-5); }},
      {"add_rms_norm",
       {x, x, row},
       [](const TensorList& in) { return add_rms_norm(in[0], in[1], in[2], 1e-5).normed; }},
      {"gelu_tanh", {wide}, [](const TensorList& in) { return gelu_tanh(in[0]); }},
      {"gelu", {wide}, [](const TensorList& in) { return gelu(in[0]); }},
      {"swiglu",
       {wide, wide},
       [](const TensorList& in) { return gated(in[0], in[1], Gate::silu); }},
      {"add", {x, x}, [](const TensorList& in) { return in[0] + in[1]; }},
      {"dropout",
       {x},
       [](const TensorList& in) {
         return dropout(in[0], 0.1, {1, 2, 3});
       }},
      {"rope",
       {heads},
       [tables](const TensorList& in) {
         return rope(in[0], tables.cos, tables.sin, RopeLayout::half_split);
       }},
      {"softmax v50k", {{op_rows, op_vocab}}, [](const TensorList& in) { return softmax(in[0]); }},
      {"cross_entropy v50k",
       {{op_rows, op_vocab}},
       [labels](const TensorList& in) { return cross_entropy(in[0], labels, Reduction::sum); }},
      linear_cross_entropy_bench("linear_cross_entropy v50k", op_rows),
      linear_cross_entropy_bench("linear_cross_entropy t1024 v50k", 8 * 1024),
      {"embedding v50k",
       {{op_vocab, op_width}},
       [labels](const TensorList& in) { return embedding(in[0], labels); }},
      {"linear 768 to 3072",
       {x, {hidden, op_width}, {hidden}},
       [](const TensorList& in) { return linear(in[0], in[1], in[2]); }},
      attention_bench("attention t256", 4, 256),
      attention_bench("attention t1024", 8, 1024),
      attention_bench("attention t4096", 1, 4096),
      attention_bench("attention t16384", 1, 16384),
  };
}

std::string shapes_text(const std::vector<Shape>& shapes) {
  std::string out;
  for (const Shape& shape : shapes) {
    out += concat(out.empty() ? "" : " ", shape);
  }
  return out;
}

bool chosen(const OpsBench& arguments, std::string_view name) {
  if (arguments.only.empty()) {
    return name != "attention t16384" && name != "linear_cross_entropy t1024 v50k";  // long ones
  }
  for (const std::string& wanted : arguments.only) {
    if (name.starts_with(wanted)) {
      return true;
    }
  }
  return false;
}

// Forward, and backward where there is a gradient; `peak_bytes` above the inputs.
Measured timed_op(const OpBench& op, DType dtype, int64_t& peak_bytes) {
  TensorList inputs;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    Tensor x = normal(op.inputs[i], 0, op.deviation, {i + 1, 0, site_named("bench")}, dtype);
    inputs.push_back(require_grad(x));
  }
  Tensor dy;
  {
    const Tensor y = op.call(inputs);  // its history must not stay
    dy = full(y.shape(), 1, y.dtype());
  }
  allocator(cpu_device).reset_peak();
  const int64_t live = allocator(cpu_device).stats().live_total;
  const Measured measured = measure(5, [&] { gradients({op.call(inputs)}, inputs, {dy}); });
  peak_bytes = allocator(cpu_device).stats().peak_total - live;
  return measured;
}

}  // namespace

void bench_ops(const OpsBench& arguments) {
  const DType dtype = *dtype_named(arguments.dtype);
  const Limits limits = measured_limits(dtype);
  nlohmann::ordered_json listed = nlohmann::ordered_json::array();
  if (!arguments.json) {
    fmt::print("forward and backward, {}; limits {:.0f} GFLOP/s and {:.1f} GB/s\n", arguments.dtype,
               1e-9 * limits.flops, 1e-9 * limits.bytes_per_second);
    print_measured_header();
  }
  int64_t found = 0;
  for (const OpBench& op : op_benches()) {
    if (!chosen(arguments, op.name)) {
      continue;
    }
    ++found;
    int64_t peak_bytes = 0;
    const Measured measured = timed_op(op, dtype, peak_bytes);
    if (arguments.json) {
      nlohmann::ordered_json row = {
          {"name", op.name}, {"shape", shapes_text(op.inputs)}, {"dtype", arguments.dtype}};
      row.update(measured_json(measured, limits));
      row["peak_bytes"] = peak_bytes;
      listed.push_back(std::move(row));
    } else {
      print_measured(op.name, measured, limits);
    }
  }
  check(found > 0, ErrorKind::config, "bench ops: --only fits no op: the first of ",
        op_benches().size(), " is '", op_benches().front().name, "'; leave --only out to see all");
  if (arguments.json) {
    std::cout << nlohmann::ordered_json{{"ops", std::move(listed)}}.dump() << '\n';
  }
}

}  // namespace ingot
