#include "ingot/kernels/cpu/onednn.h"

#include "ingot/kernels/cpu/dispatch.h"
#include "ingot/kernels/cpu/scratch.h"

namespace ingot::kernels::onednn {
const dnnl::engine& engine() {
  static const dnnl::engine cpu = [] {
    simd_level();  // INGOT_SIMD is read before oneDNN chooses
    return dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return cpu;
}

dnnl::stream& stream() {
  thread_local dnnl::stream own(engine());
  return own;
}

dnnl::memory::data_type type_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return dnnl::memory::data_type::f32;
    case DType::bf16: return dnnl::memory::data_type::bf16;
    case DType::f16: return dnnl::memory::data_type::f16;
    default: break;
  }
  throw Error(ErrorKind::internal, concat("onednn: no such element type: got ", name(dtype)));
}

void* scratch(size_t bytes) {
  thread_local Scratch own;
  return own.at_least(bytes);
}

void Prepared::run(void* scratch_memory) {
  if (scratch_bytes > 0) {
    bind(DNNL_ARG_SCRATCHPAD, scratch_memory);
  }
  primitive.execute(stream(), arguments);
}

size_t KeyHash::operator()(const Key& key) const {
  uint64_t hash = 0x9e3779b97f4a7c15U;
  for (const int64_t part : key) {
    hash = (hash ^ static_cast<uint64_t>(part)) * 0xff51afd7ed558ccdU;
    hash ^= hash >> 32;
  }
  return hash;
}

}  // namespace ingot::kernels::onednn
