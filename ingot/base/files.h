#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ingot {

// Files with errors that name the path, what the system said and what to do. All throw Error(io).

// The whole content of a regular file, pipe or device.
std::string read_file(const std::filesystem::path& path);

// A file mapped into memory, read only: its pages are read from disk when first touched. Another
// program must not shorten the file meanwhile (the system would end this process on touching the
// missing part); files that Ingot writes are replaced, never changed in place.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept
      : path_(std::move(other.path_)), bytes_(std::exchange(other.bytes_, {})) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  const std::filesystem::path& path() const { return path_; }
  std::span<const std::byte> bytes() const { return bytes_; }  // empty for an empty file

 private:
  std::filesystem::path path_;
  std::span<const std::byte> bytes_;
};

// A file that appears whole or not at all. Bytes go to a temporary file in the same folder;
// commit() flushes it to the disk, renames it to `path` (replacing what was there) and flushes the
// folder. An AtomicFile destroyed before commit() removes its temporary file.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  int64_t size() const { return size_; }  // bytes written so far
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
  int64_t size_ = 0;
};

void write_file(const std::filesystem::path& path, std::string_view text);  // through AtomicFile

// Removes the temporary files that AtomicFiles of killed processes left in a folder. No other
// process may be writing there.
void remove_unfinished(const std::filesystem::path& folder);

// Makes what was created, renamed or removed in `folder` survive a crash of the machine.
void sync_folder(const std::filesystem::path& folder);

// Gives `from` the name `to` and flushes the folder of `to`. Both on one file system.
void rename_path(const std::filesystem::path& from, const std::filesystem::path& to);

// Bytes that this user may still write to the file system of `folder`, which must exist.
int64_t free_bytes(const std::filesystem::path& folder);

// False too where the system does not let this user look.
bool file_exists(const std::filesystem::path& path);  // of any kind, folders too
bool is_folder(const std::filesystem::path& path);

void make_directories(const std::filesystem::path& folder);  // with its parents; may exist already

// Whether a file can be created in `folder`, found out by creating one (and removing it): mount
// options and quotas count too, permission bits alone do not tell.
bool is_writable(const std::filesystem::path& folder);

// The names in a folder, sorted.
std::vector<std::string> list_folder(const std::filesystem::path& folder);

// Removes a file or a folder with all it holds. Links are removed, not followed. May be absent.
void remove_tree(const std::filesystem::path& path);

}  // namespace ingot
