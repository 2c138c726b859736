#include <cstring>
#include <nlohmann/json.hpp>

#include "ingot/base/files.h"
#include "ingot/io/safetensors_writer.h"
#include "ingot/models/architecture.h"
#include "ingot/models/export.h"
#include "ingot/quant/ggml_codec.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"

namespace ingot {
namespace {

constexpr int64_t values_at_once = int64_t{1} << 22;

GgmlType plain(DType dtype) {
  switch (dtype) {
    case DType::f32: return GgmlType::f32;
    case DType::f16: return GgmlType::f16;
    case DType::bf16: return GgmlType::bf16;
    default:
      throw Error(ErrorKind::config,
                  concat("weights are written as f32, f16 or bf16: got ", name(dtype)));
  }
}

// A published tensor that is one of ours as it lies can be passed on in pieces of rows.
bool is_ours(const NamePair& pair, const Shape& theirs, const TensorDict& shapes) {
  return pair.ours.size() == 1 && pair.stored == Stored::as_ours &&
         theirs == shapes.at(pair.ours.front()).shape();
}

void write_values(SafetensorsStream& stream, std::span<const float> values, DType dtype,
                  const std::string& tensor) {
  std::vector<std::byte> bytes(values.size() * static_cast<size_t>(size_of(dtype)));
  try {
    quant::encode_values(plain(dtype), values, bytes);
  } catch (Error& error) {
    error.within(concat("in a piece of ", tensor));
    throw;
  }
  stream.write(bytes);
}

Tensor whole(const StoredModel& model, const std::string& ours) {
  const Tensor& shape = model.shapes.at(ours);
  Tensor out = empty(shape.shape(), DType::f32);
  const int64_t rows = rows_of(shape);
  const int64_t step =
      std::max<int64_t>(1, values_at_once / std::max<int64_t>(1, columns_of(shape)));
  for (int64_t begin = 0; begin < rows; begin += step) {
    const int64_t end = std::min(rows, begin + step);
    model.read(ours, begin, end,
               out.mutable_values<float>().subspan(
                   static_cast<size_t>(begin * columns_of(shape)),
                   static_cast<size_t>((end - begin) * columns_of(shape))));
    model.release();
  }
  return out;
}

// Maps stored transposed and joined ones are put together one tensor at a time.
void write_joined(SafetensorsStream& stream, const StoredModel& model, const NamePair& pair,
                  DType dtype) {
  TensorDict parts;
  for (const std::string& ours : pair.ours) {
    parts.add(ours, whole(model, ours));
  }
  NameMap map;
  map.pairs = {pair};
  const TensorDict published = to_published(map, parts);
  write_values(stream, published.at(pair.theirs).values<float>(), dtype, pair.theirs);
}

void write_piecewise(SafetensorsStream& stream, const StoredModel& model, const NamePair& pair,
                     DType dtype) {
  const Tensor& shape = model.shapes.at(pair.ours.front());
  const int64_t rows = rows_of(shape);
  const int64_t columns = columns_of(shape);
  const int64_t step = std::max<int64_t>(1, values_at_once / columns);
  std::vector<float> values;
  for (int64_t begin = 0; begin < rows; begin += step) {
    const int64_t end = std::min(rows, begin + step);
    values.resize(static_cast<size_t>((end - begin) * columns));
    model.read(pair.ours.front(), begin, end, values);
    write_values(stream, values, dtype, pair.theirs);
    model.release();
  }
}

}  // namespace

ExportResult write_folder(const StoredModel& model, const std::filesystem::path& folder,
                          DType dtype, const std::string& more, int64_t shard_bytes,
                          const ExportProgress& progress) {
  const Architecture& architecture = architecture_named(model.model_type);
  const NameMap names = architecture.names(model.config);
  const TensorDict theirs = to_published(names, model.shapes);  // on meta: shapes alone
  std::vector<PlannedTensor> planned;
  std::map<std::string, const NamePair*> pair_of;
  int64_t all = 0;
  std::vector<NamePair> pairs = names.pairs;
  pairs.insert(pairs.end(), names.repeated.begin(), names.repeated.end());
  for (const NamePair& pair : pairs) {
    const Shape& shape = theirs.at(pair.theirs).shape();
    planned.push_back({pair.theirs, dtype, shape});
    pair_of[pair.theirs] = &pair;
    all += shape.elements();
  }
  make_directories(folder);
  SafetensorsStream stream(folder, std::move(planned), shard_bytes, {{"format", "pt"}});
  ExportResult result;
  int64_t done = 0;
  for (const PlannedTensor& tensor : stream.order()) {
    const NamePair& pair = *pair_of.at(tensor.name);
    if (is_ours(pair, tensor.shape, model.shapes)) {
      write_piecewise(stream, model, pair, dtype);
    } else {
      write_joined(stream, model, pair, dtype);
    }
    ++result.tensors;
    result.bytes += tensor.bytes();
    done += tensor.shape.elements();
    if (progress) {
      progress(done, all);
    }
  }
  stream.commit();
  for (const auto& [name, text] : model.texts) {
    write_file(folder / name, text);
  }
  nlohmann::json config = nlohmann::json::parse(model.published);
  architecture.write(plainest(model.config), config);
  config[config.contains("dtype") ? "dtype" : "torch_dtype"] = published_dtype(dtype);
  config.merge_patch(nlohmann::json::parse(more));
  if (!model.texts.contains("tokenizer.json")) {
    result.lacks.emplace_back("no tokenizer.json: " + model.kind + " " + model.origin +
                              " holds none");
  }
  // Last: a folder with a config.json is complete.
  write_file(folder / "config.json", config.dump(2) + "\n");
  return result;
}

}  // namespace ingot
