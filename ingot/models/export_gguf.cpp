#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <regex>

#include "ingot/base/config_diff.h"
#include "ingot/base/json_library.h"
#include "ingot/io/release.h"
#include "ingot/models/architecture.h"
#include "ingot/models/export.h"
#include "ingot/models/gguf_rows.h"
#include "ingot/models/gguf_texts.h"
#include "ingot/quant/ggml_codec.h"

namespace ingot {
namespace {

constexpr int64_t values_at_once = int64_t{1} << 22;  // of f32: 16 MiB

// llama.cpp's name for a file by what most of it is (include/llama.h, llama_ftype).
int64_t file_type(GgmlType type) {
  switch (type) {
    case GgmlType::f32: return 0;
    case GgmlType::f16: return 1;
    case GgmlType::q4_0: return 2;
    case GgmlType::q4_1: return 3;
    case GgmlType::q8_0: return 7;
    case GgmlType::q5_0: return 8;
    case GgmlType::q5_1: return 9;
    case GgmlType::q2_k: return 10;
    case GgmlType::q3_k: return 11;
    case GgmlType::q4_k: return 14;
    case GgmlType::q5_k: return 16;
    case GgmlType::q6_k: return 18;
    case GgmlType::iq4_nl: return 25;
    case GgmlType::iq4_xs: return 30;
    case GgmlType::bf16: return 32;
    default: return 1024;  // "guessed"
  }
}

void put_type(GgmlType type, GgufMetadata& out) {
  out.set_u32("general.file_type", file_type(type));
  if (layout_of(type).block_values > 1) {
    out.set_u32("general.quantization_version", 2);
  }
}

// Fields that say how to train or are said by the vocabulary, not what is computed.
bool is_beside_the_point(const std::string& path) {
  return path == "architecture" || path == "dropout" || path == "padding_id" ||
         path.starts_with("moe.balance") || path == "moe.z_loss" || path == "moe.bias_rate";
}

bool nearly_equal(const std::string& a, const std::string& b) {
  char* a_end = nullptr;
  char* b_end = nullptr;
  const double x = std::strtod(a.c_str(), &a_end);
  const double y = std::strtod(b.c_str(), &b_end);
  return a_end != a.c_str() && *a_end == 0 && *b_end == 0 && std::abs(x - y) <= 1e-6 * std::abs(x);
}

// llama.cpp takes a model with "phi-3" or "phi3" in its name for Microsoft's, and fails where the
// vocabulary has not the special tokens of that: such a name is divided.
void divide_phi3(GgufMetadata& out) {
  const auto tokens = out.contains("tokenizer.ggml.tokens")
                          ? out.texts("tokenizer.ggml.tokens", "gguf")
                          : std::vector<std::string>();
  const auto present = [&](const char* token) { return std::ranges::count(tokens, token) > 0; };
  if (present("<s>") && present("</s>") && present("<unk>") && present("<|endoftext|>")) {
    return;
  }
  const std::string name = out.text("general.name", "gguf");
  out.set("general.name",
          std::regex_replace(name, std::regex("phi-?3", std::regex::icase), "phi 3"));
}

void check_codec(GgmlType type) {
  check(quant::codec_of(type).encode != nullptr, ErrorKind::config, name(type),
        ": Ingot reads this type and does not write it");
}

// Rows of one tensor, made, encoded and written piece by piece.
template <class Make, class After>
void write_rows(GgufWriter& writer, const GgufTensor& tensor, GgufRows size, Make&& make,
                After&& after) {
  int64_t step = std::max<int64_t>(1, values_at_once / size.columns);
  step = (step + size.together - 1) / size.together * size.together;
  std::vector<float> values;
  std::vector<std::byte> bytes;
  for (int64_t begin = 0; begin < size.rows; begin += step) {
    const int64_t end = std::min(size.rows, begin + step);
    const int64_t count = (end - begin) * size.columns;
    values.resize(static_cast<size_t>(count));
    make(begin, end, std::span<float>(values));
    bytes.resize(static_cast<size_t>(bytes_of(tensor.type, count)));
    try {
      quant::encode_values(tensor.type, values, bytes);
    } catch (Error& error) {
      error.within(concat("in rows ", begin, " to ", end - 1, " of ", tensor.name));
      throw;
    }
    writer.write(bytes);
    after(count);
  }
}

void note_type(const GgufTensor& tensor, GgmlType wanted, ExportResult& result) {
  ++result.tensors;
  result.bytes += tensor.end - tensor.begin;
  if (tensor.type != wanted && tensor.shape.rank() > 1) {
    result.otherwise.push_back(concat(tensor.name, " ", tensor.shape, " is ", name(tensor.type)));
  }
}

int64_t values_of(const GgufHeader& header) {
  int64_t values = 0;
  for (const GgufTensor& tensor : header.tensors) {
    values += tensor.shape.elements();
  }
  return values;
}

bool has_output(const std::vector<GgufTensor>& tensors) {
  return std::any_of(tensors.begin(), tensors.end(),
                     [](const GgufTensor& one) { return one.name == "output.weight"; });
}

// The map to the logits: the embedding where the head is tied to it.
bool maps_to_logits(const std::string& tensor, bool untied) {
  return tensor == (untied ? "output.weight" : "token_embd.weight");
}

void merge(const GgufMetadata& more, GgufMetadata& out) {
  for (const auto& [key, value] : more) {
    out.set(key, value);
  }
}

}  // namespace

std::string gguf_misfit(const DecoderConfig& config, const std::string& model_type) {
  const GgufArchitecture& row = gguf_architecture_of(model_type);
  DecoderConfig asked = config;
  // Said whole by tensors of divisors.
  if (asked.rope.scaling == "llama3" ||
      (asked.rope.scaling == "longrope" && model_type == "phi3")) {
    const nn::RotaryConfig plain;
    asked.rope = plain;
    asked.rope.base = config.rope.base;
    asked.rope.fraction = config.rope.fraction;
    asked.rope.layout = config.rope.layout;
  }
  GgufHeader header;
  row.write(asked, header.metadata);
  const TensorDict shapes = Decoder(asked, DType::f32, meta_device).parameters();
  std::map<std::string, std::span<const std::byte>> constants;
  const std::vector<GgufPair> pairs = row.pairs(asked);
  for (const GgufPair& pair : pairs) {
    header.tensors.push_back({pair.theirs, GgmlType::f32, gguf_shape(pair, shapes)});
    constants[pair.theirs] = std::as_bytes(std::span(pair.values));
  }
  const std::string file = "the GGUF file";
  const DecoderConfig back =
      row.read({header, file, std::string(row.name) + ".",
                [&](const GgufTensor& tensor) { return constants.at(tensor.name); }});
  std::string out;
  for (const Difference& one : diff_configs(plainest(asked), plainest(back))) {
    if (!is_beside_the_point(one.path) && !nearly_equal(one.a, one.b)) {
      out += concat(out.empty() ? "" : "; ", one.path, " is ", one.a, ", would be ", one.b);
    }
  }
  return out;
}

ExportResult write_gguf(const StoredModel& model, const std::filesystem::path& path, GgmlType type,
                        const GgufMetadata& more, const ExportProgress& progress) {
  check_codec(type);
  const GgufArchitecture& row = gguf_architecture_of(model.model_type);
  const std::string misfit = gguf_misfit(model.config, model.model_type);
  check(misfit.empty(), ErrorKind::config, model.origin,
        ": a GGUF file cannot say all of this model: ", misfit,
        model.config.mtp.depth > 0 ? "; --drop-mtp leaves its further heads out" : "");
  ExportResult result;
  GgufHeader header;
  header.metadata.set("general.architecture", row.name);
  header.metadata.set("general.name",
                      std::filesystem::path(model.origin).lexically_normal().stem().string());
  put_type(type, header.metadata);
  row.write(model.config, header.metadata);
  result.differs = gguf_differences(row, model.config);
  header.metadata.set_u32(concat(row.name, ".vocab_size"), model.config.vocab);
  result.lacks = put_texts(model, header.metadata);
  divide_phi3(header.metadata);
  merge(more, header.metadata);
  const std::vector<GgufPair> pairs = row.pairs(model.config);
  for (const GgufPair& pair : pairs) {
    header.tensors.push_back({pair.theirs, GgmlType::f32, gguf_shape(pair, model.shapes)});
    if (std::vector<float> lost = lost_by_adding(model, pair); !lost.empty()) {
      header.metadata.set(lost_key(pair), GgufValue{GgufArray{std::move(lost)}});
    }
  }
  const bool untied = has_output(header.tensors);
  for (GgufTensor& tensor : header.tensors) {
    tensor.type = stored_type(tensor.name, tensor.shape, type, maps_to_logits(tensor.name, untied));
  }
  const int64_t all = values_of(header);
  GgufWriter writer(path, std::move(header));
  int64_t done = 0;
  for (size_t i = 0; i < pairs.size(); ++i) {
    write_rows(
        writer, writer.header().tensors[i], gguf_rows(pairs[i], model.shapes),
        [&](int64_t begin, int64_t end, std::span<float> values) {
          make_gguf_rows(model, pairs[i], begin, end, values);
        },
        [&](int64_t count) {
          model.release();
          done += count;
          if (progress) {
            progress(done, all);
          }
        });
    note_type(writer.header().tensors[i], type, result);
  }
  writer.commit();
  return result;
}

ExportResult rewrite_gguf(const GgufFile& file, const std::filesystem::path& path,
                          std::optional<GgmlType> type, const GgufMetadata& more,
                          const ExportProgress& progress) {
  GgufHeader header = file.header();
  if (type) {
    check_codec(*type);
    put_type(*type, header.metadata);
  }
  merge(more, header.metadata);
  const bool untied = has_output(header.tensors);
  header.alignment = std::max<int64_t>(header.alignment, 32);
  for (GgufTensor& tensor : header.tensors) {
    if (type && tensor.shape.rank() > 1) {
      tensor.type =
          stored_type(tensor.name, tensor.shape, *type, maps_to_logits(tensor.name, untied));
    }
  }
  ExportResult result;
  const int64_t all = values_of(header);
  int64_t done = 0;
  GgufWriter writer(path, std::move(header));
  for (size_t i = 0; i < file.tensors().size(); ++i) {
    const GgufTensor& from = file.tensors()[i];
    const GgufTensor& to = writer.header().tensors[i];
    const auto bytes = file.bytes(from);
    if (from.type == to.type) {
      writer.write(bytes);
      release_pages(bytes);
    } else {
      const int64_t columns = from.shape.size(-1);
      const int64_t row_bytes = bytes_of(from.type, columns);
      write_rows(
          writer, to, {from.shape.elements() / columns, columns, 1},
          [&](int64_t begin, int64_t end, std::span<float> values) {
            const auto rows = bytes.subspan(static_cast<size_t>(begin * row_bytes),
                                            static_cast<size_t>((end - begin) * row_bytes));
            quant::decode_values(from.type, rows, values);
            release_pages(rows);
          },
          [&](int64_t) {});
    }
    done += from.shape.elements();
    if (progress) {
      progress(done, all);
    }
    note_type(to, type.value_or(to.type), result);
  }
  writer.commit();
  return result;
}

}  // namespace ingot
