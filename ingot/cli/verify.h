#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ingot/base/ggml_type.h"
#include "ingot/models/stored_model.h"

namespace ingot {

// How a model that was written compares with the one it was made from, on text that the first one
// writes itself (so that it has a perplexity worth the name whatever it was trained on).
struct Verification {
  int64_t tokens = 0;            // of the probe
  double logits = 0;             // largest |a − b| over largest |a|
  double before = 0, after = 0;  // perplexities
  double same_choice = 0;        // share of places where both find the same token likeliest

  double growth() const { return after / before - 1; }  // of the perplexity
};

// Texts that a model writes, and what it computes on them: kept to compare others with it later,
// when it is another model itself. The model must be in f32.
class Probe {
 public:
  explicit Probe(const Decoder& model);
  // Throws Error(numeric) where the vocabularies differ.
  Verification compare(const Decoder& other) const;

 private:
  std::vector<std::vector<int64_t>> rows_;
  TensorList logits_;  // [1, T, V] of each row
};

// Loads both models whole, in f32.
Verification compare_models(const StoredModel& original, const StoredModel& written);

// How much the perplexity may grow for weights of this type: 0.1 % for F32, 2 % for 16 and 8 bits,
// 5 % for 6, 10 % for 5, 25 % for 4, 60 % for 3, 200 % below. What trained models lose is far less;
// a file that was written wrongly loses everything.
double allowed_growth(GgmlType type);

// Throws Error(numeric) where the perplexity grew more than `allowed`, or is no number.
void check_verification(const Verification& found, double allowed, const std::string& path);

std::string summary(const Verification& found);

}  // namespace ingot
