#include <array>
#include <cstring>
#include <vector>

#include "ingot/base/files.h"
#include "ingot/base/json_library.h"
#include "ingot/io/release.h"
#include "ingot/models/architecture.h"
#include "ingot/models/stored_model.h"
#include "ingot/quant/ggml_codec.h"

// Checkpoints of two small C programs: tensors one after the other behind a short header, without
// names.
namespace ingot {
namespace {

constexpr int64_t largest_size = int64_t{1} << 30;

// Rows of one of our tensors in the file.
struct Place {
  int64_t offset = 0;   // bytes
  int64_t scales = -1;  // of int8 groups: where their f32 scales begin
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t interleaved_heads = 0;  // see GgufPair
};

struct Layout {
  std::shared_ptr<const MappedFile> file;
  GgmlType type = GgmlType::f32;
  int64_t group = 0;  // of int8 values under one scale; 0: plain values
  int64_t at = 0;     // where the next tensor begins
  std::map<std::string, Place> places = {};

  std::string name() const { return file->path().string(); }
  int64_t size() const { return static_cast<int64_t>(file->bytes().size()); }

  template <class... Parts>
  void require(Condition condition, const Parts&... parts) const {
    check(condition, ErrorKind::format, name(), ": ", parts...);
  }

  int32_t integer(int64_t offset) const {
    int32_t value = 0;
    require(offset + 4 <= size(), "truncated: the header takes more than ", size(), " bytes");
    std::memcpy(&value, file->bytes().data() + offset, sizeof value);
    return value;
  }

