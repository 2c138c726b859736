#include "ingot/data/token_file.h"

#include <algorithm>
#include <utility>

#include "ingot/base/error.h"
#include "ingot/base/hash.h"

namespace ingot {
namespace {

class FileWindows : public Dataset<TokenWindow> {
 public:
  FileWindows(std::shared_ptr<const TokenFile> file, int64_t T) : file_(std::move(file)), T_(T) {}

  int64_t size() const override { return (wrap() + T_ - 1) / T_; }

  TokenWindow get(int64_t i) const override {
    const int64_t begin = i * T_ % wrap();
    TokenWindow window;
    for (int64_t t = begin; t <= begin + T_; ++t) {
      window.push_back(file_->token(t));
    }
    return window;
  }

 private:
  int64_t wrap() const { return file_->size() - T_ - 1; }

  std::shared_ptr<const TokenFile> file_;
  int64_t T_;
};

}  // namespace

TokenFile::TokenFile(const std::filesystem::path& path) : file_(path) {
  const size_t bytes = file_.bytes().size();
  check(bytes > 0, ErrorKind::format, path.string(), ": the token file is empty");
  check(bytes % 2 == 0, ErrorKind::format, path.string(),
        ": not a file of 16-bit token ids: its size is odd, ", bytes, " bytes");
}

int64_t TokenFile::size() const { return static_cast<int64_t>(file_.bytes().size() / 2); }

int64_t TokenFile::token(int64_t i) const {
  const std::byte* at = file_.bytes().data() + 2 * i;
  return std::to_integer<int64_t>(at[0]) | std::to_integer<int64_t>(at[1]) << 8;
}

int64_t TokenFile::largest() const {
  int64_t most = 0;
  for (int64_t i = 0; i < size(); ++i) {
    most = std::max(most, token(i));
  }
  return most;
}

std::string TokenFile::hash() const { return hash_hex(file_.bytes()); }

std::shared_ptr<const Dataset<TokenWindow>> windows_of(std::shared_ptr<const TokenFile> file,
                                                       int64_t T) {
  check(T >= 1, ErrorKind::argument, "data: the sequence length must be at least 1: got ", T);
  check(file->size() >= T + 2, ErrorKind::format, file->path().string(),
        ": the file is shorter than one sequence: ", file->size(), " tokens, needed are ", T + 2,
        " for a sequence length of ", T, "; give more tokens or shorten the sequence");
  return std::make_shared<FileWindows>(std::move(file), T);
}

}  // namespace ingot
