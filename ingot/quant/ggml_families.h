#pragma once

#include "ingot/quant/ggml_codec.h"

namespace ingot::quant {

// The rows of the table in ggml_table.cpp, each written in the file of its family.

GgmlCodec f32_codec();  // ggml_plain.cpp
GgmlCodec f16_codec();
GgmlCodec bf16_codec();

GgmlCodec q4_0_codec();  // ggml_symmetric.cpp: one scale for 32 values
GgmlCodec q5_0_codec();
GgmlCodec q8_0_codec();
GgmlCodec iq4_nl_codec();  // ggml_iq4.cpp: 16 levels that are not equally far apart
GgmlCodec iq4_xs_codec();

GgmlCodec q4_1_codec();  // ggml_affine.cpp: a scale and an offset for 32 values
GgmlCodec q5_1_codec();

GgmlCodec q2_k_codec();  // ggml_q2_k.cpp, …: 256 values, their parts with small scales of their own
GgmlCodec q3_k_codec();
GgmlCodec q4_k_codec();  // ggml_q45_k.cpp
GgmlCodec q5_k_codec();
GgmlCodec q6_k_codec();

GgmlCodec mxfp4_codec();  // ggml_float4.cpp: read only

}  // namespace ingot::quant