  // The next `rows` × `columns` values in the file are this tensor's.
  void place(const std::string& ours, int64_t rows, int64_t columns, bool plain = false,
             int64_t heads = 0) {
    Place out{at, -1, rows, columns, heads};
    const bool grouped = group > 0 && !plain;
    // Sizes are at most 2^30 each, so that the products fit.
    const int64_t values = rows * columns;
    require(values <= size(), "truncated: ", ours, " begins at byte ", at, " and has ", values,
            " values, the file ", size(), " bytes");
    if (grouped) {
      require(values % group == 0, ours, ": ", values, " values are no whole groups of ", group);
      out.scales = at + values;
      at += values + values / group * 4;
    } else {
      at += bytes_of(plain ? GgmlType::f32 : type, values);
    }
    require(at <= size(), "truncated: ", ours, " ends at byte ", at, ", the file has ", size());
    places.emplace(ours, out);
  }
};

void read_groups(const Layout& layout, const Place& place, int64_t row, std::span<float> out) {
  const std::byte* codes = layout.file->bytes().data() + place.offset;
  const std::byte* scales = layout.file->bytes().data() + place.scales;
  for (int64_t i = 0; i < place.columns; ++i) {
    const int64_t index = row * place.columns + i;
    float scale = 0;
    std::memcpy(&scale, scales + index / layout.group * 4, sizeof scale);
    out[static_cast<size_t>(i)] = scale * static_cast<float>(static_cast<int8_t>(codes[index]));
  }
}

void read_rows(const Layout& layout, const Place& place, int64_t begin, int64_t end,
               std::span<float> out) {
  const int64_t head = place.interleaved_heads > 0 ? place.rows / place.interleaved_heads : 0;
  for (int64_t row = begin; row < end; ++row) {
    // The file has rows 0, C/2, 1, … of a head where we have 0, 1, …, C/2, …
    const int64_t in_head = head > 0 ? row % head : 0;
    const int64_t there =
        head > 0 ? row / head * head + in_head % (head / 2) * 2 + in_head / (head / 2) : row;
    const auto target = out.subspan(static_cast<size_t>((row - begin) * place.columns),
                                    static_cast<size_t>(place.columns));
    if (place.scales >= 0) {
      read_groups(layout, place, there, target);
      continue;
    }
    const int64_t row_bytes = bytes_of(layout.type, place.columns);
    quant::codec_of(layout.type)
        .decode(layout.file->bytes().data() + place.offset + there * row_bytes, place.columns,
                target.data());
  }
}

StoredModel stored_from(Layout layout, std::string kind, const std::string& model_type,
                        const DecoderConfig& config) {
  layout.require(layout.at == layout.size(), "the header describes ", layout.at,
                 " bytes, the file has ", layout.size());
  StoredModel out;
  out.origin = layout.name();
  out.kind = std::move(kind);
  out.model_type = model_type;
  out.config = config;
  nlohmann::json json = nlohmann::json::object();
  architecture_named(model_type).write(config, json);
  out.published = json.dump(2);
  out.dtype = layout.type == GgmlType::bf16 ? DType::bf16 : DType::f32;
  out.shapes = Decoder(config, DType::f32, meta_device).parameters();
  for (const auto& [name, parameter] : out.shapes) {
    const auto at = layout.places.find(name);
    check(at != layout.places.end() && at->second.rows == rows_of(parameter) &&
              at->second.columns == columns_of(parameter),
          ErrorKind::internal, out.origin, ": ", name, ": not laid out as ", parameter.shape());
  }
  const auto shared = std::make_shared<const Layout>(std::move(layout));
  out.read = [shared](const std::string& ours, int64_t begin, int64_t end,
                      std::span<float> values) {
    read_rows(*shared, shared->places.at(ours), begin, end, values);
  };
  out.release = [shared] { release_pages(shared->file->bytes()); };
  return out;
}

int64_t size_at(const Layout& layout, int64_t offset, const char* what) {
  const int64_t value = layout.integer(offset);
  layout.require(value >= 1 && value <= largest_size, "not a checkpoint that Ingot reads: ", what,
                 " would be ", value);
  return value;
}

struct Llama2cHeader {
  int version = 0;
  bool shared_head = true;
};

// Seven numbers of 32 bits from `at` on.
DecoderConfig llama2c_config(const Layout& layout, int64_t at, Llama2cHeader& header) {
  DecoderConfig c;
  c.architecture = "llama";
  c.width = size_at(layout, at, "dim");
  c.hidden = size_at(layout, at + 4, "hidden_dim");
  c.layers = size_at(layout, at + 8, "n_layers");
  c.heads = size_at(layout, at + 12, "n_heads");
  c.kv_heads = size_at(layout, at + 16, "n_kv_heads");
  const int64_t vocab = layout.integer(at + 20);
  header.shared_head = vocab > 0;  // of version 0; later ones say it in a byte of its own
  layout.require(vocab != 0 && std::abs(vocab) <= largest_size, "vocab_size cannot be ", vocab);
  c.vocab = std::abs(vocab);
  c.context = size_at(layout, at + 24, "max_seq_len");
  layout.require(c.layers <= layout.size() && c.width % c.heads == 0 && c.heads % c.kv_heads == 0 &&
                     c.width / c.heads % 2 == 0,
                 "not a checkpoint that Ingot reads: ", c.heads, " heads and ", c.kv_heads,
                 " key and value heads in a width of ", c.width);
  c.norm_eps = 1e-5;
  return c;
}

void place_norms(Layout& layout, const DecoderConfig& c, const char* ours) {
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    layout.place(concat("layers.", layer, ".", ours, ".weight"), c.width, 1, true);
  }
}

void place_maps(Layout& layout, const DecoderConfig& c, const char* ours, int64_t rows,
                int64_t columns, int64_t heads = 0) {
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    layout.place(concat("layers.", layer, ".", ours, ".weight"), rows, columns, false, heads);
  }
}

void place_attention(Layout& layout, const DecoderConfig& c) {
  const int64_t head = c.width / c.heads;
  place_maps(layout, c, "attention.wq", c.width, c.width, c.heads);
  place_maps(layout, c, "attention.wk", c.kv_heads * head, c.width, c.kv_heads);
  place_maps(layout, c, "attention.wv", c.kv_heads * head, c.width);
  place_maps(layout, c, "attention.wo", c.width, c.width);
}

void place_feed_forward(Layout& layout, const DecoderConfig& c) {
  place_maps(layout, c, "mlp.gate", c.hidden, c.width);
  place_maps(layout, c, "mlp.down", c.width, c.hidden);
  place_maps(layout, c, "mlp.up", c.hidden, c.width);
}

// Version 0: norms between the maps, and two unused tables of angles before the head.
void place_version_0(Layout& layout, const DecoderConfig& c) {
  layout.place("embedding.weight", c.vocab, c.width);
  place_norms(layout, c, "attention_norm");
  place_attention(layout, c);
  place_norms(layout, c, "mlp_norm");
  place_feed_forward(layout, c);
  layout.place("norm.weight", c.width, 1, true);
  layout.place("angles", c.context * (c.width / c.heads), 1, true);
}

