// One target of targets.h under libFuzzer: compiled with clang, -fsanitize=fuzzer,address and
// -DINGOT_FUZZ=fuzz_gguf (or another).
#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ingot::testing::INGOT_FUZZ(std::as_bytes(std::span(data, size)));
  return 0;
}
