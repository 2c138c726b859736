#include "tests/fuzz/driver.h"

namespace ingot::testing {
namespace {

constexpr double a_minute = 60;

TEST(ParsersForAMinute, SurviveChangedGgufFiles) {
  run_changed({gguf_seed()}, 1, a_minute, fuzz_gguf);
}

TEST(ParsersForAMinute, SurviveChangedSafetensorsHeaders) {
  run_changed({safetensors_seed()}, 1, a_minute, fuzz_safetensors);
}

TEST(ParsersForAMinute, SurviveChangedConfigurations) {
  run_changed(config_seeds(), 1, a_minute, fuzz_config);
}

TEST(ParsersForAMinute, SurviveChangedTokenizers) {
  run_changed(tokenizer_seeds(), 1, a_minute, fuzz_tokenizer);
}

TEST(ParsersForAMinute, SurviveChangedTemplates) {
  run_changed(template_seeds(), 1, a_minute, fuzz_template);
}

}  // namespace
}  // namespace ingot::testing
