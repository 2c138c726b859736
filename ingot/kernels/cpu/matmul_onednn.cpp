#include <string_view>

#include "ingot/kernels/cpu/onednn.h"
#include "ingot/kernels/cpu/product.h"

namespace ingot::kernels {
namespace {

using dnnl::memory;

// A product this small is done before a second thread has woken up.
constexpr double flops_worth_threads = 400e3;
constexpr size_t primitives_kept = 256;

// Dimensions [rows, columns], or [batch, rows, columns] where there is a batch. A batch that shares
// this operand has size 1, which oneDNN broadcasts.
memory::desc describe(const Product& p, int64_t rows, int64_t columns, const Product::Steps& steps,
                      DType dtype) {
  if (p.batch == 1) {
    return {{rows, columns}, onednn::type_of(dtype), {steps.row, steps.column}};
  }
  const bool shared = steps.batch == 0;
  return {{shared ? 1 : p.batch, rows, columns},
          onednn::type_of(dtype),
          {shared ? rows * columns : steps.batch, steps.row, steps.column}};
}

memory::desc describe_bias(const Product& p) {
  const Product::Steps dense{0, p.columns, 1};
  return describe(p, 1, p.columns, dense, p.bias_type);
}

dnnl::matmul::primitive_desc plan(const Product& p) {
  const memory::desc a = describe(p, p.rows, p.inner, p.a_steps, p.in);
  const memory::desc b = describe(p, p.inner, p.columns, p.b_steps, p.in);
  const memory::desc y = describe(p, p.rows, p.columns, p.y_steps, p.out);
  const memory::desc bias = p.bias == nullptr ? memory::desc() : describe_bias(p);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (p.accumulate) {
    dnnl::post_ops after;
    after.append_sum(1.0F);
    attributes.set_post_ops(after);
  }
  constexpr bool allow_empty = true;
#if DNNL_VERSION_MAJOR >= 3
  return {onednn::engine(), a, b, bias, y, attributes, allow_empty};
#else
  return {dnnl::matmul::desc(a, b, bias, y), attributes, onednn::engine(), allow_empty};
#endif
}

bool is_reference(const dnnl::matmul::primitive_desc& planned) {
  return std::string_view(planned.impl_info_str()).find("ref") != std::string_view::npos;
}

// Empty where oneDNN has nothing, or only its reference loops and there is another way.
onednn::Prepared prepare(const Product& p) {
  onednn::Prepared made;
  const dnnl::matmul::primitive_desc planned = plan(p);
  if (!planned || (is_reference(planned) && !(p.batch == 1 && p.in == DType::f32))) {
    return made;
  }
  const auto& engine = onednn::engine();
  made.primitive = dnnl::matmul(planned);
  made.scratch_bytes = planned.scratchpad_desc().get_size();
  made.arguments = {
      {DNNL_ARG_SRC, memory(planned.src_desc(), engine, DNNL_MEMORY_NONE)},
      {DNNL_ARG_WEIGHTS, memory(planned.weights_desc(), engine, DNNL_MEMORY_NONE)},
      {DNNL_ARG_DST, memory(planned.dst_desc(), engine, DNNL_MEMORY_NONE)},
      {DNNL_ARG_SCRATCHPAD, memory(planned.scratchpad_desc(), engine, DNNL_MEMORY_NONE)}};
  if (p.bias != nullptr) {
    made.arguments.emplace(DNNL_ARG_BIAS, memory(describe_bias(p), engine, DNNL_MEMORY_NONE));
  }
  return made;
}

onednn::Key key_of(const Product& p, int threads) {
  const auto number_of = [](DType type) { return static_cast<int64_t>(type); };
  return {p.batch,
          p.rows,
          p.columns,
          p.inner,
          p.a_steps.batch,
          p.a_steps.row,
          p.a_steps.column,
          p.b_steps.batch,
          p.b_steps.row,
          p.b_steps.column,
          p.y_steps.batch,
          p.y_steps.row,
          number_of(p.in),
          number_of(p.out),
          p.bias == nullptr ? -1 : number_of(p.bias_type),
          p.accumulate ? 1 : 0,
          threads};
}

bool run(const Product& p, int threads) {
  thread_local onednn::Cache cache(primitives_kept);
  const onednn::ThreadLimit limit(threads);
  onednn::Prepared& prepared = cache.at(key_of(p, threads), [&] { return prepare(p); });
  if (!prepared) {
    return false;
  }
  prepared.bind(DNNL_ARG_SRC, p.a);
  prepared.bind(DNNL_ARG_WEIGHTS, p.b);
  prepared.bind(DNNL_ARG_DST, p.y);
  if (p.bias != nullptr) {
    prepared.bind(DNNL_ARG_BIAS, p.bias);
  }
  prepared.run();
  return true;
}

}  // namespace

bool matmul_onednn(const Product& p) {
  return run(p, p.flops() < flops_worth_threads ? 1 : onednn::available_threads());
}

}  // namespace ingot::kernels
