#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ingot/models/gguf_architecture.h"
#include "ingot/models/stored_model.h"

namespace ingot {

// Between tensors of GGUF files and ours, row by row.

// The shape of a pair's tensor in a file. `shapes` are our parameters.
Shape gguf_shape(const GgufPair& pair, const TensorDict& shapes);

// Throws Error(format) that lists every tensor of the file that is missing, of another shape, or
// that no pair names.
void check_gguf_tensors(const GgufFile& file, const std::vector<GgufPair>& pairs,
                        const TensorDict& shapes);

// What rounding loses where theirs = ours + added: with d = theirs − added it is ours − d, so that
// d + lost is ours to the bit (Dekker 1971, the error of a sum). A file that Ingot writes has it
// beside its tensors, under this key, where there is any.
std::string lost_key(const GgufPair& pair);
std::vector<float> lost_by_adding(const StoredModel& stored, const GgufPair& pair);

// Rows [begin, end) of ours out of the file; of a pair that holds a part of each head only those
// rows are filled.
void read_gguf_rows(const GgufFile& file, const GgufPair& pair, const std::string& ours,
                    const TensorDict& shapes, int64_t begin, int64_t end, std::span<float> out);

// Rows [begin, end) of a pair's tensor as the file has them, made of a stored model's. Both begin
// and end where a head does if rows belong together.
void make_gguf_rows(const StoredModel& stored, const GgufPair& pair, int64_t begin, int64_t end,
                    std::span<float> out);

// Rows and columns of a pair's tensor, and the rows that belong together: a head of an interleaved
// one or of a part of heads, otherwise 1.
struct GgufRows {
  int64_t rows;
  int64_t columns;
  int64_t together;
};
GgufRows gguf_rows(const GgufPair& pair, const TensorDict& shapes);

}  // namespace ingot
