#include "ingot/data/byte_source.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <system_error>
#include <vector>

#include "ingot/base/error.h"
#include "ingot/base/files.h"

namespace ingot {
namespace {

constexpr size_t chunk = size_t{256} << 10;

// The file as it lies on disk.
class Plain : public ByteSource {
 public:
  explicit Plain(const std::filesystem::path& path) : path_(path.string()) {
    check(!is_folder(path), ErrorKind::io, path_, ": is a folder; name the files in it");
    check(file_exists(path), ErrorKind::io, path_, ": cannot open: No such file or directory",
          "; check the spelling");
    file_.open(path, std::ios::binary);
    check(file_.good(), ErrorKind::io, path_,
          ": cannot open: ", std::generic_category().message(errno),
          "; check the permissions of the file");
  }

  size_t read(std::span<char> out) override {
    file_.read(out.data(), static_cast<std::streamsize>(out.size()));
    check(!file_.bad(), ErrorKind::io, path_,
          ": cannot read: ", std::generic_category().message(errno));
    const auto got = static_cast<size_t>(file_.gcount());
    position_ += static_cast<int64_t>(got);
    return got;
  }
  Compression compression() const override { return Compression::none; }
  int64_t position() const override { return position_; }

  const std::string& path() const { return path_; }
  // Goes back to the start.
  void rewind() {
    file_.clear();
    file_.seekg(0);
    position_ = 0;
  }

 private:
  std::string path_;
  std::ifstream file_;
  int64_t position_ = 0;
};

// Bytes that wait to be unpacked.
class Packed : public ByteSource {
 public:
  explicit Packed(std::unique_ptr<Plain> file) : file_(std::move(file)), held_(chunk) {}
  int64_t position() const override { return file_->position(); }

 protected:
  // Whether there is another byte.
  bool refill() {
    if (begin_ == end_) {
      begin_ = 0;
      end_ = file_->read(held_);
    }
    return begin_ < end_;
  }
  [[noreturn]] void damaged(std::string_view what) const {
    throw Error(ErrorKind::format, concat(file_->path(), ": ", what, " after ", file_->position(),
                                          " bytes; copy or unpack the file again"));
  }

  std::unique_ptr<Plain> file_;
  std::vector<char> held_;
  size_t begin_ = 0, end_ = 0;
};

class Gzip : public Packed {
 public:
  explicit Gzip(std::unique_ptr<Plain> file) : Packed(std::move(file)) {
    constexpr int gzip_window = 15 + 16;  // the largest window, with gzip's frame
    check(inflateInit2(&stream_, gzip_window) == Z_OK, ErrorKind::internal, "zlib: cannot start");
  }
  ~Gzip() override { inflateEnd(&stream_); }
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;

  Compression compression() const override { return Compression::gzip; }

  size_t read(std::span<char> out) override {
    size_t got = 0;
    while (got < out.size()) {
      if (!refill()) {
        if (!between_) {
          damaged("the gzip data is cut off");
        }
        break;
      }
      between_ = false;
      stream_.next_in = reinterpret_cast<Bytef*>(held_.data() + begin_);
      stream_.avail_in = static_cast<uInt>(end_ - begin_);
      stream_.next_out = reinterpret_cast<Bytef*>(out.data() + got);
      const auto room = static_cast<uInt>(std::min(out.size() - got, size_t{1} << 30));
      stream_.avail_out = room;
      const int status = inflate(&stream_, Z_NO_FLUSH);
      begin_ = end_ - stream_.avail_in;
      got += room - stream_.avail_out;
      if (status == Z_STREAM_END) {
        between_ = true;
        inflateReset(&stream_);
      } else if (status != Z_OK && status != Z_BUF_ERROR) {
        damaged("the gzip data is damaged");
      }
    }
    return got;
  }

 private:
  z_stream stream_{};
  bool between_ = true;  // two members, where the file may end
};

class Zstd : public Packed {
 public:
  explicit Zstd(std::unique_ptr<Plain> file)
      : Packed(std::move(file)), stream_(ZSTD_createDStream()) {
    check(stream_ != nullptr, ErrorKind::internal, "zstd: cannot start");
  }
  ~Zstd() override { ZSTD_freeDStream(stream_); }
  Zstd(const Zstd&) = delete;
  Zstd& operator=(const Zstd&) = delete;

  Compression compression() const override { return Compression::zstd; }

  size_t read(std::span<char> out) override {
    ZSTD_outBuffer to{out.data(), out.size(), 0};
    while (to.pos < to.size) {
      const bool more = refill();
      if (!more && wanted_ == 0) {
        break;
      }
      ZSTD_inBuffer from{held_.data() + begin_, end_ - begin_, 0};
      const size_t before = to.pos;
      wanted_ = ZSTD_decompressStream(stream_, &to, &from);
      if (ZSTD_isError(wanted_) != 0) {
        damaged("the zstd data is damaged");
      }
      begin_ += from.pos;
      if (!more && to.pos == before && wanted_ != 0) {
        damaged("the zstd data is cut off");
      }
    }
    return to.pos;
  }

 private:
  ZSTD_DStream* stream_;
  size_t wanted_ = 0;  // 0 between two frames, where the file may end
};

}  // namespace

std::string_view name(Compression compression) {
  switch (compression) {
    case Compression::none: return "plain";
    case Compression::gzip: return "gzip";
    case Compression::zstd: return "zstd";
  }
  return "";
}

std::unique_ptr<ByteSource> open_bytes(const std::filesystem::path& path) {
  auto file = std::make_unique<Plain>(path);
  std::array<char, 4> first{};
  const size_t got = file->read(first);
  file->rewind();
  const std::string_view magic(first.data(), got);
  if (magic.starts_with("\x1f\x8b")) {
    return std::make_unique<Gzip>(std::move(file));
  }
  if (magic == "\x28\xb5\x2f\xfd") {
    return std::make_unique<Zstd>(std::move(file));
  }
  return file;
}

}  // namespace ingot
