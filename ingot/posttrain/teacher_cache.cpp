#include "ingot/posttrain/teacher_cache.h"

#include <algorithm>

#include "ingot/autograd/grad_mode.h"
#include "ingot/base/files.h"
#include "ingot/base/log.h"
#include "ingot/io/safetensors.h"
#include "ingot/ops/shape.h"
#include "ingot/posttrain/reference_cache.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

constexpr int64_t least_tokens = 1024;    // of a file that is written before the end
constexpr int64_t most_tokens = 1 << 18;  // not on disk at any time

// How many tokens of each row count.
std::vector<int64_t> counts_of(const Tensor& labels) {
  const Tensor marks = dense(labels);
  const auto values = marks.values<int64_t>();
  const auto T = static_cast<size_t>(labels.size(1));
  std::vector<int64_t> out;
  for (size_t row = 0; row < static_cast<size_t>(labels.size(0)); ++row) {
    const auto own = values.subspan(row * T, T);
    out.push_back(static_cast<int64_t>(own.size()) -
                  static_cast<int64_t>(std::count(own.begin(), own.end(), ignored_label)));
  }
  return out;
}

class CachedRows : public TeacherRows {
 public:
  explicit CachedRows(TopLogprobs known) : known_(std::move(known)) {}
  Tensor divergences(int64_t begin, int64_t end, const Tensor& student,
                     const DistillConfig& config) const override {
    return top_divergence({slice(known_.tokens, 0, begin, end), slice(known_.logps, 0, begin, end)},
                          student, config.temperature);
  }

 private:
  TopLogprobs known_;
};

}  // namespace

std::map<std::string, std::string> TeacherCache::Key::metadata() const {
  return {{"teacher.weights", weights},
          {"teacher.dtype", dtype},
          {"teacher.top_k", std::to_string(top_k)},
          {"teacher.temperature", std::to_string(temperature)}};
}

TeacherCache::TeacherCache(std::filesystem::path folder, const Key& key)
    : folder_(std::move(folder)), key_(key.metadata()) {
  make_directories(folder_);
  remove_unfinished(folder_);
  for (const std::string& name : list_folder(folder_)) {
    open(folder_ / name);
  }
}

TeacherCache::~TeacherCache() {
  try {
    save();
  } catch (const std::exception& error) {
    log_warn(folder_.string(),
             ": what the teacher said since the last file is lost: ", error.what());
  }
}

void TeacherCache::open(const std::filesystem::path& path) {
  const SafetensorsFile file(path);
  for (const auto& [name, wanted] : key_) {
    const auto at = file.metadata().find(name);
    check(at != file.metadata().end(), ErrorKind::format, path.string(),
          ": is no file of a teacher's answers: it has no ", name,
          "; name another folder in distill.cache");
    check(at->second == wanted, ErrorKind::config, path.string(), ": holds answers of another ",
          name, ": ", at->second, ", this run's is ", wanted,
          "; remove the folder or name another in distill.cache");
  }
  const Tensor hashes = file.tensor("hashes");
  const Tensor starts = file.tensor("starts");
  const TopLogprobs rows{file.tensor("tokens"), file.tensor("logps")};
  const int64_t k = std::stoll(key_.at("teacher.top_k"));
  const int64_t count = hashes.elements();
  const bool whole = hashes.dtype() == DType::i64 && starts.dtype() == DType::i64 &&
                     starts.elements() == count + 1 && rows.tokens.dtype() == DType::i32 &&
                     rows.logps.dtype() == DType::f32 && rows.tokens.rank() == 2 &&
                     rows.tokens.size(1) == k && rows.tokens.shape() == rows.logps.shape();
  check(whole, ErrorKind::format, path.string(),
        ": its tensors do not belong together; remove the folder or name another in distill.cache");
  const auto at = starts.values<int64_t>();
  const auto names = hashes.values<int64_t>();
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    check(at[i] >= 0 && at[i] <= at[i + 1] && at[i + 1] <= rows.tokens.size(0), ErrorKind::format,
          path.string(), ": row ", i, " lies outside the file; remove the folder");
    places_[static_cast<uint64_t>(names[i])] = {files_.size(), at[i], at[i + 1]};
  }
  saved_tokens_ += rows.tokens.size(0);
  files_.push_back(rows);
}

