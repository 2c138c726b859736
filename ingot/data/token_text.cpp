#include "ingot/data/token_text.h"

#include "ingot/base/error.h"
#include "ingot/base/progress.h"
#include "ingot/data/windows.h"

namespace ingot {
namespace {

using Bytes = std::span<const std::byte>;

std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Bytes at the start that continue a character.
size_t continuation_bytes(std::string_view text) {
  size_t bytes = 0;
  while (bytes < std::min<size_t>(3, text.size()) &&
         (static_cast<uint8_t>(text[bytes]) & 0xC0) == 0x80) {
    ++bytes;
  }
  return bytes;
}

std::vector<std::span<const TokenId>> spans_of(const std::vector<std::vector<TokenId>>& pieces) {
  return {pieces.begin(), pieces.end()};
}

}  // namespace

TokenText::TokenText(const Text& text, const Tokenizer& tokenizer) {
  auto held = std::make_shared<Held>();
  std::vector<std::string_view> training;
  std::vector<std::string_view> held_out;
  int64_t bytes = 0;
  for (const Bytes piece : text.training_pieces()) {
    training.push_back(text_of(piece));
    bytes += static_cast<int64_t>(piece.size());
  }
  // A held-out stretch that follows a trained one in its file begins with a whole character; the
  // bytes of a cut one belong to the stretch before.
  for (const Bytes piece : text.held_out_pieces()) {
    std::string_view part = text_of(piece);
    for (std::string_view& before : training) {
      if (before.data() + before.size() == part.data()) {
        const size_t cut = continuation_bytes(part);
        before = {before.data(), before.size() + cut};
        part.remove_prefix(cut);
      }
    }
    held_out.push_back(part);
    bytes += static_cast<int64_t>(piece.size());
  }
  Progress progress("tokenize", bytes, "bytes");
  const auto encoded = [&](std::string_view part) {
    Ids ids = tokenizer.encode(part);
    progress.advance(static_cast<int64_t>(part.size()));
    return ids;
  };
  for (const std::string_view part : training) {
    held->training.push_back(encoded(part));
    training_tokens_ += static_cast<int64_t>(held->training.back().size());
  }
  for (const std::string_view part : held_out) {
    Ids ids = encoded(part);
    bool has_context = false;
    for (size_t i = 0; i < training.size(); ++i) {
      const bool follows = training[i].data() + training[i].size() == part.data();
      if (follows && !held->training[i].empty()) {
        ids.insert(ids.begin(), held->training[i].back());
        has_context = true;
      }
    }
    // Without context the first token is no target, and its bytes are not counted.
    const size_t first =
        has_context || ids.empty()
            ? 0
            : std::min(part.size(), tokenizer.decode_bytes(std::span(ids).first(1)).size());
    validation_bytes_ += static_cast<int64_t>(part.size() - first);
    validation_targets_ += std::max<int64_t>(1, static_cast<int64_t>(ids.size())) - 1;
    held->validation.push_back(std::move(ids));
  }
  held_ = std::move(held);
}

std::shared_ptr<const Dataset<TokenWindow>> TokenText::training(int64_t T, uint64_t seed) const {
  check(T >= 1, ErrorKind::argument, "data: the sequence length must be at least 1: got ", T);
  check(training_tokens_ >= T + 1, ErrorKind::format,
        "data: the text is shorter than one sequence: ", training_tokens_,
        " tokens to train on, needed are ", T + 1, " for a sequence length of ", T,
        "; give more text or shorten the sequence");
  return std::make_shared<windows::Training<TokenId>>(
      windows::Stream<TokenId>(held_, spans_of(held_->training)), T, seed);
}

std::shared_ptr<const Dataset<TokenWindow>> TokenText::validation(int64_t T) const {
  check(T >= 1, ErrorKind::argument, "data: the sequence length must be at least 1: got ", T);
  return std::make_shared<windows::Validation<TokenId>>(held_, spans_of(held_->validation), T);
}

}  // namespace ingot
