#pragma once

#include "ingot/models/architecture.h"

namespace ingot {

// Radford et al. 2019, "Language Models are Unsupervised Multitask Learners". Published weights of
// linear maps are [In, Out]; queries, keys and values lie side by side in one.
Architecture gpt2_architecture();

}  // namespace ingot
