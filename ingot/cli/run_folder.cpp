#include "ingot/cli/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "ingot/base/error.h"
#include "ingot/base/files.h"
#include "ingot/base/log.h"
#include "ingot/io/checkpoint.h"

namespace ingot {

RunFolder::~RunFolder() {
  if (lock_ >= 0) {
    ::close(lock_);
  }
}

void RunFolder::open(bool resuming) {
  const bool begun = !checkpoint_steps(checkpoints()).empty();
  check(begun || !resuming, ErrorKind::io, checkpoints().string(),
        ": no checkpoint to continue from; start the run without --resume");
  make_directories(path_);
  check(is_writable(path_), ErrorKind::io, path_.string(),
        ": cannot be written to; choose another --run");
  lock();
  check(!begun || resuming, ErrorKind::config, path_.string(),
        ": holds a run already; pass --resume to continue it, or choose another --run");
  make_directories(checkpoints());
  for (const std::string& name : remove_leftovers(checkpoints())) {
    log_warn("removed ", name, ", left half-written by an earlier process");
  }
  for (const std::filesystem::path& folder : {path_, model()}) {
    if (is_folder(folder)) {
      remove_unfinished(folder);
    }
  }
}

void RunFolder::lock() {
  lock_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  // A file system without locks refuses otherwise than one whose lock is taken.
  const bool taken = lock_ >= 0 && ::flock(lock_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  check(!taken, ErrorKind::config, path_.string(),
        ": another process is training in it; wait for it, or choose another --run");
}

}  // namespace ingot
