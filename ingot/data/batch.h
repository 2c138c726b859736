#pragma once

#include <optional>
#include <span>

#include "ingot/data/dataset.h"
#include "ingot/tensor/tensor_dict.h"

namespace ingot {

// Labels of this value are not trained on and not counted.
inline constexpr int64_t ignored_label = -100;

// What a step computes on. Labels are shifted already: labels[b, t] is the token after ids[b, t].
struct Batch {
  Tensor ids;                       // [B, T] i64
  Tensor labels;                    // [B, T] i64
  std::optional<Tensor> documents;  // [B, T] i32: attention stays within equal numbers
  std::optional<Tensor> positions{};  // [B, T] i64: of each token in its document; absent: 0 … T−1
  TensorDict columns{};               // what an objective asks for besides, by its name for it
};

// Windows as the rows of a batch of T columns. A window of fewer than T + 1 tokens is padded with
// id 0 and ignored labels. Throws Error(argument) for one that is longer, or of fewer than 2.
Batch batch_of(std::span<const TokenWindow> windows, int64_t T);

// One row of a batch by itself, with all that belongs to it.
Batch row_of(const Batch& batch, int64_t row);

// Samples first … first + count − 1 of a dataset as a batch.
Batch batch_from(const Dataset<TokenWindow>& data, int64_t first, int64_t count, int64_t T);

}  // namespace ingot
