#include "ingot/train/diagnosis.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ingot/autograd/grad_mode.h"
#include "ingot/autograd/record.h"
#include "ingot/base/log.h"
#include "ingot/data/batch.h"
#include "ingot/ops/matmul.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/layout.h"

namespace ingot {
namespace {

// Σ f(x) over the elements in f64, a piece at a time.
template <class F>
void each_value(const Tensor& x, F&& f) {
  constexpr int64_t piece = 1 << 16;
  const Tensor whole = dense(x);
  const Tensor flat = reshaped(whole, {whole.elements()});
  for (int64_t begin = 0; begin < flat.elements(); begin += piece) {
    const int64_t end = std::min(begin + piece, flat.elements());
    const Tensor wide = converted(dense(sliced(flat, 0, begin, end)), DType::f64);
    int64_t i = begin;
    for (const double value : wide.values<double>()) {
      f(i++, value);
    }
  }
}

double sum_of_squares(const Tensor& x) {
  double sum = 0;
  each_value(x, [&](int64_t, double value) { sum += value * value; });
  return sum;
}

// max |q·k|·scale over keys up to each query, of row 0.  q: [B, T, H, C]  k: [B, S, K, C]
double largest_logit(const Tensor& q, const Tensor& k, double scale) {
  const NoGrad quiet;
  const int64_t heads = q.size(2);
  const int64_t group = heads / k.size(2);
  const auto rows = [](const Tensor& x, int64_t head) {  // [T, C] f32
    const Tensor one = sliced(sliced(detach(x), 0, 0, 1), 2, head, head + 1);
    return converted(reshaped(copy_of(one), {x.size(1), x.size(3)}), DType::f32);
  };
  double most = 0;
  for (int64_t head = 0; head < heads; ++head) {
    const Tensor logits = matmul(rows(q, head), transposed(rows(k, head / group), 0, 1));
    const int64_t keys = k.size(1);
    const int64_t offset = keys - q.size(1);
    const auto values = logits.values<float>();
    for (int64_t t = 0; t < q.size(1); ++t) {
      for (int64_t s = 0; s < std::min(keys, t + offset + 1); ++s) {
        most = std::max(most, std::abs(scale * values[static_cast<size_t>(t * keys + s)]));
      }
    }
  }
  return most;
}

double dead_share(const std::vector<float>& unit_max, double level) {
  const float most = *std::max_element(unit_max.begin(), unit_max.end());
  const auto dead = std::count_if(unit_max.begin(), unit_max.end(), [&](float unit) {
    return most == 0 || static_cast<double>(unit) < level * static_cast<double>(most);
  });
  return static_cast<double>(dead) / static_cast<double>(unit_max.size());
}

}  // namespace

std::string part_of(std::string_view parameter) {
  size_t end = parameter.find('.');
  if (end != std::string_view::npos && end + 1 < parameter.size() && parameter[end + 1] >= '0' &&
      parameter[end + 1] <= '9') {
    end = parameter.find('.', end + 1);
  }
  return std::string(parameter.substr(0, end));
}

nn::Block::Around named_part(std::string name) {
  return [name = std::move(name)](const nn::Block::Run& run, const Tensor& x) {
    const PartScope scope(name);
    TensorList ys;
    try {
      ys = run(x);
    } catch (Error& error) {
      error.within(name);
      throw;
    }
    if (Watch* watch = watching()) {
      watch->shown("layer", {ys.front()});
    }
    return ys;
  };
}

Diagnosis::Diagnosis(const Optimizer& optimizer, const DiagnosisLimits& limits)
    : optimizer_(optimizer), limits_(limits) {}

void Diagnosis::shown(std::string_view what, const TensorList& xs) {
  const Tensor& x = xs.front();
  if (what == "logit sums") {
    add_log_z(x, xs[1]);
    return;
  }
  if (current_part().empty() || !recording() || x.device().kind == DeviceKind::meta) {
    return;
  }
  Part& part = parts_[std::string(current_part())];
  if (what == "layer") {
    each_value(x, [&](int64_t, double value) {
      part.activation_squares += value * value;
      part.activation_max = std::max(part.activation_max, std::abs(value));
    });
    part.activation_count += static_cast<double>(x.elements());
  } else if (what == "mlp hidden") {
    const int64_t units = x.size(-1);
    part.unit_max.resize(static_cast<size_t>(units));
    each_value(x, [&](int64_t i, double value) {
      float& most = part.unit_max[static_cast<size_t>(i % units)];
      most = std::max(most, static_cast<float>(std::abs(value)));
    });
  } else if (what == "attention") {
    part.max_logit = std::max(part.max_logit, largest_logit(x, xs[1], xs[2].item()));
  }
}

void Diagnosis::add_log_z(const Tensor& sums, const Tensor& labels) {
  if (!recording() || sums.device().kind == DeviceKind::meta) {
    return;
  }
  const Tensor wide = converted(sums, DType::f64);
  const auto rows = wide.values<double>();
  const auto label = labels.values<int64_t>();
  for (size_t i = 0; i < label.size(); ++i) {
    if (label[i] != ignored_label) {
      log_z_ += std::abs(rows[2 * i] + std::log(rows[2 * i + 1]));
      ++log_z_count_;
    }
  }
}

void Diagnosis::before_update(double divisor) {
  std::map<std::string, double> squares;
  for (const auto& [name, p] : optimizer_.parameters()) {
    if (const Tensor& g = grad(p); g.defined() && g.device().kind != DeviceKind::meta) {
      squares[part_of(name)] += sum_of_squares(g);
    }
  }
  for (const auto& [name, sum] : squares) {
    parts_[name].gradient_norm = std::sqrt(sum) / divisor;
  }
  before_ =
      optimizer_.masters().mapped([](const std::string&, const Tensor& x) { return copy_of(x); });
}

void Diagnosis::after_update(StepReport& report) const {
  std::map<std::string, double> moved, held;
  const TensorDict now = optimizer_.masters();
  for (const auto& [name, before] : before_) {
    if (before.device().kind == DeviceKind::meta) {
      return;
    }
    Tensor difference = converted(copy_of(now.at(name)), DType::f64);
    const Tensor was = converted(before, DType::f64);
    auto values = difference.mutable_values<double>();
    const auto old = was.values<double>();
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] -= old[i];
    }
    moved[part_of(name)] += sum_of_squares(difference);
    held[part_of(name)] += sum_of_squares(was);
  }
  std::map<std::string, Part> parts = parts_;
  for (auto& [name, part] : parts) {
    const auto at = held.find(name);
    part.update_ratio =
        at != held.end() && at->second > 0 ? std::sqrt(moved[name] / at->second) : 0;
    report.metrics["grad_norm/" + name] = part.gradient_norm;
    report.metrics["update_ratio/" + name] = part.update_ratio;
    if (part.activation_count > 0) {
      report.metrics["activation_rms/" + name] =
          std::sqrt(part.activation_squares / part.activation_count);
      report.metrics["activation_max/" + name] = part.activation_max;
    }
    if (!part.unit_max.empty()) {
      report.metrics["dead_units/" + name] = dead_share(part.unit_max, limits_.dead_level);
    }
    if (part.max_logit > 0) {
      report.metrics["max_logit/" + name] = part.max_logit;
    }
  }
  if (log_z_count_ > 0) {
    report.metrics["log_z"] = log_z_ / static_cast<double>(log_z_count_);
  }
  for (std::string& warning : warnings(parts)) {
    log_warn("step ", report.step, ": ", warning);
    report.events.push_back(std::move(warning));
  }
}

