#pragma once

#include <span>
#include <vector>

#include "ingot/data/batch.h"
#include "ingot/data/dataset.h"
#include "ingot/data/render.h"

namespace ingot {

// What stands in one row of a batch: documents one after the other, which do not see one another.
struct Sample {
  std::vector<TokenRow> documents;

  int64_t inputs() const;  // columns it takes: of each document its tokens but the last
};

// Samples as the rows of a batch. Of a document with tokens x₀ … xₙ the inputs are x₀ … xₙ₋₁ at
// positions 0 … n−1, and the label at t is xₜ₊₁ where that is learnt, else ignored_label. Documents
// are numbered in each row, so that attention stays inside them; columns behind the last one are
// padding: id 0, ignored labels, a number of their own. The batch has `columns` columns; 0: as many
// as its longest row needs, rounded up to a multiple of 16. Throws Error(argument) for a sample
// that does not fit.
Batch batch_of(std::span<const Sample> samples, int64_t columns = 0);

}  // namespace ingot
