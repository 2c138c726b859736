#pragma once

#include "ingot/train/numbers.h"
#include "ingot/train/train_state.h"

namespace ingot {

// A loss is high when it exceeds  median + k · max(MAD, 0.1 % of the median)  of the newest losses
// that were not, MAD their median absolute deviation; the floor keeps a loss that hardly moves from
// alarming. `spike_steps` high ones in a row are a spike. Judged from a quarter of the window on.
// Going back and passing over the batches: Chowdhery et al. 2022, "PaLM", arXiv:2204.02311,
// section 5.1.
double high_loss(const LossHistory& history, const NumbersConfig& config);  // +∞ before that

// Takes in the loss of the step that began at sample `start`. Whether a spike is complete; then the
// history waits to be put back or, where the run goes on, to be forgotten.
bool observe_loss(LossHistory& history, double loss, int64_t start, const NumbersConfig& config);

}  // namespace ingot
