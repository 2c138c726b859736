#include "ingot/data/tokenize.h"

#include <xxhash.h>

#include <fstream>
#include <sstream>
#include <unordered_map>
#include <utility>
#include <variant>

#include "ingot/base/error.h"
#include "ingot/base/hash.h"
#include "ingot/data/in_order.h"

namespace ingot {
namespace {

namespace fs = std::filesystem;

constexpr const char* journal_name = "journal.json";

uint64_t hash_of_id(const std::string& id) {
  return id.empty() ? 0 : XXH3_64bits(id.data(), id.size()) | 1;
}

// The files of a store while it is made, and what is known of it so far.
class Writer {
 public:
  Writer(fs::path folder, StoreManifest start)
      : folder_(std::move(folder)), manifest(std::move(start)) {
    make_directories(folder_);
    if (!take_journal()) {
      remove_tree(folder_ / journal_name);
      remove_tree(folder_ / "store.json");
      write_file(folder_ / "tokens.bin", "");
      write_file(folder_ / "rows.bin", "");
    }
    tokens_.open(folder_ / "tokens.bin", std::ios::binary | std::ios::app);
    rows_.open(folder_ / "rows.bin", std::ios::binary | std::ios::app);
  }

  void add(const TokenRow& row, StoredRow place) {
    place.begin = static_cast<uint64_t>(token_count_);
    std::vector<uint32_t> items;
    items.reserve(row.ids.size());
    for (size_t i = 0; i < row.ids.size(); ++i) {
      items.push_back(static_cast<uint32_t>(row.ids[i]) | static_cast<uint32_t>(row.learnt[i])
                                                              << 31);
    }
    write(tokens_, items.data(), items.size() * sizeof(uint32_t), "tokens.bin");
    write(rows_, &place, sizeof(place), "rows.bin");
    token_count_ += row.size();
    StoreSource& source = manifest.sources[place.file];
    ++source.rows;
    source.tokens += row.size();
    source.targets += row.targets();
  }

  // Everything so far survives a kill: `blocks` blocks of file `file` are done.
  void keep(size_t file, int64_t blocks) {
    flush();
    StoreManifest noted = manifest;
    noted.key = concat(manifest.key, " ", file, " ", blocks);
    write_file(folder_ / journal_name, to_json(noted, ""));
  }

  void finish() {
    flush();
    Hasher hasher;
    {
      const MappedFile tokens(folder_ / "tokens.bin");
      const MappedFile rows(folder_ / "rows.bin");
      hasher.update(tokens.bytes());
      hasher.update(rows.bytes());
    }
    write_file(folder_ / "store.json", to_json(manifest, hasher.hex()));
    remove_tree(folder_ / journal_name);
  }

  // Where it goes on.
  size_t file() const { return file_; }
  int64_t blocks() const { return blocks_; }

  // Rows that are there already, for finding duplicates.
  template <class F>
  void for_each_row(const F& f) const {
    const MappedFile rows(folder_ / "rows.bin");
    const auto* all = reinterpret_cast<const StoredRow*>(rows.bytes().data());
    for (size_t i = 0; i < rows.bytes().size() / sizeof(StoredRow); ++i) {
      f(all[i]);
    }
  }

 private:
  // Continues what a journal of the same key tells of.
  bool take_journal() {
    if (!file_exists(folder_ / journal_name) || !file_exists(folder_ / "tokens.bin") ||
        !file_exists(folder_ / "rows.bin")) {
      return false;
    }
    try {
      StoreManifest noted =
          manifest_from(read_file(folder_ / journal_name), (folder_ / journal_name).string());
      std::istringstream words(noted.key);
      std::string key;
      words >> key >> file_ >> blocks_;
      const auto tokens = static_cast<uint64_t>(noted.tokens()) * sizeof(uint32_t);
      const auto rows = static_cast<uint64_t>(noted.rows()) * sizeof(StoredRow);
      if (key != manifest.key || fs::file_size(folder_ / "tokens.bin") < tokens ||
          fs::file_size(folder_ / "rows.bin") < rows) {
        file_ = 0;
        blocks_ = 0;
        return false;
      }
      fs::resize_file(folder_ / "tokens.bin", tokens);
      fs::resize_file(folder_ / "rows.bin", rows);
      noted.key = key;
      token_count_ = noted.tokens();
      manifest = std::move(noted);
      return true;
    } catch (const Error&) {
      file_ = 0;
      blocks_ = 0;
      return false;  // a journal that cannot be read is none
    }
  }

