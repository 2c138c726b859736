#include "ingot/scaling/tokens_per_parameter.h"

#include <fmt/format.h>

namespace ingot {

const char* TokensPerParameter::label() const {
  constexpr double least = 15;
  constexpr double most = 25;
  if (total() < least) {
    return "below";
  }
  return total() > most ? "above" : "near";
}

std::string TokensPerParameter::text() const {
  return fmt::format(
      "{:.3g} tokens per parameter ({:.3g} without embeddings), {} the compute-optimal 20", total(),
      without_embeddings(), label());
}

}  // namespace ingot
