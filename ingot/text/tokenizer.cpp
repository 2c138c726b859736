#include "ingot/text/tokenizer.h"

#include <algorithm>
#include <utility>

#include "ingot/base/error.h"
#include "ingot/text/byte_alphabet.h"
#include "ingot/text/utf8.h"

namespace ingot {
namespace {

constexpr size_t sink_part = 4096;  // ids given to a sink at once, about

}  // namespace

struct Tokenizer::Work {
  BpeScratch bpe;
  TokenIds ids;
  Pieces pieces;
  std::string section;
  const std::function<void(std::span<const TokenId>)>* sink = nullptr;

  void pass_on(size_t least) {
    if (sink != nullptr && ids.size() >= least && !ids.empty()) {
      (*sink)(ids);
      ids.clear();
    }
  }
};

Tokenizer::Tokenizer(TokenizerSpec spec) : spec_(std::move(spec)) {
  const std::string& file = spec_.source;
  normalizer_ = std::make_unique<Normalizer>(spec_.normalizer, file + ": normalizer");
  pre_tokenizer_ = std::make_unique<PreTokenizer>(spec_.pre_tokenizer, file + ": pre_tokenizer");
  frame_ = read_frame(spec_.post_processor, file + ": post_processor");
  decoder_ = std::make_unique<TokenDecoder>(spec_.decoder, file + ": decoder");
  added_ = AddedTokens(spec_.added, *normalizer_);
  bytes_ = spec_.model == TokenizerSpec::Model::bpe && pre_tokenizer_->ends_in_bytes() &&
           spec_.continuing_prefix.empty() && spec_.end_suffix.empty() && !spec_.byte_fallback;
  vocabulary_ = Vocabulary(model_tokens());
  spellings_ = Vocabulary(spec_.tokens);
  model_ = std::make_unique<Model>(made_model());
  hash_ = hash_of(spec_);
  vocabulary_size_ = static_cast<int64_t>(spec_.tokens.size());
  for (const AddedToken& token : spec_.added) {
    vocabulary_size_ = std::max(vocabulary_size_, int64_t{token.id} + 1);
  }
  spec_.ranks.shrink_to_fit();
}

Tokenizer::~Tokenizer() { delete idle_.load(); }

Tokenizer::Tokenizer(Tokenizer&& other) noexcept { *this = std::move(other); }

Tokenizer& Tokenizer::operator=(Tokenizer&& other) noexcept {
  spec_ = std::move(other.spec_);
  hash_ = std::move(other.hash_);
  vocabulary_size_ = other.vocabulary_size_;
  normalizer_ = std::move(other.normalizer_);
  pre_tokenizer_ = std::move(other.pre_tokenizer_);
  decoder_ = std::move(other.decoder_);
  frame_ = std::move(other.frame_);
  added_ = std::move(other.added_);
  bytes_ = other.bytes_;
  vocabulary_ = std::move(other.vocabulary_);
  spellings_ = std::move(other.spellings_);
  model_ = std::move(other.model_);
  delete idle_.exchange(other.idle_.exchange(nullptr));
  return *this;
}

// Where words reach the model as bytes, its tokens are bytes too. A spelling that is not in the
// alphabet of bytes can stand in no word.
std::vector<std::string> Tokenizer::model_tokens() const {
  std::vector<std::string> tokens = spec_.tokens;
  for (std::string& token : tokens) {
    token = bytes_ ? from_symbols(token).value_or("") : std::move(token);
  }
  return tokens;
}

Tokenizer::Model Tokenizer::made_model() const {
  const TokenizerSpec& spec = spec_;
  switch (spec.model) {
    case TokenizerSpec::Model::bpe: {
      BpeSettings settings = {bytes_,
                              spec.unknown,
                              spec.fuse_unknown,
                              spec.byte_fallback,
                              spec.ignore_merges,
                              spec.continuing_prefix,
                              spec.end_suffix};
      return spec.ranks.empty() ? BpeModel(vocabulary_, spec.merges, std::move(settings))
                                : BpeModel(vocabulary_, spec.ranks, std::move(settings));
    }
    case TokenizerSpec::Model::unigram:
      return UnigramModel(vocabulary_, spec.scores,
                          {spec.unknown, spec.byte_fallback, spec.single_precision});
    case TokenizerSpec::Model::wordpiece:
      return WordPieceModel{spec.unknown, spec.continuing_prefix, spec.longest_word};
    case TokenizerSpec::Model::wordlevel: return WordLevelModel{spec.unknown};
  }
  throw Error(ErrorKind::internal, "tokenizer: no such model");
}

TokenIds Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  std::unique_ptr<Work> work(idle_.exchange(nullptr));
  if (!work) {
    work = std::make_unique<Work>();
  }
  work->sink = nullptr;
  work->ids.reserve(text.size() / 4 + 8);
  if (options.add_special) {
    work->ids = frame_.before;
  }
  encode_section(text, true, options, *work);
  if (options.add_special) {
    work->ids.insert(work->ids.end(), frame_.after.begin(), frame_.after.end());
  }
  TokenIds ids = std::move(work->ids);
  delete idle_.exchange(work.release());
  return ids;
}

void Tokenizer::encode(std::string_view text, EncodeOptions options,
                       const std::function<void(std::span<const TokenId>)>& sink) const {
  Work work;
  work.sink = &sink;
  if (options.add_special) {
    work.ids = frame_.before;
  }
  encode_section(text, true, options, work);
  if (options.add_special) {
    work.ids.insert(work.ids.end(), frame_.after.begin(), frame_.after.end());
  }
  work.pass_on(1);
}

