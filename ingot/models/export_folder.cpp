#include <algorithm>
#include <array>

#include "ingot/base/files.h"
#include "ingot/base/json_library.h"
#include "ingot/io/safetensors_writer.h"
#include "ingot/models/architecture.h"
#include "ingot/models/export.h"
#include "ingot/models/packed_weights.h"
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
Tensor published_tensor(const StoredModel& model, const NamePair& pair) {
  TensorDict parts;
  for (const std::string& ours : pair.ours) {
    parts.add(ours, whole(model, ours));
  }
  NameMap map;
  map.pairs = {pair};
  return to_published(map, parts).at(pair.theirs);
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

// What a tensor of the folder holds: a published tensor, or one part of a packed one.
struct Written {
  enum class Part : uint8_t { values, words, scales, shape };
  const NamePair* pair = nullptr;
  Part part = Part::values;
};

struct Plan {
  std::vector<PlannedTensor> tensors;
  std::map<std::string, Written> written;  // by the tensor's name
  std::vector<std::string> ignore;         // modules that are not packed
  std::vector<std::string> otherwise;      // see ExportResult

  void add(PlannedTensor tensor, const Written& what) {
    written[tensor.name] = what;
    tensors.push_back(std::move(tensor));
  }
};

std::string without_weight(const std::string& tensor) {
  constexpr std::string_view suffix = ".weight";
  return tensor.ends_with(suffix) ? tensor.substr(0, tensor.size() - suffix.size()) : tensor;
}

void add_packed(Plan& plan, const NamePair& pair, const Shape& shape, DType dtype,
                const PackedFormat& format) {
  check(pair.stored == Stored::as_ours, ErrorKind::config, pair.theirs,
        ": this family stores maps as [In, Out], which compressed-tensors does not pack; write a "
        "GGUF file with --type");
  const quant::PackedGroups groups = format.groups(shape.size(1));
  plan.add({pair.theirs + "_packed",
            DType::i32,
            {shape.size(0), quant::words_of(shape.size(1), groups)}},
           {&pair, Written::Part::words});
  plan.add({pair.theirs + "_scale", dtype, {shape.size(0), shape.size(1) / groups.group}},
           {&pair, Written::Part::scales});
  plan.add({pair.theirs + "_shape", DType::i64, {2}}, {&pair, Written::Part::shape});
}

Plan plan_of(const NameMap& names, const std::vector<NamePair>& pairs, const TensorDict& theirs,
             DType dtype, const std::optional<PackedFormat>& format) {
  Plan out;
  for (const NamePair& pair : pairs) {
    const Shape& shape = theirs.at(pair.theirs).shape();
    const std::string& ours = pair.ours.front();
    if (format && is_packed_map(ours, shape, *format)) {
      add_packed(out, pair, shape, dtype, *format);
      continue;
    }
    out.add({pair.theirs, dtype, shape}, {&pair});
    if (format && shape.rank() == 2 && ours.ends_with(".weight")) {
      out.ignore.push_back(without_weight(pair.theirs));
      if (is_packed_map(ours, shape, {.group = 0})) {
        out.otherwise.push_back(concat(pair.theirs, ": ", name(dtype), ", for ", shape.size(1),
                                       " columns are no whole groups of ", format->group));
      }
    }
  }
  for (const NamePair& pair : names.tied) {  // modules without a tensor of their own
    out.ignore.push_back(without_weight(pair.theirs));
  }
  return out;
}

template <class T>
void write_raw(SafetensorsStream& stream, std::span<const T> values) {
  stream.write(std::as_bytes(values));
}

// The parts of packed maps. They follow one another in the stream, so the last map is kept.
class PackedParts {
 public:
  PackedParts(const StoredModel& model, DType dtype, const PackedFormat& format)
      : model_(model), dtype_(dtype), format_(format) {}

  void write(SafetensorsStream& stream, const Written& what) {
    make(*what.pair);
    switch (what.part) {
      case Written::Part::words: write_raw(stream, std::span<const int32_t>(map_.words)); break;
      case Written::Part::scales:
        write_values(stream, map_.scales, dtype_, what.pair->theirs);
        break;
      default: write_raw(stream, std::span<const int64_t>(sizes_));
    }
  }

 private:
  void make(const NamePair& pair) {
    if (pair_ == &pair) {
      return;
    }
    const Tensor values = published_tensor(model_, pair);
    try {
      map_ = packed_map(values.values<float>(), values.size(0), format_, dtype_);
    } catch (Error& error) {
      error.within(pair.theirs);
      throw;
    }
    sizes_ = {values.size(0), values.size(1)};
    pair_ = &pair;
  }

  const StoredModel& model_;
  DType dtype_;
  PackedFormat format_;
  const NamePair* pair_ = nullptr;
  PackedMap map_;
  std::array<int64_t, 2> sizes_{};
};

}  // namespace

ExportResult write_folder(const StoredModel& model, const std::filesystem::path& folder,
                          const FolderOptions& options, const ExportProgress& progress) {
  const Architecture& architecture = architecture_named(model.model_type);
  const NameMap names = architecture.names(model.config);
  const TensorDict theirs = to_published(names, model.shapes);  // on meta: shapes alone
  std::vector<NamePair> pairs = names.pairs;
  pairs.insert(pairs.end(), names.repeated.begin(), names.repeated.end());
  Plan plan = plan_of(names, pairs, theirs, options.dtype, options.packed);
  int64_t all = 0;
  for (const PlannedTensor& tensor : plan.tensors) {
    all += tensor.shape.elements();
  }
  check(!options.packed || std::ranges::any_of(plan.written,
                                               [](const auto& each) {
                                                 return each.second.part == Written::Part::words;
                                               }),
        ErrorKind::config, model.origin, ": no map has columns in whole groups of ",
        options.packed.value_or(PackedFormat{}).group, "; choose a smaller --group, or 0");
  make_directories(folder);
  PackedParts packed(model, options.dtype, options.packed.value_or(PackedFormat{}));
  SafetensorsStream stream(folder, std::move(plan.tensors), options.shard_bytes,
                           {{"format", "pt"}});
  ExportResult result;
  result.otherwise = plan.otherwise;
  int64_t done = 0;
  for (const PlannedTensor& tensor : stream.order()) {
    const Written& what = plan.written.at(tensor.name);
    if (what.part != Written::Part::values) {
      packed.write(stream, what);
    } else if (is_ours(*what.pair, tensor.shape, model.shapes)) {
      write_piecewise(stream, model, *what.pair, options.dtype);
    } else {
      write_values(stream, published_tensor(model, *what.pair).values<float>(), options.dtype,
                   what.pair->theirs);
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
  config[config.contains("dtype") ? "dtype" : "torch_dtype"] = published_dtype(options.dtype);
  if (options.packed) {
    config["quantization_config"] = packed_config(*options.packed, plan.ignore);
  }
  if (!model.texts.contains("tokenizer.json")) {
    result.lacks.emplace_back("no tokenizer.json: " + model.kind + " " + model.origin +
                              " holds none");
  }
  // Last: a folder with a config.json is complete.
  write_file(folder / "config.json", config.dump(2) + "\n");
  return result;
}

}  // namespace ingot
