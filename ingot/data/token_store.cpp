#include "ingot/data/token_store.h"

#include <algorithm>

#include "ingot/base/error.h"
#include "ingot/base/hash.h"
#include "ingot/base/json.h"
#include "ingot/base/json_library.h"

namespace ingot {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint32_t learnt_bit = uint32_t{1} << 31;

template <class T>
std::span<const T> as_items(const MappedFile& file) {
  const auto bytes = file.bytes();
  check(bytes.size() % sizeof(T) == 0, ErrorKind::format, file.path().string(), ": its size of ",
        bytes.size(), " bytes is no multiple of ", sizeof(T), "; tokenize again");
  return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
}

Json json_of_counts(const RowCounts& counts) {
  Json dropped = Json::object();
  for (size_t i = 0; i < row_faults; ++i) {
    if (counts.dropped[i] > 0) {
      dropped[std::string(name(static_cast<RowFault>(i)))] = {{"rows", counts.dropped[i]},
                                                              {"first", counts.first[i]}};
    }
  }
  return {{"rows", counts.rows}, {"examples", counts.examples}, {"dropped", dropped}};
}

RowCounts counts_from(const nlohmann::json& json) {
  RowCounts out;
  out.rows = json.at("rows").get<int64_t>();
  out.examples = json.at("examples").get<int64_t>();
  for (size_t i = 0; i < row_faults; ++i) {
    const auto found = json.at("dropped").find(std::string(name(static_cast<RowFault>(i))));
    if (found != json.at("dropped").end()) {
      out.dropped[i] = found->at("rows").get<int64_t>();
      out.first[i] = found->at("first").get<std::string>();
    }
  }
  return out;
}

}  // namespace

int64_t StoreManifest::rows() const {
  int64_t out = 0;
  for (const StoreSource& source : sources) {
    out += source.rows;
  }
  return out;
}

int64_t StoreManifest::tokens() const {
  int64_t out = 0;
  for (const StoreSource& source : sources) {
    out += source.tokens;
  }
  return out;
}

int64_t StoreManifest::targets() const {
  int64_t out = 0;
  for (const StoreSource& source : sources) {
    out += source.targets;
  }
  return out;
}

RowCounts StoreManifest::counts() const {
  RowCounts out;
  for (const StoreSource& source : sources) {
    out.add(source.counts);
  }
  return out;
}

std::string to_json(const StoreManifest& manifest, const std::string& content_hash) {
  Json sources = Json::array();
  for (const StoreSource& source : manifest.sources) {
    sources.push_back({{"path", source.path},
                       {"hash", source.hash},
                       {"layout", source.layout},
                       {"counts", json_of_counts(source.counts)},
                       {"bytes", source.bytes},
                       {"rows", source.rows},
                       {"tokens", source.tokens},
                       {"targets", source.targets},
                       {"duplicates", source.duplicates}});
  }
  const Json out = {{"format", "ingot tokens 1"},
                    {"key", manifest.key},
                    {"tokenizer_hash", manifest.tokenizer_hash},
                    {"render_hash", manifest.render_hash},
                    {"vocabulary", manifest.vocabulary},
                    {"content_hash", content_hash},
                    {"sources", sources}};
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

StoreManifest manifest_from(const std::string& json, const std::string& name,
                            std::string* content_hash) {
  const nlohmann::json read = parse_json(json, name);
  check(read.is_object() && read.value("format", "") == "ingot tokens 1", ErrorKind::format, name,
        ": not the manifest of a token store; make one with `ingot data tokenize`");
  StoreManifest out;
  try {
    out.key = read.at("key").get<std::string>();
    out.tokenizer_hash = read.at("tokenizer_hash").get<std::string>();
    out.render_hash = read.at("render_hash").get<std::string>();
    out.vocabulary = read.at("vocabulary").get<int64_t>();
    if (content_hash != nullptr) {
      *content_hash = read.at("content_hash").get<std::string>();
    }
    for (const auto& one : read.at("sources")) {
      StoreSource source;
      source.path = one.at("path").get<std::string>();
      source.hash = one.at("hash").get<std::string>();
      source.layout = one.at("layout").get<std::string>();
      source.counts = counts_from(one.at("counts"));
      source.bytes = one.at("bytes").get<int64_t>();
      source.rows = one.at("rows").get<int64_t>();
      source.tokens = one.at("tokens").get<int64_t>();
      source.targets = one.at("targets").get<int64_t>();
      source.duplicates = one.at("duplicates").get<int64_t>();
      out.sources.push_back(std::move(source));
    }
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorKind::format, concat(name, ": ", error.what(), "; tokenize again"));
  }
  return out;
}

TokenStore::TokenStore(const std::filesystem::path& folder, bool verify)
    : folder_(folder), token_file_(folder / "tokens.bin"), row_file_(folder / "rows.bin") {
  std::string hash;
  manifest_ =
      manifest_from(read_file(folder / "store.json"), (folder / "store.json").string(), &hash);
  tokens_ = as_items<uint32_t>(token_file_);
  rows_ = as_items<StoredRow>(row_file_);
  const auto want = [&](size_t held, int64_t told, const char* what) {
    check(static_cast<int64_t>(held) == told, ErrorKind::format, folder.string(), ": ", held, " ",
          what, ", store.json tells of ", told, "; the store is damaged: tokenize again");
  };
  want(tokens_.size(), manifest_.tokens(), "tokens");
  want(rows_.size(), manifest_.rows(), "rows");
  for (size_t i = 0; i < rows_.size(); ++i) {
    const uint64_t end = i + 1 < rows_.size() ? rows_[i + 1].begin : tokens_.size();
    check(rows_[i].begin < end && end <= tokens_.size() && rows_[i].file < manifest_.sources.size(),
          ErrorKind::format, row_file_.path().string(), ": row ", i,
          " points outside the store; it is damaged: tokenize again");
  }
  if (verify) {
    Hasher hasher;
    hasher.update(token_file_.bytes());
    hasher.update(row_file_.bytes());
    check(hasher.hex() == hash, ErrorKind::format, folder.string(), ": the content's hash is ",
          hasher.hex(), ", store.json tells of ", hash, "; the store is damaged: tokenize again");
  }
}

int64_t TokenStore::length(int64_t row) const { return static_cast<int64_t>(tokens(row).size()); }

std::span<const uint32_t> TokenStore::tokens(int64_t row) const {
  const auto i = static_cast<size_t>(row);
  const uint64_t end = i + 1 < rows_.size() ? rows_[i + 1].begin : tokens_.size();
  return tokens_.subspan(rows_[i].begin, end - rows_[i].begin);
}

std::string TokenStore::place_text(int64_t row) const {
  return concat(manifest_.sources[place(row).file].path, ":", place(row).line);
}

TokenRow TokenStore::read(int64_t row, int64_t begin, int64_t end) const {
  TokenRow out;
  for (const uint32_t item :
       tokens(row).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin))) {
    out.ids.push_back(static_cast<TokenId>(item & ~learnt_bit));
    out.learnt.push_back(static_cast<uint8_t>(item >> 31));
  }
  return out;
}

int64_t TokenStore::learnt(int64_t row, int64_t begin, int64_t end) const {
  int64_t out = 0;
  for (const uint32_t item :
       tokens(row).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin))) {
    out += item >> 31;
  }
  return out;
}

}  // namespace ingot