  void write(std::ofstream& file, const void* data, size_t bytes, const char* what) {
    file.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
    check(file.good(), ErrorKind::io, (folder_ / what).string(),
          ": cannot write; is the disk full? free some space and start again: it continues");
  }
  void flush() {
    tokens_.flush();
    rows_.flush();
    check(tokens_.good() && rows_.good(), ErrorKind::io, folder_.string(),
          ": cannot write; is the disk full? free some space and start again: it continues");
  }

  fs::path folder_;
  std::ofstream tokens_, rows_;
  int64_t token_count_ = 0;
  size_t file_ = 0;
  int64_t blocks_ = 0;

 public:
  StoreManifest manifest;
};

// Contents and ids that were seen.
class Seen {
 public:
  void add(const StoredRow& row) {
    contents_.emplace(row.content, 0);
    if (row.id != 0) {
      ids_.emplace(row.id, row.content);
    }
  }
  bool content(uint64_t hash) const { return contents_.contains(hash); }
  bool id_of_another(uint64_t id, uint64_t content) const {
    const auto found = ids_.find(id);
    return found != ids_.end() && found->second != content;
  }

 private:
  std::unordered_map<uint64_t, char> contents_;
  std::unordered_map<uint64_t, uint64_t> ids_;
};

struct Rendered {
  std::vector<TokenRow> rows;
  StoredRow place;
};
using Found = std::variant<Rendered, RowError>;

class Work {
 public:
  Work(const Renderer& renderer, const TokenizeOptions& options, Writer& out)
      : renderer_(renderer), options_(options), out_(out) {
    out.for_each_row([&](const StoredRow& row) { seen_.add(row); });
  }

  void block(const std::vector<Example>& examples, size_t file) {
    in_order<Found>(
        examples.size(),
        [&](size_t i) -> Found {
          const Example& example = examples[i];
          Rendered done;
          done.place.file = static_cast<uint32_t>(file);
          done.place.line = static_cast<uint32_t>(example.place.line);
          done.place.content = content_hash(example);
          done.place.id = hash_of_id(example.id);
          try {
            done.rows = renderer_(example);
          } catch (const RowError& error) {
            return error;
          }
          return done;
        },
        [&, next = size_t{0}](Found found) mutable {
          const Example& example = examples[next++];
          if (auto* done = std::get_if<Rendered>(&found)) {
            take(example, std::move(*done));
          } else {
            refuse(std::get<RowError>(found), file);
          }
        });
  }

 private:
  void refuse(const RowError& error, size_t file) {
    if (options_.read.policy == RowPolicy::error) {
      throw error;
    }
    RowCounts& counts = out_.manifest.sources[file].counts;
    counts.drop(error);
    --counts.examples;
  }

  void take(const Example& example, Rendered done) {
    const size_t file = done.place.file;
    if (done.place.id != 0 && seen_.id_of_another(done.place.id, done.place.content)) {
      return refuse(RowError(RowFault::duplicate,
                             concat(example.place.text(), ": the id '", example.id,
                                    "' is that of an earlier row with another content; give it one "
                                    "of its own")),
                    file);
    }
    if (seen_.content(done.place.content)) {
      if (options_.duplicates != Duplicates::keep) {
        RowError error(RowFault::duplicate,
                       concat(example.place.text(),
                              ": the row says what an earlier one says; leave it out, or set "
                              "data.duplicates = \"keep\""));
        if (options_.duplicates == Duplicates::error) {
          throw error;
        }
        RowCounts& counts = out_.manifest.sources[file].counts;
        counts.drop(error);
        --counts.examples;
        return;
      }
      ++out_.manifest.sources[file].duplicates;
    }
    seen_.add(done.place);
    for (const TokenRow& row : done.rows) {
      out_.add(row, done.place);
    }
  }

