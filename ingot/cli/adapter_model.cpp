#include "ingot/cli/adapter_model.h"

#include <charconv>
#include <cmath>
#include <map>

#include "ingot/autograd/record.h"
#include "ingot/base/files.h"
#include "ingot/base/hash.h"
#include "ingot/io/gguf.h"
#include "ingot/models/architecture.h"
#include "ingot/models/gguf_rows.h"
#include "ingot/models/pretrained.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"

namespace ingot {
namespace {

constexpr std::string_view weight_end = ".weight";

std::string without_weight(const std::string& name) {
  return name.substr(0, name.size() - weight_end.size());
}

using LowRankByPath = std::map<std::string, peft::LowRankPair>;

// A pair of a GGUF tensor whose parts are adapted, and what is written for it.
struct WrittenPair {
  const GgufPair* pair;
  Tensor a;  // [r, In]
  Tensor b;  // [Out, r], rows in the file's order
};

// Rows of B in the order that the file has the weight's rows in.
Tensor in_file_order(const GgufPair& pair, const std::map<std::string, Tensor>& parts,
                     int64_t rank) {
  StoredModel rows;
  for (const auto& [name, b] : parts) {
    rows.shapes.add(name, empty(b.shape(), DType::f32, meta_device));
  }
  rows.read = [&parts](const std::string& name, int64_t begin, int64_t end, std::span<float> out) {
    const Tensor& b = parts.at(name);
    const auto values = b.values<float>();
    std::copy(values.begin() + begin * b.size(1), values.begin() + end * b.size(1), out.begin());
  };
  const GgufRows size = gguf_rows(pair, rows.shapes);
  Tensor out = empty({size.rows, rank}, DType::f32);
  make_gguf_rows(rows, pair, 0, size.rows, out.mutable_values<float>());
  return out;
}

// B is scaled so that llama.cpp's factor, alpha / rank, makes it what the adapter adds.
WrittenPair written_pair(const GgufPair& pair, const LowRankByPath& low_rank,
                         const TensorDict& shapes, double alpha) {
  check(!pair.stacked && pair.added == 0, ErrorKind::config, "gguf adapter: ", pair.theirs,
        " holds several of the adapted maps stacked, which llama.cpp's adapters do not say; merge "
        "the adapter instead");
  int64_t rank = 0;
  TensorList as;
  for (const std::string& ours : pair.ours) {
    const auto at = low_rank.find(without_weight(ours));
    if (at != low_rank.end()) {
      rank += at->second.a.size(0);
      as.push_back(at->second.a);
    }
  }
  std::map<std::string, Tensor> parts;
  int64_t begin = 0;
  for (const std::string& ours : pair.ours) {
    Tensor all = zeros({shapes.at(ours).size(0), rank}, DType::f32);
    const auto at = low_rank.find(without_weight(ours));
    if (at != low_rank.end()) {
      Tensor own = sliced(all, 1, begin, begin + at->second.b.size(1));
      copy_into(own, at->second.b);
      begin += at->second.b.size(1);
    }
    parts[ours] = all;
  }
  return {&pair, concat(as, int64_t{0}),
          in_file_order(pair, parts, rank) * (static_cast<double>(rank) / alpha)};
}

std::span<const std::byte> bytes_of(const Tensor& x) { return std::as_bytes(x.values<float>()); }

}  // namespace

peft::PublishedMaps published_maps(const Decoder& model) {
  const NameMap names = architecture_of(model.config()).names(model.config());
  std::map<std::string, const nn::Linear*> maps;
  for (const auto& [path, map] : nn::linear_maps(const_cast<Decoder&>(model))) {
    maps[path + std::string(weight_end)] = map;
  }
  peft::PublishedMaps out;
  for (const NamePair& pair : names.pairs) {
    peft::PublishedMap one;
    for (const std::string& ours : pair.ours) {
      if (const auto at = maps.find(ours); at != maps.end()) {
        one.ours.push_back(without_weight(ours));
        one.rows.push_back(at->second->out_features());
      }
    }
    if (!one.ours.empty() && one.ours.size() == pair.ours.size() &&
        pair.theirs.ends_with(weight_end)) {
      one.module = without_weight(pair.theirs);
      one.transposed = pair.stored == Stored::transposed;
      one.alternating = pair.alternating;
      out.push_back(std::move(one));
    }
  }
  return out;
}

std::string base_hash(const std::filesystem::path& model) {
  return is_folder(model) ? peft::weights_hash(read_published(model).tensors) : hash_file(model);
}

AdapterChoice adapter_choice(const std::string& text) {
  const size_t at = text.rfind('=');
  if (at == std::string::npos || file_exists(text)) {
    return {text, 1};
  }
  AdapterChoice out{text.substr(0, at), 1};
  const char* begin = text.data() + at + 1;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(begin, end, out.weight);
  check(error == std::errc() && stop == end && std::isfinite(out.weight), ErrorKind::config,
        "--lora: '", text.substr(at + 1), "' is no weight; give PATH or PATH=0.5");
  return out;
}

std::vector<std::unique_ptr<peft::Adapters>> put_on(Decoder& model,
                                                    const std::vector<AdapterChoice>& choices,
                                                    const std::string& hash) {
  std::vector<std::unique_ptr<peft::Adapters>> out;
  const peft::PublishedMaps maps = published_maps(model);
  for (const AdapterChoice& choice : choices) {
    peft::Adapters::Options options;
    options.name = choice.path;
    options.dtype = model.dtype();
    options.randomness = model.randomness();
    out.push_back(
        peft::load_adapter(model, maps, peft::read_adapter_folder(choice.path), options, hash));
    out.back()->set_weight(choice.weight);
  }
  return out;
}

void write_gguf_adapter(const peft::Adapters& adapters, const Decoder& model,
                        const std::string& model_type, const std::filesystem::path& path) {
  const NoGrad quiet;
  const peft::PeftConfig& config = adapters.config();
  check(config.kind == "lora", ErrorKind::config,
        "gguf adapter: llama.cpp takes lora alone: this is ", config.kind,
        "; merge the adapter instead");
  LowRankByPath low_rank;
  for (const auto& entry : adapters.entries()) {
    const auto& lora = dynamic_cast<const peft::Lora&>(*entry.adapter);
    peft::LowRankPair pair = exported(lora);
    pair.a = dense(converted(pair.a, DType::f32));
    // Each adapter's own factor is put into B.
    pair.b = dense(converted(pair.b, DType::f32)) * (lora.scaling() * adapters.weight());
    low_rank[entry.path] = std::move(pair);
  }
  const GgufArchitecture& row = gguf_architecture_of(model_type);
  const TensorDict shapes = Decoder(model.config(), DType::f32, meta_device).parameters();
  const std::vector<GgufPair> pairs = row.pairs(model.config());
  std::vector<WrittenPair> written;
  size_t found = 0;
  for (const GgufPair& pair : pairs) {
    size_t here = 0;
    for (const std::string& ours : pair.ours) {
      here += ours.ends_with(weight_end) && low_rank.contains(without_weight(ours)) ? 1 : 0;
    }
    if (here > 0) {
      written.push_back(written_pair(pair, low_rank, shapes, config.alpha));
    }
    found += here;
  }
  check(found == low_rank.size(), ErrorKind::config, "gguf adapter: ", low_rank.size() - found,
        " of the adapted maps have no name in GGUF files of ", row.name);
  GgufHeader header;
  header.metadata.set("general.type", "adapter");
  header.metadata.set("general.architecture", row.name);
  header.metadata.set("general.name", path.stem().string());
  header.metadata.set("adapter.type", "lora");
  header.metadata.set_f32("adapter.lora.alpha", config.alpha);
  for (const WrittenPair& one : written) {
    header.tensors.push_back({one.pair->theirs + ".lora_a", GgmlType::f32, one.a.shape()});
    header.tensors.push_back({one.pair->theirs + ".lora_b", GgmlType::f32, one.b.shape()});
  }
  GgufWriter writer(path, std::move(header));
  for (const WrittenPair& one : written) {
    writer.write(bytes_of(one.a));
    writer.write(bytes_of(one.b));
  }
  writer.commit();
}

}  // namespace ingot
