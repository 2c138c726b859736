#include "ingot/text/sentencepiece.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>

#include "ingot/base/error.h"
#include "ingot/base/files.h"
#include "ingot/base/json_library.h"
#include "ingot/text/charsmap.h"
#include "ingot/text/utf8.h"

namespace ingot {
namespace {

// One field of a protocol buffer message: a number, or the bytes of a text or nested message.
struct ProtoField {
  uint64_t number = 0;
  uint64_t value = 0;
  std::string_view bytes;
};

// Reads the fields of a message (protobuf.dev/programming-guides/encoding): every length is checked
// against what is left.
class ProtoReader {
 public:
  ProtoReader(std::string_view bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  bool at_end() const { return at_ == bytes_.size(); }

  ProtoField next() {
    const uint64_t key = varint();
    ProtoField field;
    field.number = key >> 3;
    switch (key & 7) {
      case 0: field.value = varint(); break;
      case 1: field.bytes = take(8); break;
      case 2: field.bytes = take(varint()); break;
      case 5: {
        uint32_t value = 0;
        std::memcpy(&value, take(4).data(), 4);
        field.value = value;
        break;
      }
      default: fail("a field of an unknown kind");
    }
    return field;
  }

 private:
  [[noreturn]] void fail(const char* what) const {
    throw Error(ErrorKind::format, concat(name_, ": no SentencePiece model: ", what, " at byte ",
                                          at_, " of a message of ", bytes_.size()));
  }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<uint8_t>(take(1).front());
      value |= uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) {
        return value;
      }
    }
    fail("a number that is too long");
  }
  std::string_view take(uint64_t count) {
    if (count > bytes_.size() - at_) {
      fail("it is cut off");
    }
    at_ += count;
    return bytes_.substr(at_ - count, count);
  }

  std::string_view bytes_;
  const std::string& name_;
  size_t at_ = 0;
};

enum class PieceType : uint8_t {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6,
};

struct Piece {
  std::string text;
  float score = 0;
  PieceType type = PieceType::normal;
};

struct Model {
  std::vector<Piece> pieces;
  int64_t kind = 1;  // 1 Unigram, 2 BPE, 3 words, 4 characters
  bool byte_fallback = false;
  bool space_behind = false;
  int32_t bos = 1;
  int32_t eos = 2;
  int32_t pad = -1;
  std::string unknown_surface = " \xE2\x81\x87 ";
  std::string charsmap;
  bool dummy_prefix = true;
  bool remove_extra_spaces = true;
  bool escape_spaces = true;
};

Piece read_piece(std::string_view bytes, const std::string& name) {
  Piece piece;
  for (ProtoReader reader(bytes, name); !reader.at_end();) {
    const ProtoField field = reader.next();
    switch (field.number) {
      case 1: piece.text = field.bytes; break;
      case 2: piece.score = std::bit_cast<float>(static_cast<uint32_t>(field.value)); break;
      case 3:
        check(field.value >= 1 && field.value <= 6, ErrorKind::format, name, ": the piece '",
              piece.text, "' has the unknown type ", field.value);
        piece.type = static_cast<PieceType>(field.value);
        break;
      default: break;
    }
  }
  check(is_valid_utf8(piece.text) && !std::isnan(piece.score), ErrorKind::format, name,
        ": a piece is no UTF-8 or its score no number: '", with_replacements(piece.text), "'");
  return piece;
}

void read_trainer(std::string_view bytes, Model& model, const std::string& name) {
  for (ProtoReader reader(bytes, name); !reader.at_end();) {
    const ProtoField field = reader.next();
    switch (field.number) {
      case 3: model.kind = static_cast<int64_t>(field.value); break;
      case 24: model.space_behind = field.value != 0; break;
      case 35: model.byte_fallback = field.value != 0; break;
      case 41: model.bos = static_cast<int32_t>(field.value); break;
      case 42: model.eos = static_cast<int32_t>(field.value); break;
      case 43: model.pad = static_cast<int32_t>(field.value); break;
      case 44: model.unknown_surface = field.bytes; break;
      default: break;
    }
  }
}

void read_normalizer(std::string_view bytes, Model& model, const std::string& name) {
  for (ProtoReader reader(bytes, name); !reader.at_end();) {
    const ProtoField field = reader.next();
    switch (field.number) {
      case 2: model.charsmap = field.bytes; break;
      case 3: model.dummy_prefix = field.value != 0; break;
      case 4: model.remove_extra_spaces = field.value != 0; break;
      case 5: model.escape_spaces = field.value != 0; break;
      default: break;
    }
  }
}

Model read_model(std::string_view bytes, const std::string& name) {
  Model model;
  for (ProtoReader reader(bytes, name); !reader.at_end();) {
    const ProtoField field = reader.next();
    switch (field.number) {
      case 1: model.pieces.push_back(read_piece(field.bytes, name)); break;
      case 2: read_trainer(field.bytes, model, name); break;
      case 3: read_normalizer(field.bytes, model, name); break;
      default: break;
    }
  }
  check(!model.pieces.empty(), ErrorKind::format, name,
        ": no SentencePiece model: it holds no pieces");
  return model;
}