// Ill-formed bytes are words of their own where words are bytes.
void Tokenizer::encode_section(std::string_view text, bool first, const EncodeOptions& options,
                               Work& work) const {
  size_t good = valid_utf8_prefix(text);
  if (good == text.size()) {
    encode_valid(text, first, options, work);
    return;
  }
  if (!bytes_) {
    encode_valid(with_replacements(text), first, options, work);
    return;
  }
  while (true) {
    if (good > 0) {
      encode_valid(text.substr(0, good), first, options, work);
      first = false;
    }
    text.remove_prefix(good);
    if (text.empty()) {
      return;
    }
    const size_t bad = ill_formed_bytes(text);
    encode_word(text.substr(0, bad), work);
    text.remove_prefix(bad);
    first = false;
    good = valid_utf8_prefix(text);
  }
}

void Tokenizer::encode_valid(std::string_view whole, bool first, const EncodeOptions& options,
                             Work& work) const {
  const auto token = [&](TokenId id) { work.ids.push_back(id); };
  added_.cut(
      whole, AddedTokens::Stage::raw, options.parse_special,
      [&](std::string_view part) {
        const bool at_start = first && part.data() == whole.data();
        std::string_view text = part;
        const std::optional<NormalForm>& form = normalizer_->only_form();
        if (!normalizer_->empty() && !(form && is_normalized(part, *form))) {
          work.section = part;
          normalizer_->apply(work.section, at_start);
          text = work.section;
        }
        added_.cut(
            text, AddedTokens::Stage::normalized, options.parse_special,
            [&](std::string_view words) {
              encode_normalized(words, at_start && words.data() == text.data(), work);
            },
            token);
      },
      token);
}

void Tokenizer::encode_normalized(std::string_view text, bool first, Work& work) const {
  if (text.empty()) {
    return;
  }
  if (bytes_ && pre_tokenizer_->cutter()) {
    const WordCutter cutter = *pre_tokenizer_->cutter();
    const char* const end = text.data() + text.size();
    for (const char* at = text.data(); at < end;) {
      const char* const stop = cutter.word_end(at, end);
      encode_word({at, stop}, work);
      at = stop;
    }
    return;
  }
  work.pieces.text = text;
  work.pieces.ends.assign(1, text.size());
  pre_tokenizer_->apply(work.pieces, first, bytes_);
  work.pieces.for_each([&](std::string_view word) { encode_word(word, work); });
}

void Tokenizer::encode_word(std::string_view word, Work& work) const {
  if (const auto* bpe = std::get_if<BpeModel>(model_.get())) {
    bpe->encode(vocabulary_, word, work.bpe, work.ids);
  } else if (const auto* unigram = std::get_if<UnigramModel>(model_.get())) {
    unigram->encode(vocabulary_, word, work.ids);
  } else if (const auto* wordpiece = std::get_if<WordPieceModel>(model_.get())) {
    wordpiece->encode(vocabulary_, word, work.ids);
  } else {
    std::get<WordLevelModel>(*model_).encode(vocabulary_, word, work.ids);
  }
  work.pass_on(sink_part);
}

std::vector<std::string> Tokenizer::spelled(std::span<const TokenId> ids,
                                            DecodeOptions options) const {
  std::vector<std::string> out;
  for (const TokenId id : ids) {
    std::string text = token(id);
    if (!text.empty() && !(options.skip_special && is_special(id))) {
      out.push_back(std::move(text));
    }
  }
  return out;
}

std::string Tokenizer::decode(std::span<const TokenId> ids, DecodeOptions options) const {
  return decoder_->text(spelled(ids, options));
}

std::string Tokenizer::decode_bytes(std::span<const TokenId> ids, DecodeOptions options) const {
  if (!decoder_->only_bytes()) {
    return decode(ids, options);
  }
  std::string out;
  for (const std::string& text : spelled(ids, options)) {
    out += from_symbols(text).value_or(text);
  }
  return out;
}

std::string Tokenizer::token(TokenId id) const {
  const AddedToken* added = added_.find(id);
  return added != nullptr ? added->content : std::string(spellings_.text(id));
}

std::optional<TokenId> Tokenizer::id_of(std::string_view token) const {
  for (const AddedToken& added : added_.all()) {
    if (added.content == token) {
      return added.id;
    }
  }
  const TokenId id = spellings_.find(token);
  return id == no_token ? std::nullopt : std::optional(id);
}

bool Tokenizer::is_special(TokenId id) const {
  const AddedToken* added = added_.find(id);
  return added != nullptr && added->special;
}

std::optional<TokenId> Tokenizer::unknown() const {
  return spec_.unknown == no_token ? std::nullopt : std::optional(spec_.unknown);
}

std::vector<TokenIds> Tokenizer::best_segmentations(std::string_view text, int64_t n) const {
  const auto* unigram = std::get_if<UnigramModel>(model_.get());
  check(unigram != nullptr, ErrorKind::argument, spec_.source,
        ": only a Unigram tokenizer weighs segmentations; this is ", name(spec_.model));
  std::string normalized = with_replacements(text);
  normalizer_->apply(normalized, true);
  return unigram->best(normalized, n);
}

}  // namespace ingot
