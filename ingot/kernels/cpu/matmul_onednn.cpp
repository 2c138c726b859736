#include <algorithm>
#include <string_view>

#include "ingot/kernels/cpu/dispatch.h"
#include "ingot/kernels/cpu/onednn.h"
#include "ingot/kernels/cpu/product.h"

namespace ingot::kernels {
namespace {

using dnnl::memory;

// A product this small is done before a second thread has woken up.
constexpr double flops_worth_threads = 400e3;
constexpr size_t primitives_kept = 256;

// For packs_b.
constexpr int64_t uses_worth_packing = 512;
constexpr int64_t least_packed_bytes = int64_t{6} << 20;
constexpr int64_t most_packed_bytes = int64_t{16} << 20;  // the scratch memory stays

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

// Whether b is first copied into the order that oneDNN's kernels read. For bf16, and for columns
// that are contiguous, they do that themselves, a block at a time; f32 with contiguous rows they
// read in place, slower the larger b is. `ingot bench gemm` on one Zen 5 core at 1024 rows, the
// copy included: dx of W [3072, 768] in f32 149 → 193 GFLOP/s. bf16 gains nothing measurable (373
// to 389 of the 437 that the core can do), and copying a transposed a neither.
bool packs_b(const Product& p) {
  const int64_t bytes = p.inner * p.columns * size_of(p.in);
  return p.in == DType::f32 && p.batch == 1 && p.b_steps.row != 1 && p.rows >= uses_worth_packing &&
         bytes >= least_packed_bytes && bytes <= most_packed_bytes;
}

memory::desc describe_b(const Product& p) {
  return describe(p, p.inner, p.columns, p.b_steps, p.in);
}

dnnl::matmul::primitive_desc plan(const Product& p) {
  const memory::desc a = describe(p, p.rows, p.inner, p.a_steps, p.in);
  const memory::desc free{{p.inner, p.columns}, onednn::type_of(p.in), memory::format_tag::any};
  const memory::desc b = packs_b(p) ? free : describe_b(p);
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

// A product, and the copy of b that goes before it if any. Without a primitive: oneDNN cannot do
// it.
struct PreparedProduct {
  onednn::Prepared product;
  onednn::Prepared pack;
  size_t packed_bytes = 0;
};

size_t rounded(size_t bytes) { return (bytes + 63) / 64 * 64; }

onednn::Prepared prepare_pack(const memory::desc& from, const memory::desc& to) {
  const auto& engine = onednn::engine();
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const dnnl::reorder::primitive_desc planned(engine, from, engine, to, attributes);
  onednn::Prepared made;
  made.primitive = dnnl::reorder(planned);
  made.scratch_bytes = planned.scratchpad_desc().get_size();
  made.arguments = {
      {DNNL_ARG_FROM, memory(from, engine, DNNL_MEMORY_NONE)},
      {DNNL_ARG_TO, memory(to, engine, DNNL_MEMORY_NONE)},
      {DNNL_ARG_SCRATCHPAD, memory(planned.scratchpad_desc(), engine, DNNL_MEMORY_NONE)}};
  return made;
}

// Empty where oneDNN has nothing or is slower than another way: its reference loops, and bf16
// without instructions for it (on one core of Ice Lake 64 GFLOP/s, f32 142).
PreparedProduct prepare(const Product& p) {
  PreparedProduct made;
  if (p.in == DType::bf16 && !multiplies_bf16()) {
    return made;
  }
  const dnnl::matmul::primitive_desc planned = plan(p);
  if (!planned || (is_reference(planned) && !(p.batch == 1 && p.in == DType::f32))) {
    return made;
  }
  const auto& engine = onednn::engine();
  made.product.primitive = dnnl::matmul(planned);
  made.product.scratch_bytes = planned.scratchpad_desc().get_size();
  made.product.arguments = {
      {DNNL_ARG_SRC, memory(planned.src_desc(), engine, DNNL_MEMORY_NONE)},
      {DNNL_ARG_WEIGHTS, memory(planned.weights_desc(), engine, DNNL_MEMORY_NONE)},
      {DNNL_ARG_DST, memory(planned.dst_desc(), engine, DNNL_MEMORY_NONE)},
      {DNNL_ARG_SCRATCHPAD, memory(planned.scratchpad_desc(), engine, DNNL_MEMORY_NONE)}};
  if (p.bias != nullptr) {
    made.product.arguments.emplace(DNNL_ARG_BIAS,
                                   memory(describe_bias(p), engine, DNNL_MEMORY_NONE));
  }
  if (packs_b(p) && planned.weights_desc() != describe_b(p)) {
    made.pack = prepare_pack(describe_b(p), planned.weights_desc());
    made.packed_bytes = planned.weights_desc().get_size();
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
  thread_local onednn::Cache<PreparedProduct> cache(primitives_kept);
  const onednn::ThreadLimit limit(threads);
  PreparedProduct& prepared = cache.at(key_of(p, threads), [&] { return prepare(p); });
  if (!prepared.product) {
    return false;
  }
  const size_t own = rounded(std::max(prepared.product.scratch_bytes, prepared.pack.scratch_bytes));
  auto* scratch = static_cast<std::byte*>(onednn::scratch(own + prepared.packed_bytes));
  const void* b = p.b;
  if (prepared.pack) {
    b = scratch + own;
    prepared.pack.bind(DNNL_ARG_FROM, p.b);
    prepared.pack.bind(DNNL_ARG_TO, b);
    prepared.pack.run(scratch);
  }
  prepared.product.bind(DNNL_ARG_SRC, p.a);
  prepared.product.bind(DNNL_ARG_WEIGHTS, b);
  prepared.product.bind(DNNL_ARG_DST, p.y);
  if (p.bias != nullptr) {
    prepared.product.bind(DNNL_ARG_BIAS, p.bias);
  }
  prepared.product.run(scratch);
  return true;
}

bool at_once(const Product& p) {
  return run(p, p.flops() < flops_worth_threads ? 1 : onednn::available_threads());
}

// Product by product, where oneDNN takes the single ones but not the batch.
bool one_by_one(const Product& p) {
  Product single = p;
  single.batch = 1;
  const auto step = [](const void* data, int64_t elements, DType dtype) {
    return static_cast<const std::byte*>(data) + elements * size_of(dtype);
  };
  for (int64_t i = 0; i < p.batch; ++i) {
    single.a = step(p.a, i * p.a_steps.batch, p.in);
    single.b = step(p.b, i * p.b_steps.batch, p.in);
    single.y = static_cast<std::byte*>(p.y) + i * p.y_steps.batch * size_of(p.out);
    if (!at_once(single)) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool matmul_onednn(const Product& p) { return at_once(p) || (p.batch > 1 && one_by_one(p)); }

}  // namespace ingot::kernels