// Equal scores are equal ranks: of those the leftmost merge goes first.
std::vector<uint32_t> ranks_by_score(const std::vector<Piece>& pieces) {
  std::vector<float> scores;
  for (const Piece& piece : pieces) {
    if (piece.type == PieceType::normal) {
      scores.push_back(piece.score);
    }
  }
  std::sort(scores.begin(), scores.end(), std::greater<>());
  scores.erase(std::unique(scores.begin(), scores.end()), scores.end());
  std::vector<uint32_t> ranks;
  for (const Piece& piece : pieces) {
    const auto at = std::lower_bound(scores.begin(), scores.end(), piece.score, std::greater<>());
    ranks.push_back(piece.type == PieceType::normal ? static_cast<uint32_t>(at - scores.begin())
                                                    : Merge::never);
  }
  return ranks;
}

void add_pieces(TokenizerSpec& spec, const Model& model) {
  for (const Piece& piece : model.pieces) {
    const auto id = static_cast<TokenId>(spec.tokens.size());
    spec.tokens.push_back(piece.text);
    if (piece.type == PieceType::unknown) {
      spec.unknown = id;
    }
    const bool control = piece.type == PieceType::control;
    if (control || piece.type == PieceType::user_defined) {
      spec.added.push_back(
          {.id = id, .content = piece.text, .normalized = !control, .special = control});
    }
    if (spec.model == TokenizerSpec::Model::unigram) {
      spec.scores.push_back(piece.type == PieceType::normal
                                ? static_cast<double>(piece.score)
                                : std::numeric_limits<double>::quiet_NaN());
    }
  }
  if (spec.model == TokenizerSpec::Model::bpe) {
    spec.ranks = ranks_by_score(model.pieces);
  }
}

std::optional<TokenId> checked(int32_t id, const TokenizerSpec& spec) {
  const bool good = id >= 0 && static_cast<size_t>(id) < spec.tokens.size();
  return good ? std::optional<TokenId>(id) : std::nullopt;
}

std::string frame_with_bos(const TokenizerSpec& spec) {
  if (!spec.bos) {
    return "null";
  }
  const std::string token = spec.tokens[static_cast<size_t>(*spec.bos)];
  const nlohmann::json out = {
      {"type", "TemplateProcessing"},
      {"single",
       {{{"SpecialToken", {{"id", token}, {"type_id", 0}}}},
        {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
      {"pair", nlohmann::json::array()},
      {"special_tokens", {{token, {{"id", token}, {"ids", {*spec.bos}}, {"tokens", {token}}}}}}};
  return out.dump();
}

}  // namespace

TokenizerSpec parse_sentencepiece(std::string_view bytes, const std::string& name) {
  const Model model = read_model(bytes, name);
  check(model.kind == 1 || model.kind == 2, ErrorKind::format, name, ": a SentencePiece model of ",
        model.kind == 3   ? "words"
        : model.kind == 4 ? "characters"
                          : "an unknown kind",
        "; Ingot reads BPE and Unigram");
  check(!model.space_behind, ErrorKind::format, name,
        ": treat_whitespace_as_suffix is set, which Ingot does not read");
  TokenizerSpec spec;
  spec.source = name;
  spec.model = model.kind == 2 ? TokenizerSpec::Model::bpe : TokenizerSpec::Model::unigram;
  spec.byte_fallback = model.byte_fallback;
  spec.fuse_unknown = true;
  spec.single_precision = true;
  add_pieces(spec, model);
  spec.bos = checked(model.bos, spec);
  spec.eos = checked(model.eos, spec);
  spec.pad = checked(model.pad, spec);
  check(spec.unknown != no_token, ErrorKind::format, name,
        ": no SentencePiece model: it has no unknown piece");
  nlohmann::json normalizer = {{"type", "SentencePiece"},
                               {"dummy_prefix", model.dummy_prefix},
                               {"remove_extra_spaces", model.remove_extra_spaces},
                               {"escape_spaces", model.escape_spaces}};
  if (!model.charsmap.empty()) {
    normalizer["precompiled_charsmap"] = to_base64(model.charsmap);
  }
  spec.normalizer = normalizer.dump();
  spec.decoder = nlohmann::json({{"type", "SentencePiece"},
                                 {"prefixed", model.dummy_prefix || model.remove_extra_spaces},
                                 {"strips_all", model.remove_extra_spaces},
                                 {"unknown", spec.tokens[static_cast<size_t>(spec.unknown)]},
                                 {"surface", with_replacements(model.unknown_surface)}})
                     .dump();
  spec.post_processor = frame_with_bos(spec);
  return spec;
}

TokenizerSpec read_sentencepiece(const std::filesystem::path& path) {
  return parse_sentencepiece(read_file(path), path.string());
}

bool is_sentencepiece(std::string_view bytes) {
  return bytes.size() > 4 && bytes[0] == 0x0A && bytes[2] == 0x0A;
}

}  // namespace ingot
