#include "ingot/models/packed_weights.h"

#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

using Json = nlohmann::json;

constexpr std::string_view packed_suffix = ".weight_packed";

[[noreturn]] void refuse(const std::string& file, const std::string& what) {
  throw Error(ErrorKind::config,
              concat(file, ": quantization_config: ", what,
                     "; read are weights of compressed-tensors in \"pack-quantized\" with 4 or 8 "
                     "bits: convert the model with the program that made it"));
}

// One map's tensors, checked against each other.
struct Parts {
  Tensor words, scales, zeros;
  int64_t rows = 0;
  int64_t columns = 0;
};

const Tensor& part(const TensorDict& stored, const std::string& name, const std::string& origin) {
  check(stored.contains(name), ErrorKind::format, origin, ": ", name,
        ": is missing: a packed weight has weight_packed, weight_scale and weight_shape");
  return stored.at(name);
}

void check_part(const Tensor& got, DType dtype, const Shape& shape, const std::string& name,
                const std::string& origin) {
  check(got.dtype() == dtype && got.shape() == shape, ErrorKind::format, origin, ": ", name, " is ",
        got.dtype(), " ", got.shape(), ", where weight_shape and quantization_config ask for ",
        dtype, " ", shape);
}

Parts parts_of(const TensorDict& stored, const std::string& stem, const PackedFormat& format,
               const std::string& origin) {
  const std::string shape_name = stem + ".weight_shape";
  const Tensor& shape = part(stored, shape_name, origin);
  check((shape.dtype() == DType::i64 || shape.dtype() == DType::i32) && shape.elements() == 2,
        ErrorKind::format, origin, ": ", shape_name, " is ", shape.dtype(), " ", shape.shape(),
        ", not two integers");
  const Tensor sizes = converted(shape, DType::i64);
  Parts out;
  out.rows = sizes.values<int64_t>()[0];
  out.columns = sizes.values<int64_t>()[1];
  constexpr int64_t largest = int64_t{1} << 30;
  check(out.rows > 0 && out.columns > 0 && out.rows <= largest && out.columns <= largest,
        ErrorKind::format, origin, ": ", shape_name, " is no size of a matrix: ", out.rows, " x ",
        out.columns);
  const quant::PackedGroups groups = format.groups(out.columns);
  check(out.columns % groups.group == 0, ErrorKind::format, origin, ": ", stem, ": ", out.columns,
        " columns are no whole groups of ", groups.group);
  out.words = part(stored, stem + std::string(packed_suffix), origin);
  check_part(out.words, DType::i32, {out.rows, quant::words_of(out.columns, groups)},
             stem + std::string(packed_suffix), origin);
  out.scales = part(stored, stem + ".weight_scale", origin);
  check(is_float(out.scales.dtype()), ErrorKind::format, origin, ": ", stem, ".weight_scale is ",
        out.scales.dtype(), ", not a floating-point type");
  const int64_t count = out.columns / groups.group;
  check_part(out.scales, out.scales.dtype(), {out.rows, count}, stem + ".weight_scale", origin);
  if (!format.symmetric) {
    out.zeros = part(stored, stem + ".weight_zero_point", origin);
    check_part(out.zeros, DType::i32, {quant::words_of(out.rows, groups), count},
               stem + ".weight_zero_point", origin);
  }
  return out;
}

// The zeros [N, K / group] of words packed along N; empty where there are none.
std::vector<int32_t> zeros_of(const Parts& parts, int64_t bits) {
  if (!parts.zeros.defined()) {
    return {};
  }
  const int64_t count = parts.scales.size(1);
  const auto words = parts.zeros.values<int32_t>();
  std::vector<int32_t> column(static_cast<size_t>(parts.zeros.size(0)));
  std::vector<int32_t> codes(static_cast<size_t>(parts.rows));
  std::vector<int32_t> out(static_cast<size_t>(parts.rows * count));
  for (size_t g = 0; g < static_cast<size_t>(count); ++g) {
    for (size_t w = 0; w < column.size(); ++w) {
      column[w] = words[w * static_cast<size_t>(count) + g];
    }
    quant::unpack_codes(column, bits, codes);
    for (size_t n = 0; n < codes.size(); ++n) {
      out[n * static_cast<size_t>(count) + g] = codes[n];
    }
  }
  return out;
}

Tensor map_of(const Parts& parts, const PackedFormat& format) {
  const quant::PackedGroups groups = format.groups(parts.columns);
  const Tensor scales = converted(parts.scales, DType::f32);
  const std::vector<int32_t> zeros = zeros_of(parts, format.bits);
  const auto count = static_cast<size_t>(scales.size(1));
  const auto width = static_cast<size_t>(parts.words.size(1));
  Tensor out = empty({parts.rows, parts.columns}, DType::f32);
  for (size_t n = 0; n < static_cast<size_t>(parts.rows); ++n) {
    const auto of_row = zeros.empty() ? std::span<const int32_t>()
                                      : std::span<const int32_t>(zeros).subspan(n * count, count);
    quant::unpack_row(parts.words.values<int32_t>().subspan(n * width, width),
                      scales.values<float>().subspan(n * count, count), of_row, groups,
                      out.mutable_values<float>().subspan(n * static_cast<size_t>(parts.columns),
                                                          static_cast<size_t>(parts.columns)));
  }
  return converted(out, parts.scales.dtype());
}

