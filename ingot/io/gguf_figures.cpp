#include "ingot/io/gguf_figures.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <string_view>

#include "ingot/base/error.h"
#include "ingot/io/gguf.h"

namespace ingot {
namespace {

// Where the eight bytes of a value begin: behind the key's length, the key and the kind.
size_t place_of(const std::string& key, std::string_view header, const std::string& file) {
  std::string entry(8, '\0');
  const uint64_t length = key.size();
  const auto kind = static_cast<uint32_t>(GgufKind::f64);
  std::memcpy(entry.data(), &length, sizeof length);
  entry += key;
  entry.append(reinterpret_cast<const char*>(&kind), sizeof kind);
  const size_t at = header.find(entry);
  check(at != std::string_view::npos && header.size() - at - entry.size() >= sizeof(double),
        ErrorKind::format, file, ": ", key, ": no such f64 in the metadata");
  return at + entry.size();
}

}  // namespace

void fill_gguf_figures(const std::filesystem::path& path,
                       const std::map<std::string, double>& figures) {
  const GgufFile file(path);
  const MappedFile all(path);
  const std::string_view header(reinterpret_cast<const char*>(all.bytes().data()),
                                static_cast<size_t>(file.header().data_begin));
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  bool written = descriptor >= 0;
  for (const auto& [key, value] : figures) {
    const auto at = static_cast<off_t>(place_of(key, header, path.string()));
    written = written && ::pwrite(descriptor, &value, sizeof value, at) == sizeof value;
  }
  written = written && ::fsync(descriptor) == 0;
  if (descriptor >= 0) {
    ::close(descriptor);
  }
  check(written, ErrorKind::io, path.string(), ": cannot write figures into the file's metadata");
}

}  // namespace ingot
