#pragma once

#include <memory>

#include "ingot/base/describe.h"
#include "ingot/optim/rule.h"

namespace ingot {

struct LookaheadConfig {
  int64_t every = 0;
  double alpha = 0.5;
  std::string momentum = "none";

  template <class V>
  void describe(V& v) {
    v("every", every, at_least(0), "updates between synchronisations; 0: no lookahead");
    v("alpha", alpha, in(0, 1), "share of the way from the slow to the fast weights");
    v("momentum", momentum, one_of({"none", "reset", "pullback"}),
      "what a synchronisation does to momentum: keep, set to 0, or mix as the weights");
  }
};

// `inner` with slow weights beside it.
std::unique_ptr<const Rule> with_lookahead(std::unique_ptr<const Rule> inner,
                                           const LookaheadConfig& config);

}  // namespace ingot