bool is_part(const std::string& name) {
  return name.ends_with(packed_suffix) || name.ends_with(".weight_scale") ||
         name.ends_with(".weight_shape") || name.ends_with(".weight_zero_point");
}

}  // namespace

std::optional<PackedFormat> packed_format(const Json& config, const std::string& file) {
  if (!config.contains("quantization_config") || config["quantization_config"].is_null()) {
    return std::nullopt;
  }
  const Json& said = config["quantization_config"];
  const std::string where = file + ": quantization_config";
  const auto method = json_field<std::string>(said, "quant_method", where);
  if (method != "compressed-tensors") {
    refuse(file, concat("quant_method is \"", method, "\""));
  }
  const auto format = json_field<std::string>(said, "format", where);
  if (format != "pack-quantized") {
    refuse(file, concat("format is \"", format, "\""));
  }
  const auto groups = said.find("config_groups");
  if (groups == said.end() || !groups->is_object() || groups->size() != 1) {
    refuse(file, "config_groups does not have one group");
  }
  const Json& group = groups->begin().value();
  const auto weights = group.is_object() ? group.find("weights") : group.end();
  if (!group.is_object() || weights == group.end() || !weights->is_object()) {
    refuse(file, "its group says nothing of weights");
  }
  if (group.contains("input_activations") && !group["input_activations"].is_null()) {
    refuse(file, "activations are quantized too");
  }
  PackedFormat out;
  out.bits = json_field<int64_t>(*weights, "num_bits", where);
  out.symmetric = json_field_or<bool>(*weights, "symmetric", true, where);
  const auto type = json_field_or<std::string>(*weights, "type", "int", where);
  const auto strategy = json_field<std::string>(*weights, "strategy", where);
  if (type != "int" || (out.bits != 4 && out.bits != 8)) {
    refuse(file, concat("weights are of type \"", type, "\" with ", out.bits, " bits"));
  }
  if (weights->contains("actorder") && !(*weights)["actorder"].is_null()) {
    refuse(file, "columns are reordered (actorder)");
  }
  if (strategy == "group") {
    out.group = json_field<int64_t>(*weights, "group_size", where);
    check(out.group > 0, ErrorKind::config, where, ": group_size must be positive: got ",
          out.group);
  } else if (strategy == "channel") {
    out.group = 0;
  } else {
    refuse(file, concat("strategy is \"", strategy, "\""));
  }
  return out;
}

Json packed_config(const PackedFormat& format, const std::vector<std::string>& ignore) {
  Json weights = {{"num_bits", format.bits},
                  {"type", "int"},
                  {"symmetric", format.symmetric},
                  {"strategy", format.group > 0 ? "group" : "channel"},
                  {"group_size", format.group > 0 ? Json(format.group) : Json()},
                  {"dynamic", false},
                  {"actorder", nullptr},
                  {"block_structure", nullptr},
                  {"observer", "minmax"},
                  {"observer_kwargs", Json::object()}};
  Json group = {{"targets", {"Linear"}},
                {"weights", weights},
                {"input_activations", nullptr},
                {"output_activations", nullptr}};
  return {{"quant_method", "compressed-tensors"}, {"format", "pack-quantized"},
          {"quantization_status", "compressed"},  {"global_compression_ratio", nullptr},
          {"kv_cache_scheme", nullptr},           {"ignore", ignore},
          {"config_groups", {{"group_0", group}}}};
}

bool is_packed_map(const std::string& ours, const Shape& shape, const PackedFormat& format) {
  return ours.starts_with("layers.") && ours.ends_with(".weight") && shape.rank() == 2 &&
         ours.find(".router.") == std::string::npos &&
         (format.group == 0 || shape.size(1) % format.group == 0);
}

TensorDict unpacked(const TensorDict& stored, const PackedFormat& format,
                    const std::string& origin) {
  TensorDict out;
  for (const auto& [name, tensor] : stored) {
    if (name.ends_with(packed_suffix)) {
      const std::string stem = name.substr(0, name.size() - packed_suffix.size());
      out.add(stem + ".weight", map_of(parts_of(stored, stem, format, origin), format));
    } else if (!is_part(name)) {
      out.add(name, tensor);
    }
  }
  return out;
}

PackedMap packed_map(std::span<const float> values, int64_t rows, const PackedFormat& format,
                     DType scale_type) {
  const auto columns = static_cast<int64_t>(values.size()) / rows;
  const quant::PackedGroups groups = format.groups(columns);
  const auto width = static_cast<size_t>(quant::words_of(columns, groups));
  const auto count = static_cast<size_t>(columns / groups.group);
  PackedMap out{std::vector<int32_t>(static_cast<size_t>(rows) * width),
                std::vector<float>(static_cast<size_t>(rows) * count)};
  for (size_t n = 0; n < static_cast<size_t>(rows); ++n) {
    const auto row = values.subspan(n * static_cast<size_t>(columns), static_cast<size_t>(columns));
    const auto scales = std::span(out.scales).subspan(n * count, count);
    try {
      quant::packed_scales(row, groups, scale_type, scales);
    } catch (Error& error) {
      error.within(concat("in row ", n));
      throw;
    }
    quant::pack_row(row, scales, groups, std::span(out.words).subspan(n * width, width));
  }
  return out;
}

}  // namespace ingot