std::vector<std::string> Diagnosis::warnings(const std::map<std::string, Part>& parts) const {
  std::vector<std::string> out;
  std::string last_name;
  int64_t last = -1;
  for (const auto& [name, part] : parts) {
    if (name.starts_with("layers.") && std::stoll(name.substr(7)) > last) {
      last = std::stoll(name.substr(7));
      last_name = name;
    }
  }
  for (const auto& [name, part] : parts) {
    if (last >= 0 && name.starts_with("layers.")) {
      const double reference = parts.at(last_name).gradient_norm;
      const auto beside = [&](const char* what) {
        out.push_back(concat(what, " gradients: the norm of ", name, " is ", part.gradient_norm,
                             ", of ", last_name, " ", reference));
      };
      if (part.gradient_norm < limits_.vanishing * reference) {
        beside("vanishing");
      } else if (part.gradient_norm > limits_.exploding * reference) {
        beside("exploding");
      }
    }
    const double dead = part.unit_max.empty() ? 0 : dead_share(part.unit_max, limits_.dead_level);
    if (dead > limits_.dead_share) {
      out.push_back(concat("dead units: ", 100 * dead, " % of the feed-forward units of ", name,
                           " are 0 for every token"));
    }
    if (part.max_logit > limits_.logit) {
      out.push_back(concat("instability: an attention logit of ", name, " is ", part.max_logit,
                           ", above ", limits_.logit,
                           "; norm queries and keys, or lower the "
                           "learning rate"));
    }
    if (part.update_ratio > limits_.update) {
      out.push_back(concat("instability: the update of ", name, " is ", 100 * part.update_ratio,
                           " % of its weights; lower the learning rate"));
    }
  }
  return out;
}

}  // namespace ingot
