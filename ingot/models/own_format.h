#pragma once

#include "ingot/models/architecture.h"

namespace ingot {

// Every DecoderConfig, under our own names: for models that no published architecture describes.
// config.json holds the fields of DecoderConfig below "decoder".
Architecture own_architecture();

}  // namespace ingot
