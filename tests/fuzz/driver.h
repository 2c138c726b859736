#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "ingot/base/files.h"
#include "tests/fuzz/targets.h"
#include "tests/support/paths.h"

// Runs the targets of targets.h over seeds with a few changes each: the same inputs on every
// machine.
namespace ingot::testing {

// A generator of its own, so that the inputs are the same on every machine (Steele et al. 2014,
// SplitMix64).
struct Draws {
  uint64_t state;

  uint64_t next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15U);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9U;
    z = (z ^ z >> 27) * 0x94d049bb133111ebU;
    return z ^ z >> 31;
  }
  size_t below(size_t limit) { return limit == 0 ? 0 : next() % limit; }
};

// A few changes of the kinds that break parsers: bits, extreme numbers, cuts, pieces twice.
inline std::string changed(std::string bytes, Draws& draws) {
  const size_t changes = 1 + draws.below(6);
  for (size_t i = 0; i < changes && !bytes.empty(); ++i) {
    const size_t at = draws.below(bytes.size());
    switch (draws.below(6)) {
      case 0: bytes[at] = static_cast<char>(bytes[at] ^ (1 << draws.below(8))); break;
      case 1: bytes[at] = static_cast<char>(draws.next()); break;
      case 2: {
        const uint64_t extremes[] = {0, 1, UINT32_MAX, INT64_MAX, UINT64_MAX, uint64_t{1} << 63};
        const uint64_t value = extremes[draws.below(6)];
        const size_t width = size_t{1} << draws.below(4);
        std::memcpy(bytes.data() + at, &value, std::min(width, bytes.size() - at));
        break;
      }
      case 3: bytes.resize(at); break;
      case 4: bytes.insert(at, bytes.substr(draws.below(bytes.size()), draws.below(64))); break;
      default: bytes.erase(at, draws.below(16)); break;
    }
  }
  return bytes;
}

inline std::string gguf_seed() {
  GgufHeader header;
  header.metadata.set("general.architecture", "llama");
  header.metadata.set_u32("general.alignment", 32);
  header.metadata.set_f32("llama.rope.freq_base", 10000);
  header.metadata.set("tokens", GgufValue{GgufArray{std::vector<std::string>{"a", "bc", ""}}});
  header.metadata.set("types", GgufValue{GgufArray{std::vector<int32_t>{1, 2, 3}}});
  header.metadata.set("nested", GgufValue{GgufArray{std::vector<GgufArray>{
                                    {std::vector<bool>{true}}, {std::vector<double>{0.5}}}}});
  header.tensors = {{"w", GgmlType::q4_0, Shape{2, 32}}, {"b", GgmlType::f32, Shape{3}}};
  return gguf_header_text(header) + std::string(96, '\x11');
}

inline std::string safetensors_seed() {
  SafetensorsHeader header;
  header.metadata = {{"format", "pt"}};
  header.entries = {{"a", DType::f32, Shape{2, 3}, 0, 24}, {"b", DType::bf16, Shape{20}, 24, 64}};
  return safetensors_header_text(header);
}

inline std::vector<std::string> config_seeds() {
  std::vector<std::string> out;
  for (const std::string& name : list_folder(oracle_folder() / "models")) {
    const auto file = oracle_folder() / "models" / name / "config.json";
    if (file_exists(file)) {
      out.push_back(read_file(file));
    }
  }
  return out;
}

// A tokenizer of each kind of model, small.
inline std::vector<std::string> tokenizer_seeds() {
  const std::string added =
      R"("version": "1.0", "added_tokens": [{"id": 0, "content": "<s>", "special": true,
          "single_word": false, "lstrip": false, "rstrip": true, "normalized": false}],)";
  return {"{" + added + R"("normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"},
            {"type": "Replace", "pattern": {"Regex": " +"}, "content": "x"}]},
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": true, "use_regex": true},
            "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken":
              {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}], "pair": [],
              "special_tokens": {"<s>": {"id": "<s>", "ids": [0], "tokens": ["<s>"]}}},
            "decoder": {"type": "ByteLevel"}, "model": {"type": "BPE", "vocab": {"<s>": 0, "a": 1,
            "b": 2, "ab": 3}, "merges": ["a b"], "byte_fallback": false}})",
          "{" + added + R"("pre_tokenizer": {"type": "Metaspace", "replacement": "▁"},
            "decoder": {"type": "Metaspace", "replacement": "▁"}, "model": {"type": "Unigram",
            "unk_id": 0, "vocab": [["<s>", 0], ["▁a", -1.5], ["b", -2]], "byte_fallback": true}})",
          "{" + added + R"("normalizer": {"type": "BertNormalizer", "lowercase": true},
            "pre_tokenizer": {"type": "BertPreTokenizer"}, "decoder": {"type": "WordPiece"},
            "model": {"type": "WordPiece", "unk_token": "<s>", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": {"<s>": 0, "a": 1, "##b": 2}}})"};
}

inline std::vector<std::string> template_seeds() {
  return {
      "{% for m in messages %}<|{{ m['role'] }}|>{{ m.content | trim }}{{ eos_token }}"
      "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}",
      "{%- macro f(x, y=1) %}{{ x|tojson(indent=2) }}{% endmacro %}{% set ns = "
      "namespace(n=0) %}{% for k, v in tools[0].items() %}{% set ns.n = ns.n + 1 %}"
      "{{ f(v) ~ loop.index0 }}{% else %}none{% endfor %}{{ '%s' % ns.n }}",
      "{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | join("
      "', ') | upper }}{{ messages[-1:]|length }}{{ raise_exception('x') if false }}"};
}

// So many inputs, and more until so many seconds have gone: the fast suite asks for a number, the
// slow one for a minute.
inline void run_changed(const std::vector<std::string>& seeds, int inputs, double seconds,
                        void (*target)(std::span<const std::byte>)) {
  const auto start = std::chrono::steady_clock::now();
  const auto goes_on = [&](int done) {
    const std::chrono::duration<double> gone = std::chrono::steady_clock::now() - start;
    return done < inputs || gone.count() < seconds;
  };
  Draws draws{1};
  for (int i = 0; goes_on(i); ++i) {
    const std::string text = changed(seeds[draws.below(seeds.size())], draws);
    // In a block of its own size, so that a sanitizer sees a read beyond the end.
    const std::vector<std::byte> exact(
        reinterpret_cast<const std::byte*>(text.data()),
        reinterpret_cast<const std::byte*>(text.data()) + text.size());
    ASSERT_NO_THROW(target(exact)) << "input " << i;
  }
}

}  // namespace ingot::testing
