// Every update rule beside the reference's: weights after each of ten updates, and the state at the
// end.
#include <gtest/gtest.h>

#include <map>

#include "ingot/base/config_toml.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/matmul.h"
#include "ingot/optim/table.h"
#include "ingot/tensor/layout.h"
#include "tests/optim/given.h"
#include "tests/support/oracle.h"
#include "tests/support/paths.h"

namespace ingot::testing {
namespace {

std::unique_ptr<const Rule> built(const RuleConfig& config) {
  return std::visit([](const auto& rule) { return make_rule(rule); }, config);
}

// Methods of the folder that other tests read.
bool read_elsewhere(const std::string& method) {
  for (const char* other :
       {"clip_", "ema_", "newton_schulz", "sam", "asam", "dynamic_loss_scale", "lookahead"}) {
    if (method.starts_with(other)) {
      return true;
    }
  }
  return false;
}

// How the fixtures of a family of methods name a rule and its settings; "" for one that the table
// of arguments turns into something else.
struct Family {
  std::string prefix;  // of the method's name
  std::string rule;
  std::map<std::string, std::string> settings = {};  // another name → the rule's
  std::string fixed = "";                            // what the method's name implies, as TOML
};
const std::vector<Family> families = {
    {"sgd", "sgd"},
    {"adamw", "adamw", {{"decoupled", ""}}},
    {"adam_8bit", "adamw_8bit", {{"blocksize", "block"}}, "min_elements = 0"},
    {"adam_eps_hat", "adam", {}, "eps_hat = true"},
    {"adam", "adam"},
    {"muon", "muon"},
    {"lion", "lion"},
    {"adagrad", "adagrad"},
    {"ademamix", "ademamix"},
    {"rmsprop", "rmsprop"},
    {"lars", "lars", {}, "adapt_vectors = true"},
    {"larc", "larc", {{"clip", "bounded"}}, "adapt_vectors = true"},
    {"lamb", "lamb"},
    {"normuon", "normuon", {}, "scale = 'keller'"},
    {"adafactor_torch",
     "adafactor",
     {{"d", "clip_threshold"}, {"beta2_decay", "decay_rate"}},
     "form = 'torch'"},
    {"adafactor", "adafactor"},
    {"shampoo_ema_grafted", "shampoo", {}, "every = 1"},
    {"shampoo", "shampoo", {}, "every = 1\nbeta1 = 0\nbeta2 = 1\ngraft = 'none'"},
    {"soap", "soap", {{"precondition_frequency", "every"}, {"max_precond_dim", "max_dim"}}},
    {"schedule_free_adamw", "schedule_free_adamw", {{"warmup_steps", ""}, {"beta1", "beta"}}},
    {"schedule_free_sgd", "schedule_free_sgd", {{"warmup_steps", ""}, {"momentum", "beta"}}},
    {"sophia_g",
     "sophia_g",
     {{"update_every", "every"}, {"rho", ""}, {"batch_size", ""}},
     "form = 'code'\neps = 1e-15"},
    {"sophia_h", "sophia_h", {{"update_every", "every"}}},
    {"sophia_paper", "sophia_g", {{"update_every", "every"}}},
};

// A fixture's settings in the rule's words, as TOML; what it does not state is off.
std::string settings_of(const Oracle& oracle, const Family& family, const Fields& fields) {
  std::string text = family.fixed;
  for (const char* name : {"weight_decay"}) {
    if (fields.find(name) != nullptr && !oracle.hyper.contains(name)) {
      text += concat("\n", name, " = 0");
    }
  }
  if (oracle.hyper.contains("rho") && oracle.hyper.contains("batch_size")) {
    text += concat("\ngamma = ",
                   nlohmann::json(oracle.setting("rho") * oracle.setting("batch_size")).dump());
  }
  for (const auto& [key, value] : oracle.hyper.items()) {
    const auto other = family.settings.find(key);
    const std::string name = other == family.settings.end() ? key : other->second;
    if (name == "lr" || name.empty() || value.is_null()) {
      continue;
    }
    if (name == "aux_lr") {
      text +=
          concat("\naux_lr = ", nlohmann::json(value.get<double>() / oracle.setting("lr")).dump());
    } else {
      const Field* field = fields.find(name);
      const bool whole = field != nullptr && field->kind() == FieldKind::integer;
      text += concat("\n", name, " = ",
                     whole ? nlohmann::json(value.get<int64_t>()).dump() : value.dump());
    }
  }
  return text;
}

// The rule that a fixture describes, with every setting of its `hyper`; nothing for a method that
// no family has. Throws Error(config) naming a setting that the rule does not have.
std::optional<RuleConfig> rule_of(const Oracle& oracle) {
  for (const Family& family : families) {
    if (oracle.method.starts_with(family.prefix)) {
      std::optional<RuleConfig> config = rule_config(family.rule);
      const Fields fields = std::visit([](auto& any) { return fields_of(any); }, *config);
      apply_settings(fields, toml_settings(settings_of(oracle, family, fields), oracle.file));
      return config;
    }
  }
  return std::nullopt;
}

// What a fixture calls the state that a rule keeps in a slot.
const std::map<std::string, std::string> slot_names = {
    {"exp_avg", "m"},
    {"exp_avg_sq", "v"},
    {"momentum_buffer", "momentum"},
    {"exp_avg_fast", "m"},
    {"sum", "s"},
    {"square_avg", "v"},
    {"exp_avg_slow", "slow"},
    {"hessian", "h"},
    {"second_momentum", "v"},
    {"exp_avg_codes", "m"},
    {"exp_avg_absmax", "m_scale"},
    {"exp_avg_sq_codes", "v"},
    {"exp_avg_sq_absmax", "v_scale"},
    {"exp_avg_sq_row", "row"},
    {"exp_avg_sq_col", "column"},
    {"left", "left"},
};

// A parameter's place in a [T, …] tensor.
Tensor at(const Tensor& all, int64_t t, const Shape& shape) {
  return reshaped(sliced(all, 0, t, t + 1), shape);
}

class Trajectory {
 public:
  Trajectory(const Oracle& oracle, const RuleConfig& config, DType dtype)
      : oracle_(oracle),
        dtype_(dtype),
        w_(oracle.input("W", dtype)),
        b_(oracle.input("b", dtype)),
        optimizer_(dict({{"W", require_grad(w_)}, {"b", require_grad(b_)}}), built(config),
                   decay_all),
        steps_(oracle.input("grads_W", dtype).size(0)) {}

