#include <algorithm>
#include <array>
#include <cmath>

#include "ingot/base/config_diff.h"
#include "ingot/base/edit_distance.h"
#include "ingot/base/json_library.h"
#include "ingot/models/architecture.h"
#include "ingot/models/deepseek_v2.h"
#include "ingot/models/deepseek_v3.h"
#include "ingot/models/gemma.h"
#include "ingot/models/gemma2.h"
#include "ingot/models/gemma3.h"
#include "ingot/models/gpt2.h"
#include "ingot/models/gpt_neox.h"
#include "ingot/models/llama.h"
#include "ingot/models/mistral.h"
#include "ingot/models/mixtral.h"
#include "ingot/models/olmo2.h"
#include "ingot/models/own_format.h"
#include "ingot/models/phi3.h"
#include "ingot/models/qwen2.h"
#include "ingot/models/qwen3.h"
#include "ingot/models/qwen3_moe.h"
#include "ingot/models/smollm3.h"

namespace ingot {
namespace {

const Architecture* found(std::string_view model_type) {
  for (const Architecture& entry : architectures()) {
    if (entry.model_type == model_type) {
      return &entry;
    }
  }
  return nullptr;
}

// Equal, or numbers that differ by the rounding of a formula and its inverse.
bool same(const std::optional<Value>& a, const std::optional<Value>& b) {
  if (a && b && std::holds_alternative<double>(*a) && std::holds_alternative<double>(*b)) {
    const double x = std::get<double>(*a);
    const double y = std::get<double>(*b);
    return x == y || std::abs(x - y) < 1e-12 * std::abs(x);
  }
  return text_of(a) == text_of(b);
}

// What does not tell two models apart: the family's name, and what is of training alone.
constexpr std::array<std::string_view, 6> beside_the_model = {
    "architecture", "dropout", "moe.balance", "moe.balance_span", "moe.z_loss", "moe.bias_rate"};

// The first field in which two models differ, or null.
const Field* first_difference(const Fields& a, const Fields& b) {
  for (const Field& field : a.all()) {
    if (std::ranges::count(beside_the_model, field.path) == 0 &&
        !same(field.get(), b.find(field.path)->get())) {
      return &field;
    }
  }
  return nullptr;
}

}  // namespace

std::span<const Architecture> architectures() {
  static const Architecture table[] = {
      gpt2_architecture(),        llama_architecture(),     mistral_architecture(),
      qwen2_architecture(),       qwen3_architecture(),     gemma_architecture(),
      gemma2_architecture(),      gemma3_architecture(),    phi3_architecture(),
      olmo2_architecture(),       smollm3_architecture(),   gpt_neox_architecture(),
      mixtral_architecture(),     qwen3_moe_architecture(), deepseek_v2_architecture(),
      deepseek_v3_architecture(), own_architecture()};
  return table;
}

std::vector<std::string> family_names() {
  std::vector<std::string> out;
  for (const Architecture& entry : architectures().first(architectures().size() - 1)) {
    out.emplace_back(entry.model_type);
  }
  return out;
}

const Architecture& architecture_named(std::string_view model_type) {
  if (const Architecture* entry = found(model_type)) {
    return *entry;
  }
  check(
      model_type != "bert", ErrorKind::config,
      "model: bert sees both sides of a token and cannot continue a text; load it with load_bert");
  std::vector<std::string> known;
  std::string all;
  for (const Architecture& entry : architectures()) {
    known.emplace_back(entry.model_type);
    all += (all.empty() ? "" : ", ") + known.back();
  }
  throw Error(ErrorKind::config,
              concat("model: model_type '", model_type, "' is not known; the nearest is '",
                     nearest_word(model_type, known), "', known are ", all));
}

const Architecture& architecture_of(const DecoderConfig& config) {
  const Architecture* own = found(config.architecture);
  if (own != nullptr && misfit_of(*own, config).empty()) {
    return *own;
  }
  const std::span<const Architecture> all = architectures();
  for (const Architecture& entry : all.first(all.size() - 1)) {
    if (misfit_of(entry, config).empty()) {
      return entry;
    }
  }
  return all.back();
}

std::string misfit_of(const Architecture& architecture, const DecoderConfig& config) {
  try {
    DecoderConfig given = plainest(config);
    nlohmann::json written = nlohmann::json::object();
    architecture.write(given, written);
    DecoderConfig back = plainest(architecture.read(written, "config.json"));
    const Fields fields = fields_of(given);
    const Field* field = first_difference(fields, fields_of(back));
    return field == nullptr ? ""
                            : concat(architecture.model_type, " has no ", field->path, " = ",
                                     text_of(field->get()));
  } catch (const Error& error) {
    return error.what();
  }
}

DecoderConfig start_of(std::string_view architecture) {
  const Architecture* entry = found(architecture);
  DecoderConfig out;
  if (entry != nullptr && entry->start != nullptr) {
    out = entry->start();
  }
  out.architecture = architecture;
  return out;
}

}  // namespace ingot
