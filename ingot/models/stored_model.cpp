#include "ingot/models/stored_model.h"

#include <array>
#include <cstring>

#include "ingot/base/error.h"
#include "ingot/base/files.h"
#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "ingot/models/architecture.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"

namespace ingot {
namespace {

constexpr uint32_t llama2c_magic = 0x616b3432;  // "24ka"
constexpr uint32_t llmc_magic = 20240326;
constexpr int64_t values_at_once = int64_t{1} << 23;

std::string first_bytes(const std::filesystem::path& path) {
  const MappedFile file(path);
  const auto bytes = file.bytes().first(std::min<size_t>(file.bytes().size(), 4));
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void load_parameter(const StoredModel& stored, const std::string& name, Tensor parameter) {
  const int64_t rows = rows_of(parameter);
  const int64_t columns = columns_of(parameter);
  if (rows * columns == 0) {
    return;
  }
  const int64_t step = std::max<int64_t>(1, values_at_once / columns);
  const Tensor flat = reshaped(parameter, {rows, columns});
  for (int64_t begin = 0; begin < rows; begin += step) {
    const int64_t end = std::min(rows, begin + step);
    Tensor values = empty({end - begin, columns}, DType::f32);
    stored.read(name, begin, end, values.mutable_values<float>());
    Tensor target = sliced(flat, 0, begin, end);
    copy_into(target, values);
    stored.release();
  }
}

}  // namespace

int64_t rows_of(const Tensor& parameter) { return parameter.rank() == 0 ? 1 : parameter.size(0); }

int64_t columns_of(const Tensor& parameter) {
  const int64_t rows = rows_of(parameter);
  return rows == 0 ? 0 : parameter.elements() / rows;
}

namespace {

StoredModel opened(const std::filesystem::path& path) {
  if (is_folder(path)) {
    return open_folder(path);
  }
  const std::string start = first_bytes(path);
  if (start == "GGUF") {
    return open_gguf(path);
  }
  uint32_t magic = 0;
  std::memcpy(&magic, start.data(), start.size() == sizeof magic ? sizeof magic : 0);
  if (magic == llmc_magic) {
    return open_llmc(path);
  }
  check(magic == llama2c_magic || path.extension() == ".bin", ErrorKind::format, path.string(),
        ": no model that Ingot reads: expected a folder with config.json, a GGUF file, or a "
        "checkpoint "
        "of llama2.c or llm.c (.bin)");
  return open_llama2c(path);
}

}  // namespace

StoredModel open_model(const std::filesystem::path& path) {
  try {
    return opened(path);
  } catch (Error& error) {
    if (std::string_view(error.what()).find(path.string()) == std::string_view::npos) {
      error.within(concat("while opening ", path.string()));
    }
    throw;
  }
}

StoredModel without_heads(StoredModel model) {
  if (model.config.mtp.depth > 0) {
    model.config.mtp = {};
    model.shapes = Decoder(model.config, DType::f32, meta_device).parameters();
    const Architecture& family = architecture_of(model.config);
    nlohmann::json published = parse_json(model.published, model.origin);
    published.erase("decoder");  // of our own format, which a model without heads may not need
    family.write(plainest(model.config), published);
    model.published = published.dump(2);
    model.model_type = family.model_type;
  }
  return model;
}

Pretrained load_stored(const StoredModel& stored, std::optional<DType> dtype) {
  Pretrained out;
  out.config = stored.published;
  try {
    out.model = std::make_unique<Decoder>(stored.config, dtype.value_or(stored.dtype));
    for (const auto& [name, parameter] : out.model->parameters()) {
      load_parameter(stored, name, parameter);
    }
  } catch (Error& error) {
    error.within(concat("while loading ", stored.origin));
    throw;
  }
  return out;
}

}  // namespace ingot
