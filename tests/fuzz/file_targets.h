#pragma once

#include <algorithm>

#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "ingot/data/example_reader.h"
#include "ingot/io/gguf.h"
#include "ingot/io/safetensors_header.h"
#include "ingot/io/safetensors_shards.h"
#include "ingot/models/architecture.h"
#include "ingot/models/bert.h"
#include "ingot/models/bert_gguf.h"
#include "ingot/models/gguf_vocabulary_keys.h"
#include "ingot/models/stored_model.h"
#include "ingot/peft/published.h"
#include "ingot/text/byte_automaton.h"
#include "ingot/text/jinja_json.h"
#include "ingot/text/jinja_template.h"
#include "ingot/text/json_schema.h"
#include "ingot/text/sentencepiece.h"
#include "ingot/text/tiktoken.h"
#include "ingot/text/tokenizer.h"
#include "ingot/text/tokenizer_json.h"
#include "tests/fuzz/scratch.h"
#include "tests/fuzz/targets.h"

namespace ingot::testing {

using FuzzBytes = std::span<const std::byte>;

// The header alone, without the tensors that it describes.
inline void fuzz_gguf(FuzzBytes bytes) {
  survives([&] {
    const GgufHeader header = parse_gguf_header(bytes, "fuzz.gguf");
    for (const auto& [key, value] : header.metadata) {
      shown(value);
    }
  });
}

inline void fuzz_safetensors(FuzzBytes bytes) {
  survives([&] { parse_safetensors_header(as_text(bytes), 64, "fuzz.safetensors"); });
}

// A file with one tensor "a" of three numbers.
inline std::string one_tensor() {
  SafetensorsHeader described;
  described.entries = {{"a", DType::f32, Shape{3}, 0, 12}};
  const std::string header = safetensors_header_text(described);
  std::string out(8, '\0');
  out[0] = static_cast<char>(header.size());
  return out + header + std::string(12, '\0');
}

// The index of a folder of shards, beside one shard.
inline void fuzz_shards(FuzzBytes bytes) {
  static const auto shard = scratch().put("shards/model-1.safetensors", one_tensor());
  const auto index = scratch().put("shards/model.safetensors.index.json", as_text(bytes));
  survives([&] { SafetensorsSet(index.parent_path()).tensors(); });
}

// A model made from what was read, as far as it has sizes: on meta, without memory.
inline void plan_decoder(DecoderConfig config) {
  constexpr int64_t tensors = 8;  // so that few layers are made
  check_sizes(config, "fuzz.json", tensors);
  if (config.moe.experts <= tensors) {  // what read_published asks of a folder's experts
    Decoder(config, DType::f32, meta_device).parameters();
  }
}

// config.json of every architecture.
inline void fuzz_config(FuzzBytes bytes) {
  survives([&] {
    const nlohmann::json json = parse_json(as_text(bytes), "fuzz.json");
    for (const Architecture& architecture : architectures()) {
      survives([&] { plan_decoder(architecture.read(json, "fuzz.json")); });
    }
  });
  static const auto weights = scratch().put("bert/model.safetensors", one_tensor());
  const auto config = scratch().put("bert/config.json", as_text(bytes));
  survives([&] { load_bert(config.parent_path()); });
}

inline void read_every_row(const StoredModel& model) {
  for (const auto& [name, shape] : model.shapes) {
    const int64_t rows = std::min<int64_t>(rows_of(shape), 4);
    const int64_t columns = columns_of(shape);
    if (rows * columns > 0) {
      std::vector<float> values(static_cast<size_t>(rows * columns));
      survives([&] { model.read(name, 0, rows, values); });
      survives([&] { model.read(name, rows_of(shape) - rows, rows_of(shape), values); });
    }
  }
  model.release();
}

// A model file of any kind: GGUF with its tensors and tokenizer, checkpoints of C programs.
inline void fuzz_model(FuzzBytes bytes) {
  const auto file = scratch().put("model.bin", as_text(bytes));
  survives([&] {
    const StoredModel model = open_model(file);
    read_every_row(model);
    if (const auto vocabulary = gguf_vocabulary_from(model.tokenizer, file.string())) {
      const Tokenizer tokenizer(from_gguf(*vocabulary));
      tokenizer.decode(tokenizer.encode("one text, 2 words", {.add_special = true}));
    }
  });
  survives([&] { load_bert_gguf(file); });
}

inline void use_tokenizer(TokenizerSpec spec, std::string_view text) {
  const Tokenizer tokenizer(std::move(spec));
  tokenizer.decode(tokenizer.encode(text.substr(0, 200), {.add_special = true}));
}

// tokenizer.json: read, made, written, and asked for the tokens of the file's own beginning.
inline void fuzz_tokenizer(FuzzBytes bytes) {
  survives([&] {
    TokenizerSpec spec = parse_tokenizer_json(as_text(bytes), "fuzz.json");
    survives([&] { to_tokenizer_json(spec); });
    use_tokenizer(std::move(spec), as_text(bytes));
  });
}

inline void fuzz_sentencepiece(FuzzBytes bytes) {
  survives(
      [&] { use_tokenizer(parse_sentencepiece(as_text(bytes), "fuzz.model"), as_text(bytes)); });
}

inline void fuzz_tiktoken(FuzzBytes bytes) {
  const auto file = scratch().put("fuzz.tiktoken", as_text(bytes));
  survives([&] {
    const TiktokenEncoding encoding = {"fuzz", R"(\p{L}+|\s+|[^\s\p{L}]+)", {{"<|end|>", 300}}};
    use_tokenizer(read_tiktoken(file, encoding), as_text(bytes));
  });
}

// merges.txt beside a small vocab.json.
inline void fuzz_merges(FuzzBytes bytes) {
  static const auto vocab =
      scratch().put("merges/vocab.json",
                    R"({"<|endoftext|>": 0, "a": 1, "b": 2, "ab": 3, "aba": 4, "Ġ": 5, "Ġab": 6})");
  const auto merges = scratch().put("merges/merges.txt", as_text(bytes));
  survives([&] { use_tokenizer(read_vocab_and_merges(vocab, merges), as_text(bytes)); });
}

// A Jinja template: parsed, and rendered over a conversation within small limits.
inline void fuzz_template(FuzzBytes bytes) {
  static const jinja::Value conversation = jinja::parse_json_value(
      R"({"messages": [{"role": "system", "content": "be kind"}, {"role": "user", "content": "hi"},
          {"role": "assistant", "content": "hello"}], "bos_token": "<s>", "eos_token": "</s>",
          "add_generation_prompt": true, "tools": [{"name": "f", "parameters": {"x": 1}}]})",
      "conversation");
  jinja::RenderOptions options;
  options.limits.steps = 20'000;
  options.limits.bytes = 1 << 20;
  options.limits.output_bytes = 1 << 18;
  survives([&] {
    jinja::Template(as_text(bytes), "fuzz.jinja").render(*conversation.mapping(), options);
  });
}

