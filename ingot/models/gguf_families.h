#pragma once

#include "ingot/models/gguf_architecture.h"

namespace ingot {

// The rows of the table in gguf_table.cpp.
GgufArchitecture gguf_gpt2();
GgufArchitecture gguf_llama();  // gguf_llama.cpp
GgufArchitecture gguf_mistral();
GgufArchitecture gguf_mixtral();
GgufArchitecture gguf_smollm3();
GgufArchitecture gguf_qwen2();  // gguf_qwen.cpp
GgufArchitecture gguf_qwen3();
GgufArchitecture gguf_qwen3_moe();
GgufArchitecture gguf_olmo2();
GgufArchitecture gguf_gemma();  // gguf_gemma.cpp
GgufArchitecture gguf_gemma2();
GgufArchitecture gguf_gemma3();
GgufArchitecture gguf_phi3();
GgufArchitecture gguf_gpt_neox();
GgufArchitecture gguf_deepseek_v2();  // gguf_deepseek.cpp
GgufArchitecture gguf_deepseek_v3();
GgufArchitecture gguf_joined_deepseek_v2();  // files from before 2025, read alone
GgufArchitecture gguf_joined_deepseek_v3();

}  // namespace ingot
