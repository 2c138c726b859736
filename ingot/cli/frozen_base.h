#pragma once

#include <memory>

#include "ingot/cli/recipe.h"
#include "ingot/models/decoder.h"
#include "ingot/peft/adapters.h"
#include "ingot/posttrain/added_tokens.h"

namespace ingot {

// The model of a recipe with adapters: its trained weights, none of which collects gradients, those
// of its layers' linear maps kept as peft.base says. They are read one by one, so that in few bits
// no more than one of them exists whole. On the meta device: the same sizes without values. Throws
// Error(config) where there is no trained model to adapt.
std::unique_ptr<Decoder> frozen_decoder(const Recipe& recipe, DType dtype, Device device,
                                        const AddedRows& added);

// The adapters that a recipe trains on it.
std::unique_ptr<peft::Adapters> recipe_adapters(const Recipe& recipe, Decoder& model);

}  // namespace ingot
