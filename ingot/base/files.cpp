#include "ingot/base/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "ingot/base/error.h"

namespace ingot {
namespace {

namespace fs = std::filesystem;

std::string_view remedy(int code) {
  switch (code) {
    case ENOSPC: return "; free some space or choose another folder";
    case EDQUOT: return "; your disk quota is used up: free some space or choose another folder";
    case EFBIG: return "; the file size limit is reached: raise it (ulimit -f)";
    case EACCES:
    case EPERM: return "; check the permissions of the file and its folder";
    case EROFS: return "; the file system is read-only: choose another folder";
    case ENOENT: return "; check the spelling";
    case EMFILE:
    case ENFILE: return "; raise the number of open files (ulimit -n)";
    default: return "";
  }
}

[[noreturn]] void fail(const fs::path& path, std::string_view what, int code) {
  throw Error(ErrorKind::io, concat(path.string(), ": ", what, ": ",
                                    std::generic_category().message(code), remedy(code)));
}

// Closes a descriptor at the end of the scope.
struct Descriptor {
  int value;
  explicit Descriptor(int descriptor) : value(descriptor) {}
  ~Descriptor() {
    if (value >= 0) {
      ::close(value);
    }
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
};

int open_file(const fs::path& path, int flags) {
  int descriptor = -1;
  do {
    descriptor = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
  } while (descriptor < 0 && errno == EINTR);
  return descriptor;
}

// Opens for reading, refuses folders: read() on one fails with a less clear message.
int open_to_read(const fs::path& path, struct stat& about) {
  const int descriptor = open_file(path, O_RDONLY);
  if (descriptor < 0) {
    fail(path, "cannot open the file", errno);
  }
  if (::fstat(descriptor, &about) != 0 || S_ISDIR(about.st_mode)) {
    const int code = S_ISDIR(about.st_mode) ? EISDIR : errno;
    ::close(descriptor);
    fail(path, "cannot read the file", code);
  }
  return descriptor;
}

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

// ".model.safetensors.tmp-4711-0": the mark is followed by process and attempt.
constexpr std::string_view temporary_mark = ".tmp-";

bool is_unfinished(std::string_view name) {
  const size_t mark = name.rfind(temporary_mark);
  return name.starts_with('.') && mark != std::string_view::npos &&
         name.find_first_not_of("0123456789-", mark + temporary_mark.size()) ==
             std::string_view::npos;
}

}  // namespace

std::string read_file(const fs::path& path) {
  struct stat about {};
  const Descriptor file(open_to_read(path, about));
  std::string text;
  const size_t step = size_t{1} << 16;
  // One byte more than the size, so that a regular file ends within the first round.
  size_t room = about.st_size > 0 ? static_cast<size_t>(about.st_size) + 1 : step;
  size_t length = 0;
  while (true) {
    text.resize(length + room);
    const ssize_t count = ::read(file.value, text.data() + length, room);
    if (count < 0 && errno != EINTR) {
      fail(path, "cannot read the file", errno);
    }
    length += count > 0 ? static_cast<size_t>(count) : 0;
    if (count == 0) {
      text.resize(length);
      return text;
    }
    room = std::max(text.size() - length, step);
  }
}

MappedFile::MappedFile(const fs::path& path) : path_(path) {
  struct stat about {};
  const Descriptor file(open_to_read(path, about));
  check(S_ISREG(about.st_mode), ErrorKind::io, path.string(),
        ": cannot map the file into memory: it is not a regular file");
  if (about.st_size == 0) {
    return;
  }
  const auto size = static_cast<size_t>(about.st_size);
  void* start = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.value, 0);
  if (start == MAP_FAILED) {
    fail(path, "cannot map the file into memory", errno);
  }
  bytes_ = {static_cast<const std::byte*>(start), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) {
    ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  }
}

AtomicFile::AtomicFile(fs::path path) : path_(std::move(path)) {
  check(!is_folder(path_), ErrorKind::io, path_.string(),
        ": cannot write the file: a folder has this name");
  for (int attempt = 0; descriptor_ < 0; ++attempt) {
    temporary_ = folder_of(path_) /
                 concat(".", path_.filename().string(), temporary_mark, ::getpid(), "-", attempt);
    descriptor_ = open_file(temporary_, O_WRONLY | O_CREAT | O_EXCL);
    if (descriptor_ < 0 && errno != EEXIST) {
      fail(path_, "cannot create the file", errno);
    }
  }
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
    ::unlink(temporary_.c_str());
  }
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  check(descriptor_ >= 0, ErrorKind::internal, path_.string(), ": written to after commit");
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
    if (count < 0 && errno != EINTR) {
      fail(path_, concat("cannot write the file after ", size_, " bytes"), errno);
    }
    if (count > 0) {
      bytes = bytes.subspan(static_cast<size_t>(count));
      size_ += count;
    }
  }
}

