#pragma once

#include "ingot/cli/recipe.h"
#include "ingot/cli/serve_bodies.h"
#include "ingot/cli/serve_request.h"
#include "tests/fuzz/targets.h"

namespace ingot::testing {

// A refusal, which is an answer to a request too, as it is written.
template <class F>
void answers(F&& f) {
  try {
    f();
  } catch (const ApiError& error) {
    error_body(error);
  }
}

// The bodies of the three requests that `ingot serve` answers.
inline void fuzz_request(std::span<const std::byte> bytes) {
  RequestLimits limits;
  limits.context = 64;
  limits.vocab = 300;
  answers([&] { parse_chat_request(as_text(bytes), limits); });
  answers([&] { parse_text_request(as_text(bytes), limits); });
  answers([&] { parse_embedding_request(as_text(bytes)); });
}

inline void fuzz_recipe(std::span<const std::byte> bytes) {
  survives([&] { parse_recipe(std::string(as_text(bytes)), "fuzz.toml"); });
}

inline const std::vector<FuzzTarget>& request_fuzz_targets() {
  static const std::vector<FuzzTarget> all = {{"request", fuzz_request}, {"recipe", fuzz_recipe}};
  return all;
}

}  // namespace ingot::testing
