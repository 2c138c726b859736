#include "ingot/train/journal.h"

#include <sstream>
#include <utility>

#include "ingot/base/files.h"
#include "ingot/base/hash.h"
#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "ingot/tensor/copy.h"

namespace ingot {
namespace {

using Json = nlohmann::ordered_json;

JournalEntry entry_of(const nlohmann::json& line, const std::string& name) {
  JournalEntry out;
  out.step = json_field<int64_t>(line, "step", name);
  out.loss = json_field<double>(line, "loss", name);
  out.grad_norm = json_field<double>(line, "grad_norm", name);
  check(line.contains("batches") && line["batches"].is_array(), ErrorKind::format, name,
        ": batches: missing key: expected a list");
  for (const nlohmann::json& batch : line["batches"]) {
    out.batches.push_back({json_field<int64_t>(batch, "sample", name),
                           json_field<int64_t>(batch, "rows", name),
                           json_field<std::string>(batch, "hash", name)});
  }
  return out;
}

}  // namespace

Journal::Journal(std::filesystem::path path, int64_t from_step, int64_t seed)
    : file_(std::move(path), from_step, [](int64_t, const Json&) {}), seed_(seed) {}

void Journal::after_step(const TrainState&, const StepReport& report) {
  Json entry;
  entry["step"] = report.step;
  entry["seed"] = seed_;
  entry["rng_step"] = report.step - 1;
  entry["lr"] = report.learning_rate;
  entry["loss"] = report.loss;
  entry["grad_norm"] = report.grad_norm;
  Json batches = Json::array();
  for (const BatchRecord& batch : report.batches) {
    batches.push_back({{"sample", batch.sample}, {"rows", batch.rows}, {"hash", batch.hash}});
  }
  entry["batches"] = std::move(batches);
  file_.write(entry);
}

void Journal::rewind(int64_t step) {
  file_.rewind(step, [](int64_t, const Json&) {});
}

std::vector<JournalEntry> read_journal(const std::filesystem::path& path, int64_t first,
                                       int64_t last) {
  std::vector<JournalEntry> out;
  std::istringstream lines(read_file(path));
  int64_t number = 0;
  for (std::string text; std::getline(lines, text);) {
    ++number;
    const std::string name = concat(path.string(), ":", number);
    const nlohmann::json line = parse_json(text, name);
    const auto step = json_field<int64_t>(line, "step", name);
    if (step >= first && step <= last) {
      out.push_back(entry_of(line, name));
    }
  }
  return out;
}

std::string batch_hash(const Batch& batch) {
  Hasher hasher;
  for (const Tensor& x : {dense(batch.ids), dense(batch.labels)}) {
    hasher.update({static_cast<const std::byte*>(x.view().data), static_cast<size_t>(x.bytes())});
  }
  return hasher.hex();
}

}  // namespace ingot
