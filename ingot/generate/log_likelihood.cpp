#include "ingot/generate/log_likelihood.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "ingot/autograd/grad_mode.h"
#include "ingot/ops/embedding.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

constexpr int64_t piece = 256;  // rows whose logits exist at a time

// Inputs that several continuations share, and where in them predictions begin.
struct Text {
  Tokens inputs;
  size_t first = 0;  // the input whose next token is the continuation's first
  std::vector<size_t> askers;
};

void check_continuations(std::span<const Continuation> all) {
  for (size_t i = 0; i < all.size(); ++i) {
    check(!all[i].context.empty() && !all[i].tokens.empty(), ErrorKind::argument,
          "log_likelihoods: continuation ", i, " has ", all[i].context.size(),
          " tokens of context and ", all[i].tokens.size(), " of its own; each needs one");
  }
}

std::vector<Text> texts_of(std::span<const Continuation> all, int64_t context) {
  std::map<std::pair<Tokens, size_t>, std::vector<size_t>> groups;
  for (size_t i = 0; i < all.size(); ++i) {
    Tokens inputs = all[i].context;
    inputs.insert(inputs.end(), all[i].tokens.begin(), all[i].tokens.end() - 1);
    const size_t own = all[i].tokens.size();
    if (static_cast<int64_t>(inputs.size()) > context) {
      inputs.erase(inputs.begin(), inputs.end() - context);
    }
    check(own <= inputs.size(), ErrorKind::argument, "log_likelihoods: continuation ", i, " of ",
          own, " tokens is longer than the model's context of ", context);
    groups[{std::move(inputs), own}].push_back(i);
  }
  std::vector<Text> out;
  for (auto& [key, askers] : groups) {
    out.push_back({key.first, key.first.size() - key.second, std::move(askers)});
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Text& a, const Text& b) { return a.inputs.size() > b.inputs.size(); });
  return out;
}

// ln softmax at one token, and whether it is the largest.
struct Predicted {
  double log_probability;
  bool likeliest;
};

class Row {
 public:
  explicit Row(std::span<const float> logits) : logits_(logits) {
    const auto most = std::max_element(logits.begin(), logits.end());
    best_ = most - logits.begin();
    double total = 0;
    for (const float logit : logits) {
      total += std::exp(static_cast<double>(logit) - static_cast<double>(*most));
    }
    log_total_ = std::log(total) + static_cast<double>(*most);
  }
  Predicted at(int64_t token) const {
    return {static_cast<double>(logits_[static_cast<size_t>(token)]) - log_total_, token == best_};
  }

 private:
  std::span<const float> logits_;
  int64_t best_ = 0;
  double log_total_ = 0;
};

// Hidden states of texts side by side, padded on the right: causal attention does not see padding.
Tensor hidden_rows(const Decoder& model, std::span<const Text> texts) {
  const auto longest = static_cast<int64_t>(texts.front().inputs.size());
  Tensor ids = full({static_cast<int64_t>(texts.size()), longest}, 0, DType::i64);
  int64_t* at = ids.mutable_values<int64_t>().data();
  for (const Text& text : texts) {
    std::copy(text.inputs.begin(), text.inputs.end(), at);
    at += longest;
  }
  const Tensor hidden = model.hidden(ids);
  return reshape(hidden, {ids.elements(), hidden.size(2)});
}

void score(const Decoder& model, std::span<const Continuation> all, std::span<const Text> texts,
           std::vector<Likelihood>& out) {
  const Tensor hidden = hidden_rows(model, texts);
  const size_t longest = texts.front().inputs.size();
  struct Asked {
    size_t text, place;  // place: which token of the continuation
  };
  std::vector<Asked> asked;
  std::vector<int64_t> rows;
  for (size_t i = 0; i < texts.size(); ++i) {
    for (size_t t = texts[i].first; t < texts[i].inputs.size(); ++t) {
      asked.push_back({i, t - texts[i].first});
      rows.push_back(static_cast<int64_t>(i * longest + t));
    }
  }
  for (size_t begin = 0; begin < rows.size(); begin += piece) {
    const size_t end = std::min(rows.size(), begin + piece);
    const std::vector<int64_t> some(rows.begin() + static_cast<int64_t>(begin),
                                    rows.begin() + static_cast<int64_t>(end));
    const Tensor picked = embedding(hidden, tensor_of(some, {static_cast<int64_t>(some.size())}));
    const Tensor logits = dense(converted(model.logits_of(picked), DType::f32));
    const auto values = logits.values<float>();
    const auto V = static_cast<size_t>(logits.size(1));
    for (size_t i = begin; i < end; ++i) {
      const Row row(values.subspan((i - begin) * V, V));
      for (const size_t asker : texts[asked[i].text].askers) {
        const Predicted got = row.at(all[asker].tokens[asked[i].place]);
        check(std::isfinite(got.log_probability), ErrorKind::numeric,
              "log_likelihoods: ln p of continuation ", asker, " is ", got.log_probability,
              "; the model or its input is broken");
        out[asker].log_probability += got.log_probability;
        out[asker].greedy = out[asker].greedy && got.likeliest;
      }
    }
  }
}

}  // namespace

std::vector<Likelihood> log_likelihoods(const Decoder& model, std::span<const Continuation> all,
                                        int64_t batch_tokens,
                                        const std::function<bool(int64_t done)>& on_done) {
  const NoGrad quiet;
  check_continuations(all);
  const std::vector<Text> texts = texts_of(all, model.config().context);
  std::vector<Likelihood> out(all.size());
  int64_t done = 0;
  for (size_t begin = 0; begin < texts.size();) {
    const auto longest = static_cast<int64_t>(texts[begin].inputs.size());
    const auto most = static_cast<size_t>(std::max<int64_t>(1, batch_tokens / longest));
    const size_t end = std::min(texts.size(), begin + most);
    const std::span<const Text> batch = std::span(texts).subspan(begin, end - begin);
    score(model, all, batch, out);
    for (const Text& text : batch) {
      done += static_cast<int64_t>(text.askers.size());
    }
    if (on_done && !on_done(done)) {
      break;
    }
    begin = end;
  }
  return out;
}

double text_log_probability(const Decoder& model, std::span<const int64_t> tokens, int64_t known,
                            int64_t overlap) {
  const int64_t context = model.config().context;
  const auto n = static_cast<int64_t>(tokens.size());
  check(known >= 1 && overlap >= 1 && overlap <= context, ErrorKind::argument,
        "text_log_probability: known and overlap must be at least 1, overlap at most the context: "
        "they are ",
        known, " and ", overlap, ", the context is ", context);
  std::vector<Continuation> windows;
  for (int64_t begin = known; begin < n;) {
    // The first window may hold more new tokens, as nothing must stand before its first.
    const int64_t start = std::max<int64_t>(0, begin - (windows.empty() ? known : overlap));
    const int64_t end = std::min(n, start + context + 1);
    windows.push_back({Tokens(tokens.begin() + start, tokens.begin() + begin),
                       Tokens(tokens.begin() + begin, tokens.begin() + end)});
    begin = end;
  }
  double total = 0;
  for (const Likelihood& one : log_likelihoods(model, windows)) {
    total += one.log_probability;
  }
  return total;
}

}  // namespace ingot