void TeacherCache::add(uint64_t hash, const TopLogprobs& row) {
  if (places_.contains(hash)) {
    return;
  }
  const auto index = static_cast<int64_t>(new_rows_.size());
  places_[hash] = {files_.size(), index, index + 1};
  new_hashes_.push_back(hash);
  new_rows_.push_back(row);
  new_tokens_ += row.tokens.size(0);
}

TopLogprobs TeacherCache::operator()(const Batch& seen, const std::function<TopLogprobs()>& ask) {
  const NoGrad quiet;
  const std::vector<uint64_t> hashes = row_hashes(seen);
  const std::vector<int64_t> counts = counts_of(seen.labels);
  const auto known = [&](uint64_t hash) { return places_.contains(hash); };
  if (!std::ranges::all_of(hashes, known)) {
    const TopLogprobs all = ask();
    const Tensor tokens = converted(all.tokens, DType::i32);
    const Tensor logps = converted(all.logps, DType::f32);
    int64_t begin = 0;
    for (size_t row = 0; row < hashes.size(); ++row) {
      const int64_t end = begin + counts[row];
      add(hashes[row],
          {copy_of(slice(tokens, 0, begin, end)), copy_of(slice(logps, 0, begin, end))});
      begin = end;
    }
    // Files grow with what there is, so that they are few.
    if (new_tokens_ >= std::clamp(saved_tokens_ / 4, least_tokens, most_tokens)) {
      save();
    }
  }
  TensorList tokens, logps;
  for (size_t row = 0; row < hashes.size(); ++row) {
    const Place& place = places_.at(hashes[row]);
    const bool written = place.file < files_.size();
    const TopLogprobs found =
        written ? TopLogprobs{slice(files_[place.file].tokens, 0, place.begin, place.end),
                              slice(files_[place.file].logps, 0, place.begin, place.end)}
                : new_rows_[static_cast<size_t>(place.begin)];
    check(found.tokens.size(0) == counts[row], ErrorKind::format, folder_.string(), ": holds ",
          found.tokens.size(0), " tokens of a row that has ", counts[row],
          "; remove the folder or name another in distill.cache");
    tokens.push_back(converted(found.tokens, DType::i64));
    logps.push_back(found.logps);
  }
  return {concat(tokens, int64_t{0}), concat(logps, int64_t{0})};
}

void TeacherCache::save() {
  if (new_rows_.empty()) {
    return;
  }
  std::vector<int64_t> hashes, starts = {0};
  TensorList tokens, logps;
  for (size_t i = 0; i < new_rows_.size(); ++i) {
    hashes.push_back(static_cast<int64_t>(new_hashes_[i]));
    starts.push_back(starts.back() + new_rows_[i].tokens.size(0));
    tokens.push_back(new_rows_[i].tokens);
    logps.push_back(new_rows_[i].logps);
  }
  const auto count = static_cast<int64_t>(hashes.size());
  TensorDict out;
  out.add("hashes", tensor_of(hashes, {count}));
  out.add("starts", tensor_of(starts, {count + 1}));
  out.add("tokens", concat(tokens, int64_t{0}));
  out.add("logps", concat(logps, int64_t{0}));
  const std::filesystem::path path =
      folder_ / ingot::concat("rows-", 100000 + files_.size(), ".safetensors");
  write_safetensors(path, out, {key_.begin(), key_.end()});
  for (size_t i = 0; i < new_rows_.size(); ++i) {
    places_[new_hashes_[i]] = {files_.size(), starts[i], starts[i + 1]};
  }
  const SafetensorsFile file(path);
  files_.push_back({file.tensor("tokens"), file.tensor("logps")});
  saved_tokens_ += new_tokens_;
  new_tokens_ = 0;
  new_hashes_.clear();
  new_rows_.clear();
}

Teacher cached_teacher(TeacherCache& cache, std::function<TopLogprobs(const Batch&)> ask) {
  return [&cache, ask = std::move(ask)](const Batch& batch) -> std::unique_ptr<TeacherRows> {
    return std::make_unique<CachedRows>(cache(read_by_teacher(batch), [&] { return ask(batch); }));
  };
}

}  // namespace ingot
