#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "ingot/base/error.h"
#include "ingot/base/json.h"
#include "ingot/io/gguf.h"
#include "ingot/io/safetensors_header.h"
#include "ingot/models/architecture.h"
#include "ingot/text/jinja_json.h"
#include "ingot/text/jinja_template.h"
#include "ingot/text/tokenizer.h"
#include "ingot/text/tokenizer_json.h"

// What every parser of files from outside must survive: any bytes at all. Each target either
// accepts them or throws Error; anything else (another exception, a crash, a read beyond the end,
// hanging) is a finding. tests/models/fuzz_test.cpp runs them over changed seeds; libfuzzer.cpp is
// the entry point for clang's libFuzzer.
namespace ingot::testing {

template <class F>
void survives(F&& f) {
  try {
    f();
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): a refusal is an answer
  }
}

inline void fuzz_gguf(std::span<const std::byte> bytes) {
  survives([&] {
    const GgufHeader header = parse_gguf_header(bytes, "fuzz.gguf");
    for (const auto& [key, value] : header.metadata) {
      shown(value);
    }
  });
}

inline void fuzz_safetensors(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  survives([&] { parse_safetensors_header(text, 64, "fuzz.safetensors"); });
}

// config.json of every architecture.
inline void fuzz_config(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  survives([&] {
    const nlohmann::json json = parse_json(text, "fuzz.json");
    for (const Architecture& architecture : architectures()) {
      survives([&] { architecture.read(json, "fuzz.json"); });
    }
  });
}

// tokenizer.json: read, made, and asked for the tokens of the file's own beginning.
inline void fuzz_tokenizer(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  survives([&] {
    const Tokenizer tokenizer(parse_tokenizer_json(text, "fuzz.json"));
    const TokenIds ids = tokenizer.encode(text.substr(0, 200), {.add_special = true});
    tokenizer.decode(ids);
  });
}

// A Jinja template: parsed, and rendered over a conversation within small limits.
inline void fuzz_template(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  static const jinja::Value conversation = jinja::parse_json_value(
      R"({"messages": [{"role": "system", "content": "be kind"}, {"role": "user", "content": "hi"},
          {"role": "assistant", "content": "hello"}], "bos_token": "<s>", "eos_token": "</s>",
          "add_generation_prompt": true, "tools": [{"name": "f", "parameters": {"x": 1}}]})",
      "conversation");
  jinja::RenderOptions options;
  options.limits.steps = 20'000;
  options.limits.bytes = 1 << 20;
  options.limits.output_bytes = 1 << 18;
  survives([&] { jinja::Template(text, "fuzz.jinja").render(*conversation.mapping(), options); });
}

}  // namespace ingot::testing
