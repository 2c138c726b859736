#include "tests/fuzz/driver.h"

namespace ingot::testing {
namespace {

TEST(Parsers, SurviveChangedGgufFiles) { run_changed({gguf_seed()}, 20000, 0, fuzz_gguf); }

TEST(Parsers, SurviveChangedSafetensorsHeaders) {
  run_changed({safetensors_seed()}, 20000, 0, fuzz_safetensors);
}

TEST(Parsers, SurviveChangedConfigurations) { run_changed(config_seeds(), 2000, 0, fuzz_config); }

TEST(Parsers, SurviveChangedTokenizers) { run_changed(tokenizer_seeds(), 5000, 0, fuzz_tokenizer); }

TEST(Parsers, SurviveChangedTemplates) { run_changed(template_seeds(), 5000, 0, fuzz_template); }

}  // namespace
}  // namespace ingot::testing
