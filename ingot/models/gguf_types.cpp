#include <algorithm>

#include "ingot/models/export.h"

namespace ingot {
namespace {

// Where rows are no whole blocks: a type of as many bits or a few more with smaller blocks.
GgmlType with_smaller_blocks(GgmlType type) {
  switch (type) {
    case GgmlType::q2_k:
    case GgmlType::q3_k:
    case GgmlType::iq4_xs: return GgmlType::iq4_nl;
    case GgmlType::q4_k: return GgmlType::q5_0;
    case GgmlType::q5_k: return GgmlType::q5_1;
    case GgmlType::q6_k: return GgmlType::q8_0;
    default: return GgmlType::f16;
  }
}

double bits_of(GgmlType type) {
  const GgmlLayout& layout = layout_of(type);
  return 8.0 * static_cast<double>(layout.block_bytes) / static_cast<double>(layout.block_values);
}

}  // namespace

GgmlType stored_type(const std::string& tensor, const Shape& shape, GgmlType wanted,
                     bool to_logits) {
  if (shape.rank() < 2 || tensor.ends_with("ffn_gate_inp.weight")) {
    return GgmlType::f32;
  }
  const bool raised = to_logits && bits_of(wanted) < bits_of(GgmlType::q6_k);
  GgmlType type = raised ? GgmlType::q6_k : wanted;
  while (shape.size(-1) % layout_of(type).block_values != 0) {
    type = with_smaller_blocks(type);
  }
  return type;
}

}  // namespace ingot
