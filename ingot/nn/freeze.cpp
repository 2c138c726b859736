#include "ingot/nn/freeze.h"

#include <algorithm>

#include "ingot/autograd/record.h"
#include "ingot/base/edit_distance.h"

namespace ingot::nn {

TensorDict freeze(Module& module, const std::vector<std::string>& patterns) {
  std::vector<bool> used(patterns.size(), false);
  std::vector<std::string> names;
  TensorDict trained;
  for (const Slot& slot : module.slots()) {
    bool frozen = false;
    for (size_t i = 0; i < patterns.size(); ++i) {
      if (matches(patterns[i], slot.path)) {
        used[i] = true;
        frozen = true;
      }
    }
    Tensor parameter = slot.tensor();
    slot.set(frozen ? detach(parameter) : require_grad(parameter));
    names.push_back(slot.path);
    if (!frozen) {
      trained.add(slot.path, slot.tensor());
    }
  }
  for (size_t i = 0; i < patterns.size(); ++i) {
    check(used[i], ErrorKind::config, "freeze: no parameter matches '", patterns[i],
          "'; the nearest is ", nearest_path(patterns[i], names),
          ", and ** stands for any part of a name");
  }
  check(!trained.empty(), ErrorKind::config, "freeze: every parameter is frozen, by ",
        patterns.size(), " patterns; leave some to train");
  return trained;
}

}  // namespace ingot::nn
