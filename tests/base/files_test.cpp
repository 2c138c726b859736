#include "ingot/base/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "tests/support/message.h"
#include "tests/support/paths.h"

namespace ingot {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::message_of;
using testing::TemporaryFolder;

std::string io_error(const std::function<void()>& f) { return message_of(ErrorKind::io, f); }

// Runs `f` in a process of its own, whose limits may be changed; true when it returns true there.
bool holds_in_child(const std::function<bool()>& f) {
  const pid_t child = ::fork();
  if (child == 0) {
    bool held = false;
    try {
      held = f();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
    }
    ::_exit(held ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(Files, ReadsBackWhatWasWritten) {
  const TemporaryFolder folder;
  std::string text(300000, '\0');
  for (size_t i = 0; i < text.size(); ++i) {
    text[i] = static_cast<char>(i * 31);
  }
  write_file(folder / "a", text);
  EXPECT_EQ(read_file(folder / "a"), text);
  write_file(folder / "a", "");
  EXPECT_EQ(read_file(folder / "a"), "");
  EXPECT_EQ(list_folder(folder.path()), std::vector<std::string>{"a"});
}

TEST(Files, ReadsFilesWithoutAKnownSize) {
  EXPECT_THAT(read_file("/proc/self/status"), HasSubstr("Name:"));
  EXPECT_EQ(read_file("/dev/null"), "");
}

TEST(Files, NameTheirPathAndTheReasonWhenReadingFails) {
  const TemporaryFolder folder;
  const std::string absent = (folder / "absent").string();
  EXPECT_EQ(io_error([&] { read_file(absent); }),
            absent + ": cannot open the file: No such file or directory; check the spelling");
  EXPECT_EQ(io_error([&] { read_file(folder.path()); }),
            folder.path().string() + ": cannot read the file: Is a directory");
  EXPECT_EQ(io_error([&] { MappedFile mapped(absent); }),
            absent + ": cannot open the file: No such file or directory; check the spelling");
  EXPECT_EQ(io_error([&] { MappedFile mapped("/dev/null"); }),
            "/dev/null: cannot map the file into memory: it is not a regular file");
}

TEST(MappedFile, ShowsTheBytesOfTheFile) {
  const TemporaryFolder folder;
  write_file(folder / "a", "hello");
  write_file(folder / "empty", "");
  MappedFile mapped(folder / "a");
  MappedFile moved = std::move(mapped);
  ASSERT_EQ(moved.bytes().size(), 5U);
  EXPECT_EQ(static_cast<char>(moved.bytes()[4]), 'o');
  EXPECT_TRUE(MappedFile(folder / "empty").bytes().empty());
}

TEST(MappedFile, KeepsTheOldBytesWhenTheFileIsReplaced) {
  const TemporaryFolder folder;
  write_file(folder / "a", "old");
  const MappedFile mapped(folder / "a");
  write_file(folder / "a", "new and longer");
  EXPECT_EQ(static_cast<char>(mapped.bytes()[0]), 'o');
  EXPECT_EQ(read_file(folder / "a"), "new and longer");
}

TEST(AtomicFile, LeavesTheOldFileAndNoTemporaryWhenAbandoned) {
  const TemporaryFolder folder;
  write_file(folder / "a", "old");
  {
    AtomicFile file(folder / "a");
    file.write("half");
    EXPECT_EQ(file.size(), 4);
    EXPECT_EQ(read_file(folder / "a"), "old");
    EXPECT_EQ(list_folder(folder.path()).size(), 2U);
  }
  EXPECT_EQ(read_file(folder / "a"), "old");
  EXPECT_EQ(list_folder(folder.path()), std::vector<std::string>{"a"});
}

TEST(AtomicFile, LetsSeveralWritersOfOneNameFinish) {
  const TemporaryFolder folder;
  AtomicFile first(folder / "a");
  AtomicFile second(folder / "a");
  first.write("1");
  second.write("2");
  first.commit();
  second.commit();
  EXPECT_EQ(read_file(folder / "a"), "2");
}

TEST(AtomicFile, RefusesToWriteAfterCommit) {
  const TemporaryFolder folder;
  AtomicFile file(folder / "a");
  file.commit();
  EXPECT_THAT(message_of(ErrorKind::internal, [&] { file.write("x"); }),
              HasSubstr("written to after commit"));
  EXPECT_THAT(message_of(ErrorKind::internal, [&] { file.commit(); }),
              HasSubstr("committed twice"));
}

TEST(AtomicFile, SaysWhyItCannotBeCreated) {
  const TemporaryFolder folder;
  write_file(folder / "file", "");
  const std::string below = (folder / "file" / "x").string();
  EXPECT_EQ(io_error([&] { AtomicFile file(below); }),
            below + ": cannot create the file: Not a directory");
  const std::string absent = (folder / "absent" / "x").string();
  EXPECT_EQ(io_error([&] { AtomicFile file(absent); }),
            absent + ": cannot create the file: No such file or directory; check the spelling");
  EXPECT_EQ(io_error([&] { AtomicFile file(folder.path()); }),
            folder.path().string() + ": cannot write the file: a folder has this name");
}

TEST(AtomicFile, ReportsTheFileSizeLimitAndLeavesNothing) {
  const TemporaryFolder folder;
  EXPECT_TRUE(holds_in_child([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const std::string message = io_error([&] { write_file(folder / "a", std::string(5000, 'x')); });
    const std::string expected = (folder / "a").string() +
                                 ": cannot write the file after 1000 bytes: File too large; the "
                                 "file size limit is reached: raise it (ulimit -f)";
    EXPECT_EQ(message, expected);
    return message == expected && list_folder(folder.path()).empty();
  }));
}

TEST(AtomicFile, ReportsAFullDiskAndLeavesNothing) {
  const TemporaryFolder folder;
  if (::mount("none", folder.path().c_str(), "tmpfs", 0, "size=64k") != 0) {
    GTEST_SKIP() << "needs the right to mount a small file system";
  }
  write_file(folder / "old", std::string(1000, 'o'));
  const std::string message =
      io_error([&] { write_file(folder / "old", std::string(100000, 'x')); });
  EXPECT_THAT(message, HasSubstr((folder / "old").string() + ": cannot write the file after "));
  EXPECT_THAT(message, HasSubstr("No space left on device; free some space or choose another"));
  EXPECT_EQ(list_folder(folder.path()), std::vector<std::string>{"old"});
  EXPECT_EQ(read_file(folder / "old"), std::string(1000, 'o'));
  EXPECT_LE(free_bytes(folder.path()), 64 * 1024);
  ::umount(folder.path().c_str());
}

TEST(Files, TellTheFreeSpaceOfAFolder) {
  const TemporaryFolder folder;
  EXPECT_GT(free_bytes(folder.path()), 0);
  EXPECT_THAT(io_error([&] { free_bytes(folder / "absent"); }),
              HasSubstr("absent: cannot find the free space: No such file or directory"));
}

TEST(Files, MakeAndRemoveTrees) {
  const TemporaryFolder folder;
  make_directories(folder / "a/b/c");
  make_directories(folder / "a/b/c");
  write_file(folder / "a/b/c/file", "x");
  write_file(folder / "kept", "x");
  fs::create_directory_symlink(folder / "a", folder / "link");
  remove_tree(folder / "link");
  EXPECT_EQ(read_file(folder / "a/b/c/file"), "x");
  remove_tree(folder / "a");
  remove_tree(folder / "a");
  EXPECT_EQ(list_folder(folder.path()), std::vector<std::string>{"kept"});
  EXPECT_THAT(io_error([&] { make_directories(folder / "kept"); }),
              HasSubstr("kept: cannot create the folder: "));
  EXPECT_THAT(io_error([&] { make_directories(folder / "kept/below"); }),
              HasSubstr("below: cannot create the folder: Not a directory"));
  EXPECT_THAT(io_error([&] { list_folder(folder / "absent"); }),
              HasSubstr("absent: cannot list the folder: No such file or directory"));
}

TEST(Files, KnowWhereTheyCanBeWritten) {
  const TemporaryFolder folder;
  EXPECT_TRUE(is_writable(folder.path()));
  EXPECT_TRUE(list_folder(folder.path()).empty());
  EXPECT_FALSE(is_writable(folder / "absent"));
  EXPECT_FALSE(is_writable("/proc"));
}

TEST(Files, RenameOnlyWhatExists) {
  const TemporaryFolder folder;
  write_file(folder / "a", "x");
  rename_path(folder / "a", folder / "b");
  EXPECT_EQ(list_folder(folder.path()), std::vector<std::string>{"b"});
  EXPECT_THAT(io_error([&] { rename_path(folder / "a", folder / "c"); }),
              HasSubstr("a: cannot rename to "));
}

}  // namespace
}  // namespace ingot
