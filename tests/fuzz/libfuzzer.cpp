// The targets of a header under libFuzzer, compiled with clang and -fsanitize=fuzzer,address:
// fuzz_files (INGOT_FUZZ_REQUESTS not defined) and fuzz_requests. $INGOT_FUZZ names the target.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#ifdef INGOT_FUZZ_REQUESTS
#include "tests/fuzz/request_targets.h"
#else
#include "tests/fuzz/file_targets.h"
#endif

namespace {

using ingot::testing::FuzzTarget;

const FuzzTarget& chosen_target() {
#ifdef INGOT_FUZZ_REQUESTS
  const auto& all = ingot::testing::request_fuzz_targets();
#else
  const auto& all = ingot::testing::file_fuzz_targets();
#endif
  const char* wanted = std::getenv("INGOT_FUZZ");
  for (const FuzzTarget& target : all) {
    if (wanted != nullptr && target.name == wanted) {
      return target;
    }
  }
  std::fprintf(stderr, "INGOT_FUZZ must name a target:");
  for (const FuzzTarget& target : all) {
    std::fprintf(stderr, " %s", std::string(target.name).c_str());
  }
  std::fprintf(stderr, "\n");
  std::exit(2);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const FuzzTarget& target = chosen_target();
  target.run(std::as_bytes(std::span(data, size)));
  return 0;
}
