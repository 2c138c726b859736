#pragma once

#include <cstdint>
#include <string>

namespace ingot {

// How much text a model has seen for its size. Hoffmann et al. 2022 ("Training compute-optimal
// large language models", arXiv:2203.15556), Table 3: about 20 tokens per parameter make the best
// of a given amount of arithmetic; fewer leave the model too large for it, more make a smaller
// model better at a price.
struct TokensPerParameter {
  int64_t tokens = 0;
  int64_t parameters = 0;     // all
  int64_t non_embedding = 0;  // without embedding tables and output map

  double total() const { return ratio(parameters); }
  double without_embeddings() const { return ratio(non_embedding); }
  // "below", "near" (15 to 25) or "above" the compute-optimal ratio, by total().
  const char* label() const;
  // "1.06 tokens per parameter (1.12 without embeddings), below the compute-optimal 20"
  std::string text() const;

 private:
  double ratio(int64_t count) const {
    return count == 0 ? 0 : static_cast<double>(tokens) / static_cast<double>(count);
  }
};

}  // namespace ingot
