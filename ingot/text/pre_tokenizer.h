#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ingot/text/word_pattern.h"

namespace ingot {

// A text cut into words: one buffer, and where each word in it ends.
struct Pieces {
  std::string text;
  std::vector<size_t> ends;  // ascending; words are not empty

  template <class Each>
  void for_each(const Each& each) const {  // each(word)
    size_t begin = 0;
    for (const size_t end : ends) {
      each(std::string_view(text).substr(begin, end - begin));
      begin = end;
    }
  }
};

// What tokenizer.json calls a pre-tokenizer: steps that cut a normalized text into words.
class PreTokenizer {
 public:
  // Reads the member `pre_tokenizer`, given as JSON; null is no step. Throws Error(format) naming
  // `subject` and the unknown or ill-formed component.
  PreTokenizer(const std::string& json, const std::string& subject);

  // Its last step, and no other, is ByteLevel: then words can be given as bytes, and not in the
  // alphabet of bytes.
  bool ends_in_bytes() const { return ends_in_bytes_; }
  // All there is to do is to cut by this (and to take the bytes).
  const std::optional<WordCutter>& cutter() const { return cutter_; }

  // Cuts `pieces`, at first one word (or none, if empty). `first`: it begins the whole input.
  // `bytes`: leave the alphabet of bytes out; needs ends_in_bytes().
  void apply(Pieces& pieces, bool first, bool bytes) const;

 private:
  using Step = std::function<void(Pieces&, bool first)>;
  void add(const nlohmann::json& component, const std::string& subject, int depth);
  void add_byte_level(const nlohmann::json& component, const std::string& subject);
  void add_split(const nlohmann::json& component, const std::string& subject);
  void add_metaspace(const nlohmann::json& component, const std::string& subject);
  void add_cutter(const WordPattern& pattern);

  std::vector<Step> steps_;
  std::vector<size_t> byte_levels_;  // steps that write the alphabet of bytes
  std::optional<WordCutter> cutter_;
  bool ends_in_bytes_ = false;
};

}  // namespace ingot