  const Renderer& renderer_;
  const TokenizeOptions& options_;
  Writer& out_;
  Seen seen_;
};

StoreManifest start_of(const std::vector<std::string>& files, const Renderer& renderer,
                       std::string key) {
  StoreManifest out;
  out.key = std::move(key);
  out.tokenizer_hash = renderer.tokenizer().hash();
  out.render_hash = renderer.hash();
  out.vocabulary = renderer.tokenizer().vocabulary_size();
  for (const std::string& file : files) {
    StoreSource source;
    source.path = file;
    source.hash = hash_file(file);
    source.bytes = static_cast<int64_t>(fs::file_size(file));
    out.sources.push_back(std::move(source));
  }
  return out;
}

bool is_made(const fs::path& folder, const std::string& key) {
  if (!file_exists(folder / "store.json")) {
    return false;
  }
  try {
    return TokenStore(folder).manifest().key == key;
  } catch (const Error&) {
    return false;  // damaged: made again
  }
}

}  // namespace

std::string store_key(const std::vector<std::string>& files, const Renderer& renderer,
                      const TokenizeOptions& options) {
  std::string all =
      concat("ingot tokens 1\n", renderer.tokenizer().hash(), "\n", renderer.hash(), "\n",
             options.read.rows.format, "\n", options.read.rows.separator, "\n",
             options.read.rows.largest_text, "\n", options.read.layout, "\n",
             static_cast<int>(options.read.roles.order), static_cast<int>(options.read.policy),
             static_cast<int>(options.duplicates), "\n");
  for (const std::string& column : options.read.rows.columns) {
    all += column + "\n";
  }
  for (const std::string& file : files) {
    all += concat(file, "\n", hash_file(file), "\n");
  }
  return hash_hex(all);
}

bool tokenize(const std::vector<std::string>& files, const Renderer& renderer,
              const TokenizeOptions& options, const fs::path& folder) {
  check(!files.empty(), ErrorKind::config, "data: no files are given; set data.files");
  for (const std::string& file : files) {
    RowReader(file, options.read.rows);  // one that is missing or empty is found before the work
  }
  const std::string key = store_key(files, renderer, options);
  if (is_made(folder, key)) {
    return true;
  }
  Writer out(folder, start_of(files, renderer, key));
  Work work(renderer, options, out);
  int64_t all = 0, before = 0;
  for (const StoreSource& source : out.manifest.sources) {
    all += source.bytes;
  }
  for (size_t file = 0; file < files.size(); ++file) {
    StoreSource& source = out.manifest.sources[file];
    const int64_t done = file < out.file() ? INT64_MAX : file == out.file() ? out.blocks() : 0;
    if (done < INT64_MAX) {
      ExampleReader reader(files[file], options.read);
      reader.skip(done);
      RowCounts read;  // of this reader up to the block before
      std::vector<Example> examples;
      for (int64_t block = done; reader.next(examples); ++block) {
        RowCounts news = reader.counts();
        source.counts.add(news.since(read));
        read = std::move(news);
        work.block(examples, file);
        source.layout = reader.describe();
        out.keep(file, block + 1);
        if (options.progress) {
          options.progress(before + reader.rows().position(), all);
        }
        if (options.stop && options.stop()) {
          return false;
        }
      }
    }
    before += source.bytes;
  }
  check(out.manifest.rows() > 0, ErrorKind::format, files.front(),
        files.size() > 1 ? concat(" and ", files.size() - 1, " more") : "",
        ": no row is left to train on",
        out.manifest.counts().all_dropped() > 0 ? concat(": ", out.manifest.counts().text())
                                                : std::string("; give a file with rows in it"));
  out.finish();
  return true;
}

}  // namespace ingot
