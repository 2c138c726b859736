#pragma once

#include <memory>
#include <string>

#include "ingot/nn/linear.h"
#include "ingot/nn/randomness.h"

namespace ingot::peft {

// What all adapters of one set share.
struct AdapterState {
  bool active = true;  // without, the model computes as if they were not there
  double weight = 1;   // of what they add
  std::shared_ptr<const Randomness> randomness;  // of the model; null: no dropout ever
};

// An adapter of one linear map, with parameters of its own. The map's weight stays as it is.
class Adapter : public nn::LinearAdapter, public nn::Module {
 public:
  explicit Adapter(std::shared_ptr<const AdapterState> state) : state_(std::move(state)) {}

  bool active() const override { return state_->active; }

 protected:
  const AdapterState& state() const { return *state_; }

 private:
  std::shared_ptr<const AdapterState> state_;
};

// What an adapter starts from: a function of the seed and of the path of its map alone.
struct AdapterSeed {
  uint64_t seed = 0;
  std::string path;

  RandomKey key(const char* parameter) const {
    return {seed, 0, site_named(path + "." + parameter)};
  }
};

}  // namespace ingot::peft
