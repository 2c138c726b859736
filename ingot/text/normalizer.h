#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ingot/text/unicode.h"

namespace ingot {

// What tokenizer.json calls a normalizer: steps that change a text before it is cut into words.
class Normalizer {
 public:
  // Reads the member `normalizer` of a tokenizer.json, given as JSON; null is no step. Ingot's own
  // type "SentencePiece" is SentencePiece's normalizer with its settings. Throws Error(format)
  // naming `subject` and the unknown or ill-formed component.
  Normalizer(const std::string& json, const std::string& subject);

  bool empty() const { return steps_.empty(); }
  // Normalizes valid UTF-8; `first`: the text begins the whole input (no token stands before it).
  void apply(std::string& text, bool first) const;
  // What an added token's content becomes, to be found in normalized text.
  std::string of_added(const std::string& content) const;
  // The one form that all there is to do brings a text into, if it is that.
  std::optional<NormalForm> only_form() const { return form_; }

 private:
  using Step = std::function<void(std::string& text, bool first)>;
  void add(const nlohmann::json& component, const std::string& subject, int depth);

  std::vector<Step> steps_;
  std::optional<NormalForm> form_;
  bool keeps_added_ = false;  // added tokens are not normalized
};

}  // namespace ingot
