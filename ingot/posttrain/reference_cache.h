#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <unordered_map>

#include "ingot/posttrain/policy.h"

namespace ingot {

// Log-probabilities of a reference model that is not kept: computed once for every answer there is,
// and found again by a hash of its tokens, whatever batch and padding the answer comes in.
class ReferenceCache {
 public:
  // Computes what is not known yet of batches 0 … count − 1.
  void add(const Reference& reference, int64_t count,
           const std::function<Batch(int64_t index)>& batch,
           const std::function<void(int64_t done)>& progress = {});

  // Throws Error(config) for a row that was not computed.
  SequenceLogprobs operator()(const Batch& batch) const;

  int64_t size() const { return static_cast<int64_t>(sums_.size()); }
  // A safetensors file with the hash of the reference's weights.
  void save(const std::filesystem::path& path, const std::string& weights) const;
  // Throws Error(io), Error(format), and Error(config) where it is of other weights; any, if
  // `weights` is empty.
  static ReferenceCache load(const std::filesystem::path& path, const std::string& weights);

 private:
  std::unordered_map<uint64_t, double> sums_;
};

// XXH3-64 of the tokens and labels of each row, up to its last label.
std::vector<uint64_t> row_hashes(const Batch& batch);

}  // namespace ingot
