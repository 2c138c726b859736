#include "ingot/text/tokenizer_spec.h"

#include <span>

#include "ingot/base/hash.h"

namespace ingot {
namespace {

// Hashes values with their lengths, so that no two lists of them read alike.
class SpecHasher {
 public:
  void text(std::string_view value) {
    number(static_cast<int64_t>(value.size()));
    hasher_.update(std::as_bytes(std::span(value)));
  }
  template <class Number>
  void number(Number value) {
    hasher_.update(std::as_bytes(std::span(&value, 1)));
  }
  template <class Number>
  void numbers(const std::vector<Number>& values) {
    number(static_cast<int64_t>(values.size()));
    hasher_.update(std::as_bytes(std::span(values)));
  }
  std::string hex() const { return hasher_.hex(); }

 private:
  Hasher hasher_;
};

}  // namespace

std::string_view name(TokenizerSpec::Model model) {
  switch (model) {
    case TokenizerSpec::Model::bpe: return "BPE";
    case TokenizerSpec::Model::unigram: return "Unigram";
    case TokenizerSpec::Model::wordpiece: return "WordPiece";
    case TokenizerSpec::Model::wordlevel: return "WordLevel";
  }
  return "";
}

std::string hash_of(const TokenizerSpec& spec) {
  SpecHasher hasher;
  hasher.text(name(spec.model));
  hasher.number(static_cast<int64_t>(spec.tokens.size()));
  for (const std::string& token : spec.tokens) {
    hasher.text(token);
  }
  hasher.number(spec.unknown);
  hasher.numbers(spec.merges);
  hasher.numbers(spec.ranks);
  hasher.numbers(spec.scores);
  for (const bool flag :
       {spec.fuse_unknown, spec.ignore_merges, spec.byte_fallback, spec.single_precision}) {
    hasher.number(flag);
  }
  hasher.number(spec.longest_word);
  for (const std::string& part : {spec.continuing_prefix, spec.end_suffix, spec.normalizer,
                                  spec.pre_tokenizer, spec.post_processor, spec.decoder}) {
    hasher.text(part);
  }
  for (const AddedToken& token : spec.added) {
    hasher.number(token.id);
    hasher.text(token.content);
    for (const bool flag :
         {token.single_word, token.lstrip, token.rstrip, token.normalized, token.special}) {
      hasher.number(flag);
    }
  }
  return hasher.hex();
}

}  // namespace ingot
