#pragma once

#include "ingot/peft/adapters.h"

namespace ingot::peft {

// Gives lora adapters the start that the config names ("pissa", "loftq"), changing the frozen
// weights to match, and keeps these in the few bits that config.base asks for. The maps must still
// have their weights. On the meta device: the sizes alone.
void start_from_weights(Adapters& adapters);

// Keeps the weight of a map as a config's `base` says: "int8" or "nf4" (blocks of 64, magnitudes in
// 8 bits); "as_is" changes nothing, nor does a map that is kept so already.
void keep_in_few_bits(nn::Linear& map, const std::string& base);

}  // namespace ingot::peft
