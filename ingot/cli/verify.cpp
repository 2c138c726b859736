#include "ingot/cli/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ingot/autograd/grad_mode.h"
#include "ingot/generate/generate.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

constexpr int64_t probe_rows = 4;
constexpr int64_t longest_probe = 96;

// Rows that the model writes when each begins with another token.
std::vector<Tokens> probe_of(const Decoder& model) {
  const int64_t length = std::min(longest_probe, model.config().context);
  std::vector<Tokens> rows;
  for (int64_t row = 0; row < probe_rows; ++row) {
    rows.push_back({(1 + row) % model.config().vocab});
  }
  GenerateConfig config;
  config.max_tokens = length - 1;
  config.seed = 1;
  const std::vector<Tokens> written = generate(model, rows, config);
  for (size_t row = 0; row < rows.size(); ++row) {
    rows[row].insert(rows[row].end(), written[row].begin(), written[row].end());
  }
  return rows;
}

// −log p of `token` under one row of logits.
double surprise(std::span<const float> logits, int64_t token) {
  const float most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) {
    sum += std::exp(static_cast<double>(logit - most));
  }
  return std::log(sum) - static_cast<double>(logits[static_cast<size_t>(token)] - most);
}

int64_t likeliest_of(std::span<const float> logits) {
  return std::max_element(logits.begin(), logits.end()) - logits.begin();
}

}  // namespace

Probe::Probe(const Decoder& model) : rows_(probe_of(model)) {
  const NoGrad no_grad;
  for (const Tokens& row : rows_) {
    logits_.push_back(model.logits(tensor_of(row, {1, static_cast<int64_t>(row.size())})));
  }
}

Verification Probe::compare(const Decoder& other) const {
  const NoGrad no_grad;
  const auto V = static_cast<size_t>(logits_.front().size(-1));
  check(other.config().vocab == static_cast<int64_t>(V), ErrorKind::numeric,
        "verify: the vocabularies differ: ", V, " tokens and ", other.config().vocab);
  Verification out;
  double difference = 0, largest = 0, loss_a = 0, loss_b = 0;
  int64_t same = 0;
  for (size_t r = 0; r < rows_.size(); ++r) {
    const Tokens& row = rows_[r];
    const Tensor y = other.logits(tensor_of(row, {1, static_cast<int64_t>(row.size())}));
    const auto all_x = logits_[r].values<float>();
    const auto all_y = y.values<float>();
    for (size_t i = 0; i < all_x.size(); ++i) {
      const double now = std::abs(static_cast<double>(all_x[i]) - static_cast<double>(all_y[i]));
      difference = now <= difference ? difference : now;  // NaN is larger than anything
      largest = std::max(largest, std::abs(static_cast<double>(all_x[i])));
    }
    for (size_t t = 0; t + 1 < row.size(); ++t) {
      const auto row_x = all_x.subspan(t * V, V);
      const auto row_y = all_y.subspan(t * V, V);
      loss_a += surprise(row_x, row[t + 1]);
      loss_b += surprise(row_y, row[t + 1]);
      same += likeliest_of(row_x) == likeliest_of(row_y) ? 1 : 0;
      ++out.tokens;
    }
  }
  const auto tokens = static_cast<double>(std::max<int64_t>(out.tokens, 1));
  out.logits = difference / std::max(largest, 1e-30);
  out.before = std::exp(loss_a / tokens);
  out.after = std::exp(loss_b / tokens);
  out.same_choice = static_cast<double>(same) / tokens;
  return out;
}

Verification compare_models(const StoredModel& original, const StoredModel& written) {
  const Pretrained a = load_stored(original, DType::f32);
  const Probe probe(*a.model);
  const Pretrained b = load_stored(written, DType::f32);
  check(a.model->config().vocab == b.model->config().vocab, ErrorKind::numeric, written.origin,
        ": has another vocabulary than ", original.origin);
  return probe.compare(*b.model);
}

double allowed_growth(GgmlType type) {
  const GgmlLayout& layout = layout_of(type);
  const double bits =
      8.0 * static_cast<double>(layout.block_bytes) / static_cast<double>(layout.block_values);
  return bits >= 32  ? 0.001
         : bits >= 8 ? 0.02
         : bits >= 6 ? 0.05
         : bits >= 5 ? 0.1
         : bits >= 4 ? 0.25
         : bits >= 3 ? 0.6
                     : 2.0;
}

void check_verification(const Verification& found, double allowed, const std::string& path) {
  check(found.growth() <= allowed, ErrorKind::numeric, path,
        ": differs too much from the model it was made from: ", summary(found), "; allowed is ",
        fmt::format("{:.3g}", 100 * allowed),
        " % more perplexity (--max-growth sets it); nothing was written");
}

std::string summary(const Verification& found) {
  return fmt::format(
      "perplexity {:.6g} became {:.6g} ({:+.3g} %) over {} tokens, logits differ by {:.3g} of the "
      "largest, the same token is likeliest at {:.4g} % of places",
      found.before, found.after, 100 * found.growth(), found.tokens, found.logits,
      100 * found.same_choice);
}

}  // namespace ingot
