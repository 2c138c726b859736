#include "ingot/cli/run_store.h"

#include <sqlite3.h>

#include "ingot/base/error.h"
#include "ingot/base/files.h"

namespace ingot {
namespace {

constexpr const char* schema = R"(
CREATE TABLE IF NOT EXISTS runs(
  id TEXT PRIMARY KEY, path TEXT, status TEXT, started REAL, updated REAL, host TEXT,
  processor TEXT, git TEXT, binary_hash TEXT, recipe TEXT, data_hash TEXT, parent TEXT,
  parameters INTEGER, steps INTEGER, step INTEGER, tokens INTEGER, flops REAL, loss REAL,
  validation_loss REAL, validation_bits REAL);
CREATE TABLE IF NOT EXISTS measurements(
  run TEXT, step INTEGER, name TEXT, value REAL, PRIMARY KEY(run, step, name));
CREATE TABLE IF NOT EXISTS artefacts(
  run TEXT, name TEXT, bytes INTEGER, hash TEXT, PRIMARY KEY(run, name));
CREATE TABLE IF NOT EXISTS tags(run TEXT, tag TEXT, PRIMARY KEY(run, tag));
)";

constexpr const char* columns =
    "id, path, status, started, updated, host, processor, git, binary_hash, recipe, data_hash, "
    "parent, parameters, steps, step, tokens, flops, loss, validation_loss, validation_bits";

}  // namespace

