#include "ingot/posttrain/reference_cache.h"

#include <algorithm>

#include "ingot/base/hash.h"
#include "ingot/io/safetensors.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/reduce.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

constexpr const char* weights_key = "ingot.reference_weights";

// The first 64 bits of a hash in hexadecimal digits.
uint64_t short_hash(std::span<const std::byte> bytes) {
  return std::stoull(hash_hex(bytes).substr(0, 16), nullptr, 16);
}

}  // namespace

std::vector<uint64_t> row_hashes(const Batch& batch) {
  const Tensor ids = dense(batch.ids);
  const Tensor labels = dense(batch.labels);
  const auto T = static_cast<size_t>(ids.size(1));
  std::vector<uint64_t> out;
  for (size_t row = 0; row < static_cast<size_t>(ids.size(0)); ++row) {
    const auto tokens = ids.values<int64_t>().subspan(row * T, T);
    const auto marks = labels.values<int64_t>().subspan(row * T, T);
    size_t length = T;
    while (length > 0 && marks[length - 1] == ignored_label) {
      --length;
    }
    std::vector<int64_t> both(tokens.begin(), tokens.begin() + static_cast<int64_t>(length));
    both.insert(both.end(), marks.begin(), marks.begin() + static_cast<int64_t>(length));
    out.push_back(short_hash(std::as_bytes(std::span(both))));
  }
  return out;
}

void ReferenceCache::add(const Reference& reference, int64_t count,
                         const std::function<Batch(int64_t index)>& batch,
                         const std::function<void(int64_t done)>& progress) {
  for (int64_t i = 0; i < count; ++i) {
    const Batch rows = batch(i);
    const std::vector<uint64_t> hashes = row_hashes(rows);
    if (!std::ranges::all_of(hashes, [&](uint64_t hash) { return sums_.contains(hash); })) {
      const Tensor sums = dense(converted(reference(rows).sums, DType::f64));
      for (size_t row = 0; row < hashes.size(); ++row) {
        sums_.emplace(hashes[row], sums.values<double>()[row]);
      }
    }
    if (progress) {
      progress(i + 1);
    }
  }
}

SequenceLogprobs ReferenceCache::operator()(const Batch& batch) const {
  std::vector<float> sums;
  for (const uint64_t hash : row_hashes(batch)) {
    const auto at = sums_.find(hash);
    check(at != sums_.end(), ErrorKind::config,
          "reference: an answer has no log-probability of the reference model: row ", sums.size(),
          " of a batch is not among the ", sums_.size(), " that were computed");
    sums.push_back(static_cast<float>(at->second));
  }
  const Tensor counts =
      not_equal(batch.labels, scalar(ignored_label, batch.labels.dtype(), batch.labels.device()));
  return {tensor_of(sums, {static_cast<int64_t>(sums.size())}), sum(cast(counts, DType::f32), -1)};
}

void ReferenceCache::save(const std::filesystem::path& path, const std::string& weights) const {
  std::vector<uint64_t> keys;
  for (const auto& [hash, sum] : sums_) {
    keys.push_back(hash);
  }
  std::ranges::sort(keys);
  std::vector<int64_t> hashes;
  std::vector<double> sums;
  for (const uint64_t key : keys) {
    hashes.push_back(static_cast<int64_t>(key));
    sums.push_back(sums_.at(key));
  }
  TensorDict tensors;
  tensors.add("hashes", tensor_of(hashes, {size()}));
  tensors.add("sums", tensor_of(sums, {size()}));
  write_safetensors(path, tensors, {{weights_key, weights}});
}

ReferenceCache ReferenceCache::load(const std::filesystem::path& path, const std::string& weights) {
  const SafetensorsFile file(path);
  const auto at = file.metadata().find(weights_key);
  const std::string found = at == file.metadata().end() ? "" : at->second;
  check(weights.empty() || found == weights, ErrorKind::config, path.string(),
        ": holds log-probabilities of another reference model: their weights' hash is ", found,
        ", this one's is ", weights);
  const Tensor hashes = file.tensor("hashes");
  const Tensor sums = file.tensor("sums");
  check(hashes.dtype() == DType::i64 && sums.dtype() == DType::f64 && hashes.rank() == 1 &&
            hashes.shape() == sums.shape(),
        ErrorKind::format, path.string(), ": hashes and sums do not belong together: hashes are ",
        hashes.shape(), " ", hashes.dtype(), ", sums are ", sums.shape(), " ", sums.dtype());
  ReferenceCache out;
  for (size_t i = 0; i < static_cast<size_t>(hashes.elements()); ++i) {
    out.sums_.emplace(static_cast<uint64_t>(hashes.values<int64_t>()[i]), sums.values<double>()[i]);
  }
  return out;
}

}  // namespace ingot
