#include "ingot/generate/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ingot/base/error.h"

namespace ingot {
namespace {

void renormalise(std::vector<double>& p) {
  const double total = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& value : p) {
    value /= total;
  }
}

std::vector<double> tempered_softmax(std::span<const float> logits, double temperature) {
  const double most = logits[static_cast<size_t>(likeliest(logits))];
  std::vector<double> p(logits.size());
  for (size_t i = 0; i < p.size(); ++i) {
    p[i] = std::exp((static_cast<double>(logits[i]) - most) / temperature);
  }
  renormalise(p);
  return p;
}

// Tokens by falling probability, equal ones by their number.
bool comes_before(const std::vector<double>& p, size_t a, size_t b) {
  return p[a] != p[b] ? p[a] > p[b] : a < b;
}

void keep_top_k(std::vector<double>& p, size_t k) {
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::nth_element(order.begin(), order.begin() + static_cast<int64_t>(k), order.end(),
                   [&](size_t a, size_t b) { return comes_before(p, a, b); });
  for (size_t i = k; i < order.size(); ++i) {
    p[order[i]] = 0;
  }
  renormalise(p);
}

std::vector<size_t> possible_tokens(const std::vector<double>& p) {
  std::vector<size_t> out;
  for (size_t i = 0; i < p.size(); ++i) {
    if (p[i] > 0) {
      out.push_back(i);
    }
  }
  return out;
}

// Keeps the first of `order` that have `mass` together.
void keep_first(std::vector<double>& p, const std::vector<size_t>& order, double mass) {
  double sum = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const bool enough = i > 0 && sum >= mass;
    sum += p[order[i]];
    p[order[i]] = enough ? 0 : p[order[i]];
  }
  renormalise(p);
}

void keep_top_p(std::vector<double>& p, double mass) {
  std::vector<size_t> order = possible_tokens(p);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return comes_before(p, a, b); });
  keep_first(p, order, mass);
}

void keep_typical(std::vector<double>& p, double mass) {
  std::vector<size_t> order = possible_tokens(p);
  double entropy = 0;
  for (const size_t i : order) {
    entropy -= p[i] * std::log(p[i]);
  }
  std::vector<double> distance(p.size());
  for (const size_t i : order) {
    distance[i] = std::abs(-std::log(p[i]) - entropy);
  }
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return distance[a] != distance[b] ? distance[a] < distance[b] : a < b;
  });
  keep_first(p, order, mass);
}

void keep_min_p(std::vector<double>& p, double share) {
  const double least = share * *std::max_element(p.begin(), p.end());
  for (double& value : p) {
    value = value < least ? 0 : value;
  }
  renormalise(p);
}

}  // namespace

int64_t likeliest(std::span<const float> logits) {
  check(!logits.empty(), ErrorKind::argument, "sampling: no logits");
  for (size_t i = 0; i < logits.size(); ++i) {
    check(!std::isnan(logits[i]), ErrorKind::numeric, "sampling: logit ", i,
          " is not a number; the model or its input is broken");
  }
  const auto most = std::max_element(logits.begin(), logits.end());
  check(std::isfinite(*most), ErrorKind::numeric, "sampling: the largest logit is ", *most,
        "; the model or its input is broken");
  return most - logits.begin();
}

std::vector<double> token_probabilities(std::span<const float> logits,
                                        const SamplingConfig& config) {
  if (config.temperature == 0) {
    std::vector<double> p(logits.size(), 0.0);
    p[static_cast<size_t>(likeliest(logits))] = 1;
    return p;
  }
  std::vector<double> p = tempered_softmax(logits, config.temperature);
  const auto k = static_cast<size_t>(config.top_k);
  if (k > 0 && k < p.size()) {
    keep_top_k(p, k);
  }
  if (config.top_p < 1) {
    keep_top_p(p, config.top_p);
  }
  if (config.min_p > 0) {
    keep_min_p(p, config.min_p);
  }
  if (config.typical_p < 1) {
    keep_typical(p, config.typical_p);
  }
  return p;
}

int64_t token_at(std::span<const double> probabilities, double u) {
  double sum = 0;
  int64_t last = 0;  // rounding may leave the sum below u: then the last token that can be drawn
  for (size_t i = 0; i < probabilities.size(); ++i) {
    sum += probabilities[i];
    if (probabilities[i] > 0) {
      last = static_cast<int64_t>(i);
      if (u < sum) {
        break;
      }
    }
  }
  return last;
}

}  // namespace ingot