  void run(double rate) {
    TensorDict paths;
    for (const auto& [name, p] : optimizer_.parameters()) {
      Shape shape = p.shape();
      shape.insert(0, steps_);
      paths.add(name, empty(shape, dtype_));
    }
    for (int64_t t = 0; t < steps_; ++t) {
      if (optimizer_.curvature_due()) {
        optimizer_.observe_curvature(curvature(t));
      }
      give_all("grads_", t);
      optimizer_.step(rate * warmup(t));
      keep_averages(t);
      for (const auto& [name, p] : optimizer_.parameters()) {
        Tensor target = at(paths.at(name), t, p.shape());
        copy_into(target, p);
      }
    }
    for (const auto& [name, path] : paths) {
      expect_entry(oracle_, name, path);
    }
    expect_state();
  }

 private:
  // Schedule-free rules leave the warm-up to the schedule.
  double warmup(int64_t t) const {
    const double updates = oracle_.setting("warmup_steps", 0);
    return updates > 0 ? std::min(1.0, static_cast<double>(t + 1) / updates) : 1;
  }

  // The estimates for update t: given, or the squares of given gradients.
  TensorDict curvature(int64_t t) const {
    const bool squares = oracle_.inputs.contains("hessian_grads_W");
    return optimizer_.parameters().mapped([&](const std::string& name, const Tensor& p) {
      const std::string entry = squares ? "hessian_grads_" : "hessian_estimates_";
      const Tensor value = copy_of(at(oracle_.input(entry + name, dtype_), t, p.shape()));
      return squares ? value * value : value;
    });
  }

