#include "ingot/cli/frozen_base.h"

#include <map>

#include "ingot/base/files.h"
#include "ingot/cli/adapter_model.h"
#include "ingot/cli/model_source.h"
#include "ingot/models/stored_model.h"
#include "ingot/peft/start.h"
#include "ingot/quant/coded_weights.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

// Where values come from, by our names.
struct Values {
  std::function<Tensor(const std::string& name)> f32;
  const StoredModel* stored = nullptr;  // where they are read row by row
};

bool in_a_layer(const std::string& path) { return path.starts_with("layers."); }

// What a linear map's weight becomes. A start that changes the weight needs its numbers, so they
// are kept until start_from_weights.
void fill_map(nn::Linear& map, const std::string& name, const Values& values, const Recipe& recipe,
              DType dtype) {
  const std::string& base = recipe.peft.base;
  if (base == "file") {
    const int64_t rows = map.out_features(), columns = map.in_features();
    map.to_coded(quant::read_weight(
        rows, columns, 0, cpu_device,
        [read = values.stored->read, name](int64_t begin, int64_t end, std::span<float> out) {
          read(name, begin, end, out);
        }));
    return;
  }
  const PurposeScope scope(Purpose::parameters);
  map.weight = values.f32(name);
  if (recipe.peft.init == "zero") {
    peft::keep_in_few_bits(map, base);
  }
  if (map.weight.defined()) {
    map.weight = converted(map.weight, dtype);
  }
}

Tensor read_whole(const StoredModel& stored, const std::string& name) {
  const Tensor& shape = stored.shapes.at(name);
  Tensor out = empty(shape.shape(), DType::f32);
  stored.read(name, 0, rows_of(shape), out.mutable_values<float>());
  stored.release();
  return out;
}

void check_source(const Recipe& recipe) {
  const std::string& from = recipe.model.from;
  check(!from.empty(), ErrorKind::config,
        "peft.kind: adapters are trained beside a trained model, and model.from names none");
  check(recipe.peft.base != "file" || !is_folder(from), ErrorKind::config,
        "peft.base: \"file\" decodes the blocks of a GGUF file: model.from is a folder, ", from,
        "; name the file, or choose nf4 or int8");
}

}  // namespace

std::unique_ptr<Decoder> frozen_decoder(const Recipe& recipe, DType dtype, Device device,
                                        const AddedRows& added) {
  check_source(recipe);
  auto model = std::make_unique<Decoder>(recipe.model, dtype, meta_device);
  const bool coded = recipe.peft.base != "as_is";
  std::map<std::string, nn::Linear*> maps;
  for (const auto& [path, map] : nn::linear_maps(*model)) {
    if (in_a_layer(path)) {
      maps[path + ".weight"] = map;
    }
  }
  if (device.kind == DeviceKind::meta) {
    for (const auto& [name, map] : maps) {
      const PurposeScope scope(Purpose::parameters);
      if (recipe.peft.init == "zero" && coded) {
        recipe.peft.base == "file"
            ? map->to_coded(
                  quant::read_weight(map->out_features(), map->in_features(), 0, meta_device, {}))
            : peft::keep_in_few_bits(*map, recipe.peft.base);
      }
    }
    return model;
  }
  StoredModel stored = open_model(recipe.model.from);
  Values values{[&stored](const std::string& name) { return read_whole(stored, name); }, &stored};
  TensorDict changed;  // tables of more tokens, experts of a dense model: made whole
  const bool same_shape = recipe.model.vocab == stored.config.vocab && added.count == 0 &&
                          recipe.model.moe.experts == stored.config.moe.experts;
  if (!same_shape) {
    check(recipe.peft.base != "file" || recipe.model.moe.experts == stored.config.moe.experts,
          ErrorKind::config,
          "peft.base: the experts of an upcycled model are in no file; choose nf4");
    const Decoder shape(recipe.model, DType::f32, cpu_device);
    changed = source_weights(recipe.model.from, shape, added, static_cast<uint64_t>(recipe.seed));
    values.f32 = [&changed](const std::string& name) { return changed.at(name); };
  }
  for (const nn::Slot& slot : model->slots()) {
    const auto map = maps.find(slot.path);
    if (map != maps.end() && coded) {
      fill_map(*map->second, slot.path, values, recipe, dtype);
      continue;
    }
    const PurposeScope scope(Purpose::parameters);
    const DType type = slot.tensor().dtype() == dtype ? dtype : slot.tensor().dtype();
    slot.set(converted(values.f32(slot.path), type));
  }
  return model;
}

std::unique_ptr<peft::Adapters> recipe_adapters(const Recipe& recipe, Decoder& model) {
  peft::Adapters::Options options;
  options.seed = static_cast<uint64_t>(recipe.seed);
  options.dtype = model.dtype();
  options.device = model.embedding.weight.device();
  options.randomness = model.randomness();
  std::unique_ptr<peft::Adapters> out;
  if (recipe.peft.from.empty()) {
    out = std::make_unique<peft::Adapters>(model, recipe.peft, options);
  } else {
    const peft::AdapterFolder folder = peft::read_adapter_folder(recipe.peft.from);
    check(folder.config.kind == recipe.peft.kind, ErrorKind::config, recipe.peft.from, ": is ",
          folder.config.kind, ", peft.kind is ", recipe.peft.kind);
    const bool real = options.device.kind != DeviceKind::meta;
    out = peft::load_adapter(model, published_maps(model), folder, options,
                             real ? base_hash(recipe.model.from) : "");
  }
  peft::start_from_weights(*out);
  return out;
}

}  // namespace ingot