// One prepared statement: values are bound in order, rows read column by column.
class RunStore::Statement {
 public:
  Statement(const RunStore& store, const std::string& sql)
      : database_(store.database_), path_(store.path_.string()) {
    check(::sqlite3_prepare_v2(database_, sql.c_str(), -1, &statement_, nullptr) == SQLITE_OK,
          ErrorKind::io, path_, ": ", ::sqlite3_errmsg(database_));
  }
  ~Statement() { ::sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(const std::string& text) {
    ::sqlite3_bind_text(statement_, ++bound_, text.data(), static_cast<int>(text.size()),
                        SQLITE_TRANSIENT);
    return *this;
  }
  Statement& bind(int64_t number) {
    ::sqlite3_bind_int64(statement_, ++bound_, number);
    return *this;
  }
  Statement& bind(double number) {
    ::sqlite3_bind_double(statement_, ++bound_, number);
    return *this;
  }
  // Whether there is a (further) row.
  bool step() {
    const int code = ::sqlite3_step(statement_);
    check(code == SQLITE_ROW || code == SQLITE_DONE, ErrorKind::io, path_, ": ",
          ::sqlite3_errmsg(database_));
    read_ = 0;
    return code == SQLITE_ROW;
  }
  void read(std::string& out) {
    const auto* text = reinterpret_cast<const char*>(::sqlite3_column_text(statement_, read_));
    const int bytes = ::sqlite3_column_bytes(statement_, read_++);
    out.assign(text != nullptr ? text : "", static_cast<size_t>(text != nullptr ? bytes : 0));
  }
  void read(int64_t& out) { out = ::sqlite3_column_int64(statement_, read_++); }
  void read(double& out) { out = ::sqlite3_column_double(statement_, read_++); }

 private:
  sqlite3* database_;
  std::string path_;
  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0;
  int read_ = 0;
};

std::filesystem::path RunStore::file(const std::filesystem::path& folder) {
  return folder / "runs.sqlite";
}

RunStore::RunStore(const std::filesystem::path& folder) : path_(file(folder)) {
  make_directories(folder);
  const int code = ::sqlite3_open(path_.c_str(), &database_);
  std::string message = code == SQLITE_OK ? "" : ::sqlite3_errmsg(database_);
  if (message.empty()) {
    ::sqlite3_busy_timeout(database_, 10000);  // milliseconds
    char* said = nullptr;
    if (::sqlite3_exec(database_, schema, nullptr, nullptr, &said) != SQLITE_OK) {
      message = said != nullptr ? said : "unknown error";
    }
    ::sqlite3_free(said);
  }
  if (!message.empty()) {
    ::sqlite3_close(database_);
    throw Error(ErrorKind::io, concat(path_.string(), ": not usable as a store of runs: ", message,
                                      "; move it away, and it will be begun anew"));
  }
}

RunStore::~RunStore() { ::sqlite3_close(database_); }

void RunStore::put(const RunRecord& r) {
  Statement(*this, concat("INSERT OR REPLACE INTO runs(", columns,
                          ") VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"))
      .bind(r.id)
      .bind(r.path)
      .bind(r.status)
      .bind(r.started)
      .bind(r.updated)
      .bind(r.host)
      .bind(r.processor)
      .bind(r.git)
      .bind(r.binary_hash)
      .bind(r.recipe)
      .bind(r.data_hash)
      .bind(r.parent)
      .bind(r.parameters)
      .bind(r.steps)
      .bind(r.step)
      .bind(r.tokens)
      .bind(r.flops)
      .bind(r.loss)
      .bind(r.validation_loss)
      .bind(r.validation_bits)
      .step();
}

std::vector<RunRecord> RunStore::all() const {
  Statement rows(*this, concat("SELECT ", columns, " FROM runs ORDER BY started DESC, id"));
  std::vector<RunRecord> out;
  while (rows.step()) {
    RunRecord r;
    for (std::string* text : {&r.id, &r.path, &r.status}) {
      rows.read(*text);
    }
    rows.read(r.started);
    rows.read(r.updated);
    for (std::string* text :
         {&r.host, &r.processor, &r.git, &r.binary_hash, &r.recipe, &r.data_hash, &r.parent}) {
      rows.read(*text);
    }
    for (int64_t* number : {&r.parameters, &r.steps, &r.step, &r.tokens}) {
      rows.read(*number);
    }
    for (double* number : {&r.flops, &r.loss, &r.validation_loss, &r.validation_bits}) {
      rows.read(*number);
    }
    out.push_back(std::move(r));
  }
  return out;
}

RunRecord RunStore::find(const std::string& which) const {
  std::vector<RunRecord> found;
  std::error_code none;
  const std::filesystem::path path = std::filesystem::weakly_canonical(which, none);
  for (RunRecord& record : all()) {
    if (record.id == which || record.path == path.string()) {
      return record;
    }
    if (record.name() == which || (which.size() >= 3 && record.id.starts_with(which))) {
      found.push_back(std::move(record));
    }
  }
  check(!found.empty(), ErrorKind::argument, which, ": no such run in ", path_.string(),
        "; `ingot runs list` shows all");
  check(found.size() == 1, ErrorKind::argument, which, ": ", found.size(), " runs in ",
        path_.string(), " fit: ", found[0].id, " and ", found.back().id, "; give more of the id");
  return found[0];
}

void RunStore::remove(const std::string& id) {
  for (const char* table : {"measurements", "artefacts", "tags"}) {
    Statement(*this, concat("DELETE FROM ", table, " WHERE run = ?")).bind(id).step();
  }
  Statement(*this, "DELETE FROM runs WHERE id = ?").bind(id).step();
}

void RunStore::measured(const std::string& id, const Measurement& m) {
  Statement(*this, "INSERT OR REPLACE INTO measurements VALUES(?,?,?,?)")
      .bind(id)
      .bind(m.step)
      .bind(m.name)
      .bind(m.value)
      .step();
}

std::vector<Measurement> RunStore::measurements(const std::string& id) const {
  Statement rows(*this, "SELECT step, name, value FROM measurements WHERE run = ? ORDER BY 2, 1");
  rows.bind(id);
  std::vector<Measurement> out;
  while (rows.step()) {
    Measurement m;
    rows.read(m.step);
    rows.read(m.name);
    rows.read(m.value);
    out.push_back(std::move(m));
  }
  return out;
}

void RunStore::set_artefacts(const std::string& id, const std::vector<Artefact>& artefacts) {
  Statement(*this, "DELETE FROM artefacts WHERE run = ?").bind(id).step();
  for (const Artefact& a : artefacts) {
    Statement(*this, "INSERT INTO artefacts VALUES(?,?,?,?)")
        .bind(id)
        .bind(a.name)
        .bind(a.bytes)
        .bind(a.hash)
        .step();
  }
}

std::vector<Artefact> RunStore::artefacts(const std::string& id) const {
  Statement rows(*this, "SELECT name, bytes, hash FROM artefacts WHERE run = ? ORDER BY name");
  rows.bind(id);
  std::vector<Artefact> out;
  while (rows.step()) {
    Artefact a;
    rows.read(a.name);
    rows.read(a.bytes);
    rows.read(a.hash);
    out.push_back(std::move(a));
  }
  return out;
}

void RunStore::tag(const std::string& id, const std::string& tag) {
  Statement(*this, "INSERT OR IGNORE INTO tags VALUES(?,?)").bind(id).bind(tag).step();
}

void RunStore::untag(const std::string& id, const std::string& tag) {
  Statement(*this, "DELETE FROM tags WHERE run = ? AND tag = ?").bind(id).bind(tag).step();
}

std::vector<std::string> RunStore::tags(const std::string& id) const {
  Statement rows(*this, "SELECT tag FROM tags WHERE run = ? ORDER BY tag");
  rows.bind(id);
  std::vector<std::string> out;
  while (rows.step()) {
    rows.read(out.emplace_back());
  }
  return out;
}

}  // namespace ingot
