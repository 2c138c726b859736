#include "ingot/io/safetensors_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "ingot/base/error.h"
#include "ingot/base/files.h"
#include "ingot/base/json_library.h"

namespace ingot {

struct SafetensorsStream::OpenFile {
  OpenFile(const std::filesystem::path& path, const SafetensorsHeader& header) : file(path) {
    const std::string json = safetensors_header_text(header);
    const uint64_t length = json.size();
    file.write(std::as_bytes(std::span(&length, 1)));
    file.write(json);
    left = header.entries.empty() ? 0 : header.entries.back().end;
  }

  AtomicFile file;
  int64_t left;  // bytes still to come
};

SafetensorsStream::SafetensorsStream(std::filesystem::path folder,
                                     std::vector<PlannedTensor> tensors, int64_t shard_bytes,
                                     SafetensorsMetadata metadata)
    : folder_(std::move(folder)), metadata_(std::move(metadata)), order_(std::move(tensors)) {
  std::sort(order_.begin(), order_.end(),
            [](const PlannedTensor& a, const PlannedTensor& b) { return a.name < b.name; });
  int64_t filled = 0;
  for (size_t i = 0; i < order_.size(); ++i) {
    if (filled > 0 && filled + order_[i].bytes() > shard_bytes) {
      shard_ends_.push_back(i);
      filled = 0;
    }
    filled += order_[i].bytes();
  }
  shard_ends_.push_back(order_.size());
  size_t begin = 0;
  for (const size_t end : shard_ends_) {  // larger elements first, which aligns all of them
    std::stable_sort(order_.begin() + static_cast<std::ptrdiff_t>(std::exchange(begin, end)),
                     order_.begin() + static_cast<std::ptrdiff_t>(end),
                     [](const PlannedTensor& a, const PlannedTensor& b) {
                       return size_of(a.dtype) > size_of(b.dtype);
                     });
  }
  open_next();
}

SafetensorsStream::~SafetensorsStream() = default;

void SafetensorsStream::open_next() {
  const size_t count = shard_ends_.size();
  const std::string name =
      count == 1 ? "model.safetensors"
                 : fmt::format("model-{:05}-of-{:05}.safetensors", files_done_ + 1, count);
  SafetensorsHeader header;
  header.metadata = metadata_;
  int64_t end = 0;
  for (size_t i = files_done_ == 0 ? 0 : shard_ends_[files_done_ - 1]; i < shard_ends_[files_done_];
       ++i) {
    const int64_t begin = std::exchange(end, end + order_[i].bytes());
    header.entries.push_back({order_[i].name, order_[i].dtype, order_[i].shape, begin, end});
  }
  open_ = std::make_unique<OpenFile>(folder_ / name, header);
}

void SafetensorsStream::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    while (open_ != nullptr && open_->left == 0) {
      open_->file.commit();
      open_.reset();
      ++files_done_;
      check(files_done_ < shard_ends_.size(), ErrorKind::internal,
            "safetensors: more bytes are written than the tensors have");
      open_next();
    }
    const auto now = std::min(bytes.size(), static_cast<size_t>(open_->left));
    open_->file.write(bytes.first(now));
    open_->left -= static_cast<int64_t>(now);
    bytes = bytes.subspan(now);
  }
}

void SafetensorsStream::commit() {
  check(open_ != nullptr && open_->left == 0 && files_done_ + 1 == shard_ends_.size(),
        ErrorKind::internal, "safetensors: not all tensors were written");
  open_->file.commit();
  if (shard_ends_.size() == 1) {
    return;
  }
  nlohmann::json index;
  int64_t total = 0;
  size_t shard = 0;
  for (size_t i = 0; i < order_.size(); ++i) {
    shard += i == shard_ends_[shard] ? 1 : 0;
    total += order_[i].bytes();
    index["weight_map"][order_[i].name] =
        fmt::format("model-{:05}-of-{:05}.safetensors", shard + 1, shard_ends_.size());
  }
  index["metadata"]["total_size"] = total;
  write_file(folder_ / "model.safetensors.index.json", index.dump(2) + "\n");
}

}  // namespace ingot
