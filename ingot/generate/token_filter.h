#pragma once

#include <cstdint>
#include <memory>
#include <span>

namespace ingot {

// Says which tokens may come next in one text, as a grammar or a schema demands. Each text has one
// of its own, which follows its tokens.
class TokenFilter {
 public:
  virtual ~TokenFilter() = default;

  // Sets the logits of tokens that may not come next to −∞. Throws Error(argument) where none may.
  virtual void apply(std::span<float> logits) const = 0;
  // Moves on over a token that was drawn.
  virtual void accept(int64_t token) = 0;
  virtual bool complete() const = 0;  // nothing may follow any more: the text ends
  virtual std::unique_ptr<TokenFilter> copy() const = 0;
};

}  // namespace ingot
