#include "ingot/peft/start.h"

#include "ingot/autograd/record.h"
#include "ingot/peft/low_rank.h"
#include "ingot/quant/coded_weights.h"
#include "ingot/tensor/copy.h"

namespace ingot::peft {
namespace {

void start(Lora& lora, nn::Linear& map, const PeftConfig& config) {
  const Tensor w = converted(detach(map.weight), DType::f64);
  const bool fits_rounding = config.init == "loftq";
  LoftqOptions options;
  options.rank = lora.options().rank;
  options.scaling = lora.scaling();
  options.iterations = config.loftq_iterations;
  options.double_scales = true;
  const LowRankStart found =
      fits_rounding ? loftq(w, options) : pissa(w, lora.options().rank, lora.scaling());
  copy_into(lora.a, found.a);
  copy_into(lora.b, found.b);
  copy_into(map.weight, fits_rounding ? found.unrounded : found.rest);
  if (!fits_rounding) {
    lora.start_a = copy_of(detach(lora.a));
    lora.start_b = copy_of(detach(lora.b));
  }
}

}  // namespace

void keep_in_few_bits(nn::Linear& map, const std::string& base) {
  if (map.stored != nullptr) {
    return;
  }
  if (base == "int8") {
    map.to_coded(quant::int8_rows(map.weight));
  } else if (base == "nf4") {
    map.to_coded(quant::nf4_weight(map.weight));
  }
}

void start_from_weights(Adapters& adapters) {
  const PeftConfig& config = adapters.config();
  for (const Adapters::Entry& entry : adapters.entries()) {
    auto* lora = dynamic_cast<Lora*>(entry.adapter.get());
    if (lora != nullptr && config.init != "zero") {
      const Tensor& weight = entry.map->weight;  // undefined where it is coded already
      check(weight.defined(), ErrorKind::config, "peft.init: \"", config.init,
            "\" starts from weights, and this base is kept in codes already; set peft.init = "
            "\"zero\"");
      if (weight.device().kind != DeviceKind::meta) {
        start(*lora, *entry.map, config);
      }
    }
    keep_in_few_bits(*entry.map, config.base);
  }
}

}  // namespace ingot::peft