void AtomicFile::write(std::string_view text) {
  write(std::as_bytes(std::span(text.data(), text.size())));
}

void AtomicFile::commit() {
  check(descriptor_ >= 0, ErrorKind::internal, path_.string(), ": committed twice");
  if (::fsync(descriptor_) != 0) {
    fail(path_, "cannot flush the file to the disk", errno);
  }
  // Network file systems report a failed write only here. The descriptor is gone in either case.
  if (::close(std::exchange(descriptor_, -1)) != 0 ||
      ::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int code = errno;
    ::unlink(temporary_.c_str());
    fail(path_, "cannot finish the file", code);
  }
  sync_folder(folder_of(path_));
}

void remove_unfinished(const fs::path& folder) {
  for (const std::string& name : list_folder(folder)) {
    if (is_unfinished(name)) {
      remove_tree(folder / name);
    }
  }
}

void write_file(const fs::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

void sync_folder(const fs::path& folder) {
  const Descriptor opened(open_file(folder, O_RDONLY | O_DIRECTORY));
  if (opened.value < 0) {
    fail(folder, "cannot open the folder", errno);
  }
  // Some file systems cannot flush a folder and say EINVAL: there is nothing more to be done there.
  if (::fsync(opened.value) != 0 && errno != EINVAL) {
    fail(folder, "cannot flush the folder to the disk", errno);
  }
}

void rename_path(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) {
    fail(from, concat("cannot rename to ", to.string()), errno);
  }
  sync_folder(folder_of(to));
}

int64_t free_bytes(const fs::path& folder) {
  struct statvfs about {};
  if (::statvfs(folder.c_str(), &about) != 0) {
    fail(folder, "cannot find the free space", errno);
  }
  return static_cast<int64_t>(about.f_bavail) * static_cast<int64_t>(about.f_frsize);
}

bool file_exists(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

void make_directories(const fs::path& folder) {
  std::error_code code;
  const bool is_new = fs::create_directories(folder, code);
  if (code || !is_folder(folder)) {
    fail(folder, "cannot create the folder", code ? code.value() : ENOTDIR);
  }
  if (is_new) {
    sync_folder(folder_of(folder));
  }
}

bool is_writable(const fs::path& folder) {
  try {
    const AtomicFile probe(folder / "write-probe");
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::vector<std::string> list_folder(const fs::path& folder) {
  std::error_code code;
  std::vector<std::string> names;
  fs::directory_iterator entry(folder, code);
  while (!code && entry != fs::directory_iterator()) {
    names.push_back(entry->path().filename().string());
    entry.increment(code);
  }
  if (code) {
    fail(folder, "cannot list the folder", code.value());
  }
  std::sort(names.begin(), names.end());
  return names;
}

void remove_tree(const fs::path& path) {
  std::error_code code;
  fs::remove_all(path, code);
  if (code) {
    fail(path, "cannot remove", code.value());
  }
}

}  // namespace ingot
