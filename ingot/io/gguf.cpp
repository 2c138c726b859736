#include "ingot/io/gguf.h"

#include <utility>

#include "ingot/base/edit_distance.h"
#include "ingot/base/error.h"

namespace ingot {

GgufFile::GgufFile(const std::filesystem::path& path)
    : file_(std::make_shared<const MappedFile>(path)),
      header_(parse_gguf_header(file_->bytes(), path.string())) {
  for (size_t i = 0; i < header_.tensors.size(); ++i) {
    index_.emplace(header_.tensors[i].name, i);
  }
}

const GgufTensor& GgufFile::tensor(std::string_view tensor) const {
  const auto at = index_.find(std::string(tensor));
  if (at == index_.end()) {
    std::vector<std::string> names;
    for (const GgufTensor& one : tensors()) {
      names.push_back(one.name);
    }
    throw Error(ErrorKind::format,
                concat(name(), ": ", tensor, ": no such tensor in the file",
                       names.empty() ? "" : "; the nearest is ", nearest_path(tensor, names)));
  }
  return header_.tensors[at->second];
}

std::span<const std::byte> GgufFile::bytes(const GgufTensor& tensor) const {
  return file_->bytes().subspan(static_cast<size_t>(header_.data_begin + tensor.begin),
                                static_cast<size_t>(tensor.end - tensor.begin));
}

GgufWriter::GgufWriter(const std::filesystem::path& path, GgufHeader header)
    : file_(path), header_(std::move(header)) {
  file_.write(gguf_header_text(header_));
}

void GgufWriter::pad_to(int64_t offset) {
  const std::string zeros(static_cast<size_t>(offset - written_), '\0');
  file_.write(zeros);
  written_ = offset;
}

void GgufWriter::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    check(next_ < header_.tensors.size(), ErrorKind::internal,
          "gguf: more bytes are written than the tensors have");
    const GgufTensor& tensor = header_.tensors[next_];
    if (written_ < tensor.begin) {
      pad_to(tensor.begin);
    }
    const auto room = static_cast<size_t>(tensor.end - written_);
    const size_t now = std::min(room, bytes.size());
    file_.write(bytes.first(now));
    bytes = bytes.subspan(now);
    written_ += static_cast<int64_t>(now);
    next_ += now == room ? 1 : 0;
  }
}

void GgufWriter::commit() {
  check(next_ == header_.tensors.size(), ErrorKind::internal, "gguf: ", next_, " of ",
        header_.tensors.size(), " tensors were written");
  // Readers that map the last tensor in whole pieces of the alignment find them.
  pad_to((written_ + header_.alignment - 1) / header_.alignment * header_.alignment);
  file_.commit();
}

}  // namespace ingot
