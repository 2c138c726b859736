#include "ingot/models/architecture.h"
#include "ingot/models/deepseek_v2.h"
#include "ingot/models/deepseek_v3.h"
#include "ingot/models/gpt2.h"
#include "ingot/models/llama.h"
#include "ingot/models/mixtral.h"
#include "ingot/models/own_format.h"
#include "ingot/models/qwen3_moe.h"

namespace ingot {

std::span<const Architecture> architectures() {
  static const Architecture table[] = {gpt2_architecture(),        llama_architecture(),
                                       mixtral_architecture(),     qwen3_moe_architecture(),
                                       deepseek_v2_architecture(), deepseek_v3_architecture(),
                                       own_architecture()};
  return table;
}

const Architecture& architecture_named(std::string_view model_type) {
  std::string all;
  for (const Architecture& entry : architectures()) {
    if (entry.model_type == model_type) {
      return entry;
    }
    all += (all.empty() ? "" : ", ") + std::string(entry.model_type);
  }
  throw Error(ErrorKind::config,
              concat("model: model_type '", model_type, "' is not known; known are ", all));
}

const Architecture& architecture_of(const DecoderConfig& config) {
  for (const Architecture& entry : architectures()) {
    if (entry.misfit(config).empty()) {
      return entry;
    }
  }
  throw Error(ErrorKind::internal, "model: no architecture takes the configuration");
}

}  // namespace ingot
