#include "ingot/cli/text_codec.h"

#include <array>
#include <cstdlib>

#include "ingot/base/error.h"
#include "ingot/base/files.h"
#include "ingot/base/json_library.h"
#include "ingot/cli/sample.h"
#include "ingot/models/gguf_vocabulary_keys.h"
#include "ingot/text/load_tokenizer.h"

namespace ingot {
namespace {

using Json = nlohmann::json;

TokenIds ids_of(std::span<const int64_t> tokens) {
  TokenIds out;
  for (const int64_t token : tokens) {
    out.push_back(static_cast<TokenId>(token));
  }
  return out;
}

// What config.json holds under "ingot"; an empty object where nothing.
Json own_settings(const std::string& config) {
  const Json read = Json::parse(config, nullptr, false);
  const bool there = read.is_object() && read.contains("ingot") && read["ingot"].is_object();
  return there ? read["ingot"] : Json::object();
}

}  // namespace

Tokens TextCodec::prompt(std::string_view text, EncodeOptions options) const {
  if (!tokenizer_) {
    return byte_tokens(text.empty() ? "\n" : text);
  }
  TokenIds ids = tokenizer_->frame().before;
  const TokenIds own =
      tokenizer_->encode(text, {.add_special = false, .parse_special = options.parse_special});
  if (!options.add_special) {
    ids.clear();
  }
  ids.insert(ids.end(), own.begin(), own.end());
  if (ids.empty()) {
    ids = tokenizer_->bos() ? TokenIds{*tokenizer_->bos()} : tokenizer_->encode("\n");
  }
  return {ids.begin(), ids.end()};
}

Tokens TextCodec::plain(std::string_view text) const {
  if (!tokenizer_) {
    return byte_tokens(text);
  }
  const TokenIds ids = tokenizer_->encode(text);
  return {ids.begin(), ids.end()};
}

std::string TextCodec::bytes_of(int64_t token) const {
  if (!tokenizer_) {
    return byte_text(std::array{token});
  }
  const auto id = static_cast<TokenId>(token);
  const std::string spelling = tokenizer_->token(id);
  if (tokenizer_->is_special(id)) {
    return spelling;
  }
  if (tokenizer_->is_byte_level()) {
    return tokenizer_->decode_bytes(std::span(&id, 1));
  }
  // "<0xE2>" stands for a byte wherever bytes fall back.
  if (spelling.size() == 6 && spelling.starts_with("<0x") && spelling.back() == '>') {
    const char digits[] = {spelling[3], spelling[4], '\0'};
    return std::string(1, static_cast<char>(std::strtol(digits, nullptr, 16)));
  }
  // How a token is written depends on whether text stands before it.
  const TokenIds before = tokenizer_->encode("a");
  TokenIds both = before;
  both.push_back(id);
  const std::string start = tokenizer_->decode(before);
  const std::string whole = tokenizer_->decode(both);
  return whole.starts_with(start) ? whole.substr(start.size())
                                  : tokenizer_->decode(std::span(&id, 1));
}

std::string TextCodec::text(std::span<const int64_t> tokens) const {
  return tokenizer_ ? tokenizer_->decode(ids_of(tokens)) : byte_text(tokens);
}

std::vector<int64_t> TextCodec::stops() const {
  return tokenizer_ && tokenizer_->eos() ? std::vector<int64_t>{*tokenizer_->eos()}
                                         : std::vector<int64_t>();
}

CodecStream::CodecStream(const TextCodec& codec) {
  if (codec.tokenizer() != nullptr) {
    decoder_.emplace(*codec.tokenizer());
  }
}

std::string CodecStream::add(int64_t token) {
  return decoder_ ? decoder_->add(static_cast<TokenId>(token))
                  : bytes_.add(byte_text(std::array{token}));
}

std::string CodecStream::finish() { return decoder_ ? decoder_->finish() : bytes_.finish(); }

std::string codec_config(const TextCodec& codec) {
  if (codec.tokenizer() == nullptr) {
    return byte_model_config;
  }
  return Json({{"ingot", {{"tokens", "tokenizer"}, {"tokenizer_hash", codec.tokenizer()->hash()}}}})
      .dump();
}

std::optional<TextCodec> codec_of(const std::filesystem::path& folder, const std::string& config,
                                  int64_t vocab) {
  if (reads_bytes(config)) {
    return TextCodec();
  }
  if (tokenizer_files(folder).empty()) {
    return std::nullopt;
  }
  auto tokenizer = std::make_shared<const Tokenizer>(load_tokenizer(folder));
  const Json settings = own_settings(config);
  const std::string hash = settings.value("tokenizer_hash", tokenizer->hash());
  check(hash == tokenizer->hash(), ErrorKind::config, folder.string(),
        ": the tokenizer is not the one that the model was trained with: its hash is ",
        tokenizer->hash(), ", config.json says ", hash);
  check_vocabulary(*tokenizer, vocab, folder.string());
  return TextCodec(std::move(tokenizer));
}

std::optional<TextCodec> codec_of(const StoredModel& model, const std::string& file) {
  if (reads_bytes(model.published)) {
    return TextCodec();
  }
  const auto vocabulary = gguf_vocabulary_from(model.tokenizer, file);
  if (!vocabulary) {
    return std::nullopt;
  }
  auto tokenizer = std::make_shared<const Tokenizer>(from_gguf(*vocabulary));
  check_vocabulary(*tokenizer, model.config.vocab, file);
  return TextCodec(std::move(tokenizer));
}

// A folder's tokenizer is found by its name, whatever the one it came from was called.
void copy_tokenizer(const std::filesystem::path& from, const std::filesystem::path& folder) {
  for (const std::filesystem::path& file : tokenizer_files(from)) {
    const std::string bytes = read_file(file);
    std::string name = file.filename().string();
    const bool main = file == from && name != "vocab.json" && name != "merges.txt" &&
                      file.extension() != ".tiktoken";
    if (main) {
      const bool json = file.extension() == ".json" || bytes.starts_with('{');
      name = json ? "tokenizer.json" : "tokenizer.model";
    }
    write_file(folder / name, bytes);
  }
}

void check_vocabulary(const Tokenizer& tokenizer, int64_t vocab, const std::string& key) {
  check(tokenizer.vocabulary_size() <= vocab, ErrorKind::config, key,
        ": the tokenizer has more tokens than the model: it has ", tokenizer.vocabulary_size(),
        ", the model's vocabulary is ", vocab, ", so that token ", vocab, ", '",
        tokenizer.token(static_cast<TokenId>(vocab)), "', would have no embedding");
}

}  // namespace ingot