// What constrains the text of an answer: a JSON Schema, or a regular expression.
inline void fuzz_pattern(FuzzBytes bytes) {
  const std::string_view text = as_text(bytes);
  survives([&] {
    const bool schema = text.starts_with('{');
    ByteAutomaton automaton(
        schema ? pattern_of_schema(jinja::parse_json_value(text, "fuzz")) : std::string(text),
        "fuzz");
    for (int byte = 0; byte < 256; ++byte) {
      automaton.step(automaton.start(), static_cast<uint8_t>(byte));
    }
    automaton.matches(text.substr(0, 1000));
  });
}

// Rows of data in every format, as examples of what their keys say.
inline void fuzz_rows(FuzzBytes bytes) {
  const auto file = scratch().put("rows", as_text(bytes));
  for (const char* format : {"auto", "text", "csv"}) {
    survives([&] {
      ReadOptions options;
      options.rows.format = format;
      options.rows.largest_text = 1 << 16;
      options.policy = RowPolicy::drop;
      ExampleReader reader(file, options);
      std::vector<Example> examples;
      while (reader.next(examples)) {
        for (const Example& example : examples) {
          content_hash(example);
        }
      }
    });
  }
}

// adapter_config.json of PEFT, beside weights.
inline void fuzz_adapter(FuzzBytes bytes) {
  static const auto weights = scratch().put("adapter/adapter_model.safetensors", one_tensor());
  const auto config = scratch().put("adapter/adapter_config.json", as_text(bytes));
  survives([&] { peft::read_adapter_folder(config.parent_path()); });
}

inline const std::vector<FuzzTarget>& file_fuzz_targets() {
  static const std::vector<FuzzTarget> all = {
      {"gguf", fuzz_gguf},         {"safetensors", fuzz_safetensors},
      {"shards", fuzz_shards},     {"config", fuzz_config},
      {"model", fuzz_model},       {"tokenizer", fuzz_tokenizer},
      {"tiktoken", fuzz_tiktoken}, {"sentencepiece", fuzz_sentencepiece},
      {"merges", fuzz_merges},     {"template", fuzz_template},
      {"pattern", fuzz_pattern},   {"rows", fuzz_rows},
      {"adapter", fuzz_adapter}};
  return all;
}

}  // namespace ingot::testing
