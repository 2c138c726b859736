#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

struct sqlite3;

namespace ingot {

// What is known of a run.
struct RunRecord {
  std::string id;      // eight hexadecimal digits
  std::string path;    // of its folder, absolute
  std::string status;  // running, finished, stopped, failed, diverged
  double started = 0;  // seconds since 1970
  double updated = 0;
  std::string host;
  std::string processor;
  std::string git;          // the commit of the folder it was started in; empty: none
  std::string binary_hash;  // of the program
  std::string recipe;       // TOML
  std::string data_hash;
  std::string parent;  // the checkpoint it branched off or the model it started from; empty: none
  int64_t parameters = 0;
  int64_t steps = 0;  // to do
  int64_t step = 0;   // done
  int64_t tokens = 0;
  double flops = 0;
  double loss = 0;  // of the last step, in nats a token
  double validation_loss = 0;
  double validation_bits = 0;

  std::string name() const { return std::filesystem::path(path).filename().string(); }
};

struct Artefact {
  std::string name;  // "model/model.safetensors"
  int64_t bytes = 0;
  std::string hash;
};

struct Measurement {
  int64_t step = 0;
  std::string name;  // "validation_loss"
  double value = 0;
};

// The runs below a folder: an SQLite database beside them, runs.sqlite. Several processes may use
// it at a time. All functions throw Error(io) with what SQLite says.
class RunStore {
 public:
  explicit RunStore(const std::filesystem::path& folder);  // made where absent
  ~RunStore();
  RunStore(const RunStore&) = delete;
  RunStore& operator=(const RunStore&) = delete;

  static std::filesystem::path file(const std::filesystem::path& folder);

  void put(const RunRecord& record);   // in place of the one of that id
  std::vector<RunRecord> all() const;  // the newest first
  // By id (its beginning will do), name or path. Throws Error(argument) where none or several fit.
  RunRecord find(const std::string& which) const;
  void remove(const std::string& id);  // with all that belongs to it

  void measured(const std::string& id, const Measurement& measurement);
  std::vector<Measurement> measurements(const std::string& id) const;
  void set_artefacts(const std::string& id, const std::vector<Artefact>& artefacts);
  std::vector<Artefact> artefacts(const std::string& id) const;
  void tag(const std::string& id, const std::string& tag);
  void untag(const std::string& id, const std::string& tag);
  std::vector<std::string> tags(const std::string& id) const;

 private:
  class Statement;
  std::filesystem::path path_;
  sqlite3* database_ = nullptr;
};

}  // namespace ingot
