#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ingot/peft/adapter.h"
#include "ingot/peft/config.h"
#include "ingot/peft/lora.h"

namespace ingot::peft {

// What a set of adapters reached.
struct Coverage {
  std::vector<std::string> maps;  // paths of the maps that got one
  std::vector<std::string> rest;  // of those that did not
  int64_t trained = 0;            // parameters of the adapters
  int64_t frozen = 0;             // parameters of the model

  // "lora on 28 of 29 linear maps (layers.*.attention.wq, …), not on head; 49152 of 310000
  // parameters are trained, 15.9 %"
  std::string text(const std::string& kind) const;
};

// A named set of adapters of a model's linear maps, which work within the model from construction
// on. The parameters of the adapters are this module's ("layers.0.attention.wq.lora_a"), those of
// the model stay the model's. Several sets may sit on one model: what they add is added up, the
// first one innermost.
class Adapters : public nn::Module {
 public:
  struct Options {
    std::string name = "default";
    uint64_t seed = 1;  // of starting values
    DType dtype = DType::f32;
    Device device = cpu_device;
    std::shared_ptr<const Randomness> randomness;  // what dropout draws from
    struct RankAndAlpha {
      int64_t rank;
      double alpha;
    };
    std::map<std::string, RankAndAlpha> per_map;  // by path, where maps differ
  };

  // The model must outlive this. Throws Error(config) naming a target that matches no linear map
  // and the nearest there is, or where the model has none.
  Adapters(nn::Module& model, const PeftConfig& config, const Options& options);
  ~Adapters() override;

  void visit(nn::Visitor& v) override;

  const std::string& name() const { return name_; }
  const PeftConfig& config() const { return config_; }
  const Coverage& coverage() const { return coverage_; }

  bool active() const { return state_->active; }
  void set_active(bool active) { state_->active = active; }
  double weight() const { return state_->weight; }
  void set_weight(double weight) { state_->weight = weight; }

  // Puts what the adapters do into the model's weights and takes them off the model. Throws
  // Error(config) where no weight does the same, or where the model keeps its weights in few bits.
  void merge();

  struct Entry {
    std::string path;
    nn::Linear* map;
    std::shared_ptr<Adapter> adapter;
  };
  const std::vector<Entry>& entries() const { return entries_; }

  // Throws Error(numeric) naming the maps whose B is still 0 everywhere: they get no gradient. For
  // lora and dora, after some steps.
  void check_learning(int64_t steps) const;

 private:
  std::shared_ptr<Adapter> make(const std::string& path, const nn::Linear& map,
                                const Options& options) const;
  void take_off();

  std::string name_;
  PeftConfig config_;
  std::shared_ptr<AdapterState> state_;
  std::vector<Entry> entries_;
  Coverage coverage_;
};

// While it lives the adapters do not count: the model is what it was before, with the same weights
// in the same memory.
class AdaptersOff {
 public:
  explicit AdaptersOff(Adapters* adapters)
      : adapters_(adapters), before_(adapters != nullptr && adapters->active()) {
    set(false);
  }
  ~AdaptersOff() { set(before_); }
  AdaptersOff(const AdaptersOff&) = delete;
  AdaptersOff& operator=(const AdaptersOff&) = delete;

 private:
  void set(bool active) {
    if (adapters_ != nullptr) {
      adapters_->set_active(active);
    }
  }

  Adapters* adapters_;
  bool before_;
};

// The targets of a config: its own, or those that its kind has by default.
std::vector<std::string> targets_of(const PeftConfig& config);
// Whether a target means the map: a glob of its whole path, or one of its last parts ("wq",
// "attention.wq").
bool is_target(const std::string& target, const std::string& path);

}  // namespace ingot::peft