// Versions 1 (f32) and 2 (int8 in groups): norms first.
void place_version_1(Layout& layout, const DecoderConfig& c) {
  place_norms(layout, c, "attention_norm");
  place_norms(layout, c, "mlp_norm");
  layout.place("norm.weight", c.width, 1, true);
  layout.place("embedding.weight", c.vocab, c.width);
  place_attention(layout, c);
  place_feed_forward(layout, c);
}

}  // namespace

StoredModel open_llama2c(const std::filesystem::path& path) {
  Layout layout{std::make_shared<const MappedFile>(path)};
  Llama2cHeader header;
  const bool has_magic = layout.integer(0) == 0x616b3432;
  header.version = has_magic ? layout.integer(4) : 0;
  layout.require(header.version >= 0 && header.version <= 2, "llama2.c's version ", header.version,
                 " is not known; Ingot reads 0, 1 and 2");
  DecoderConfig c = llama2c_config(layout, has_magic ? 8 : 0, header);
  layout.at = has_magic ? 256 : 28;
  if (has_magic) {
    layout.require(layout.size() >= 256, "truncated: the header has 256 bytes, the file ",
                   layout.size());
    header.shared_head = layout.file->bytes()[36] != std::byte{0};
  }
  if (header.version == 2) {
    layout.group = layout.integer(37);
    layout.require(layout.group > 0, "group_size cannot be ", layout.group);
  }
  c.tied = header.shared_head;
  header.version == 0 ? place_version_0(layout, c) : place_version_1(layout, c);
  if (!header.shared_head) {
    layout.place("head.weight", c.vocab, c.width);
  }
  return stored_from(std::move(layout), "checkpoint of llama2.c", "llama", complete(c));
}

StoredModel open_llmc(const std::filesystem::path& path) {
  Layout layout{std::make_shared<const MappedFile>(path)};
  const int32_t version = layout.integer(4);
  layout.require(version == 3 || version == 5, "llm.c's version ", version,
                 " is not known; Ingot reads 3 (f32) and 5 (bf16)");
  layout.type = version == 5 ? GgmlType::bf16 : GgmlType::f32;
  DecoderConfig c;
  c.architecture = "gpt2";
  c.context = size_at(layout, 8, "max_seq_len");
  c.vocab = size_at(layout, 12, "vocab_size");
  c.layers = size_at(layout, 16, "num_layers");
  c.heads = size_at(layout, 20, "num_heads");
  c.width = size_at(layout, 24, "channels");
  const int64_t padded = size_at(layout, 28, "padded_vocab_size");
  layout.require(c.layers <= layout.size() && c.vocab <= padded && c.width % c.heads == 0,
                 "not a checkpoint that Ingot reads: vocab_size ", c.vocab, " padded to ", padded,
                 ", ", c.heads, " heads in a width of ", c.width);
  c = complete(c);
  layout.at = 1024;
  // Rows beyond the vocabulary round its table up for the GPU; no token and no logit is theirs.
  layout.place("embedding.weight", padded, c.width);
  layout.places.at("embedding.weight").rows = c.vocab;
  layout.place("positions.weight", c.context, c.width);
  const auto vector = [&](const std::string& ours, int64_t size) {
    for (int64_t layer = 0; layer < c.layers; ++layer) {
      layout.place(concat("layers.", layer, ".", ours), size, 1);
    }
  };
  // Queries, keys and values lie layer by layer, one after the other.
  const auto joined = [&](const char* part, int64_t columns) {
    for (int64_t layer = 0; layer < c.layers; ++layer) {
      for (const char* one : {"wq", "wk", "wv"}) {
        layout.place(concat("layers.", layer, ".attention.", one, part), c.width, columns);
      }
    }
  };
  vector("attention_norm.weight", c.width);
  vector("attention_norm.bias", c.width);
  joined(".weight", c.width);
  joined(".bias", 1);
  place_maps(layout, c, "attention.wo", c.width, c.width);
  vector("attention.wo.bias", c.width);
  vector("mlp_norm.weight", c.width);
  vector("mlp_norm.bias", c.width);
  place_maps(layout, c, "mlp.up", 4 * c.width, c.width);
  vector("mlp.up.bias", 4 * c.width);
  place_maps(layout, c, "mlp.down", c.width, 4 * c.width);
  vector("mlp.down.bias", c.width);
  layout.place("norm.weight", c.width, 1);
  layout.place("norm.bias", c.width, 1);
  return stored_from(std::move(layout), "checkpoint of llm.c", "gpt2", c);
}

}  // namespace ingot