  // Of schedule-free rules x, what is evaluated, and z at every update.
  void keep_averages(int64_t t) {
    const TensorDict state = optimizer_.state();
    const EvaluatedWeights shown(optimizer_);
    for (const auto& [name, p] : optimizer_.parameters()) {
      const std::string z = concat(optimizer_.rule(), ".z/", name);
      if (!state.contains(z)) {
        continue;
      }
      for (const auto& [entry, value] :
           {std::pair("final_x_" + name, p), std::pair("final_z_" + name, state.at(z))}) {
        if (t == 0) {
          Shape shape = p.shape();
          shape.insert(0, steps_);
          averages_.add(entry, empty(shape, dtype_));
        }
        Tensor target = at(averages_.at(entry), t, p.shape());
        copy_into(target, value);
      }
    }
  }

  // SOAP keeps its first moment in the bases that it preconditions in.
  Tensor in_original_basis(const TensorDict& state, const std::string& parameter) const {
    Tensor m = state.at("soap.m/" + parameter);
    if (state.contains("soap.left_basis/" + parameter)) {
      m = matmul(state.at("soap.left_basis/" + parameter), m);
    }
    if (state.contains("soap.right_basis/" + parameter)) {
      m = matmul(m, transposed(state.at("soap.right_basis/" + parameter), 0, 1));
    }
    return m;
  }

  void give_all(const std::string& prefix, int64_t t) {
    for (const auto& [name, p] : optimizer_.parameters()) {
      grad(p) = copy_of(at(oracle_.input(prefix + name, dtype_), t, p.shape()));
    }
  }

  void expect_state() {
    const TensorDict state = optimizer_.state();
    for (const auto& [entry, value] : oracle_.expected.items()) {
      if (!entry.starts_with("final_")) {
        continue;
      }
      const std::string parameter = entry.substr(entry.size() - 1);
      if (entry.starts_with("final_x_") || entry.starts_with("final_z_")) {
        expect_entry(oracle_, entry, averages_.at(entry));
        continue;
      }
      if (entry.find("_in_original_basis_") != std::string::npos) {
        expect_entry(oracle_, entry, in_original_basis(state, parameter));
        continue;
      }
      const auto slot = slot_names.find(entry.substr(6, entry.size() - 8));
      ASSERT_NE(slot, slot_names.end()) << entry;
      expect_entry(oracle_, entry,
                   state.at(concat(optimizer_.rule(), ".", slot->second, "/", parameter)), dtype_);
    }
  }

  const Oracle& oracle_;
  DType dtype_;
  Tensor w_;
  Tensor b_;
  Optimizer optimizer_;
  int64_t steps_;
  TensorDict averages_;
};

// Adafactor's relative steps have no rate of their own: lr multiplies them.
double rate_of(const Oracle& oracle) {
  return oracle.hyper.at("lr").is_null() ? 1 : oracle.setting("lr");
}

TEST(OptimizerOracles, TrajectoriesAndStatesFollowTheReference) {
  const auto files = oracle_files("methods/optim");
  ASSERT_FALSE(files.empty()) << "no fixtures in " << oracle_folder();
  for (const auto& path : files) {
    const Oracle oracle = read_oracle(path);
    SCOPED_TRACE(oracle.file);
    if (read_elsewhere(oracle.method)) {
      continue;
    }
    const auto config = rule_of(oracle);
    if (!config) {
      ADD_FAILURE() << oracle.method << ": no rule of this name is known to the test";
      continue;
    }
    for (const DType dtype : {DType::f64, DType::f32}) {
      Trajectory(oracle, *config, dtype).run(rate_of(oracle));
    }
  }
}

}  // namespace
}  // namespace ingot::testing
