#pragma once

#include "ingot/models/gguf_architecture.h"

namespace ingot {

// The rows of the table in gguf_table.cpp, each in a file of its own.
GgufArchitecture gguf_gpt2();
GgufArchitecture gguf_llama();

}  // namespace ingot
