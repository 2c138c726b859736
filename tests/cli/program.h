#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "ingot/base/json_library.h"
#include "tests/support/paths.h"

// The built program, run as its users run it: in a process of its own.
namespace ingot::testing {

// Why these tests cannot run; empty where they can.
inline std::string no_program() {
  try {
    const std::filesystem::path path = program();
    return std::filesystem::exists(path) ? "" : path.string() + " is not built: build ingot";
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

inline std::string content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

inline void put(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    out.push_back(line);
  }
  return out;
}

struct Outcome {
  int code = -1;   // exit code; −1 where a signal ended it
  int signal = 0;  // that signal
  std::string out;
  std::string err;
};

using Words = std::vector<std::string>;

inline Words joined(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// One running `ingot`. What it prints goes to files beside `folder`, its working folder.
class Child {
 public:
  Child(const std::filesystem::path& folder, const Words& arguments,
        std::optional<rlim_t> largest_file = std::nullopt, const std::filesystem::path& output = {})
      : out_(output.empty() ? folder.string() + ".out" : output.string()),
        err_(folder.string() + ".err") {
    std::vector<std::string> words = joined({program().string()}, arguments);
    std::vector<char*> argv;
    for (std::string& word : words) {
      argv.push_back(word.data());
    }
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      const int out = ::open(out_.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644);
      const int err = ::open(err_.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644);
      const bool ready = ::dup2(out, STDOUT_FILENO) >= 0 && ::dup2(err, STDERR_FILENO) >= 0 &&
                         ::chdir(folder.c_str()) == 0;
      if (largest_file) {
        const rlimit limit{*largest_file, *largest_file};
        ::setrlimit(RLIMIT_FSIZE, &limit);
      }
      ::setenv("OMP_WAIT_POLICY", "passive", 0);
      ::setenv("INGOT_PROFILE", (folder / "speed.json").c_str(), 1);
      if (ready) {
        ::execv(argv[0], argv.data());
      }
      ::_exit(127);
    }
  }
  ~Child() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  bool running() const {
    siginfo_t about{};
    ::waitid(P_PID, static_cast<id_t>(pid_), &about, WEXITED | WNOHANG | WNOWAIT);
    return about.si_pid == 0;
  }
  void send(int signal) const { ::kill(pid_, signal); }
  pid_t pid() const { return pid_; }
  std::string printed() const { return content(out_); }  // so far, on standard output

  // The most memory that was resident so far, mapped files included; 0 once it has ended.
  int64_t resident_bytes() const {
    std::istringstream status(content("/proc/" + std::to_string(pid_) + "/status"));
    for (std::string word; status >> word;) {
      if (word == "VmHWM:") {
        int64_t kibibytes = 0;
        status >> kibibytes;
        return kibibytes << 10;
      }
    }
    return 0;
  }

  Outcome wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    Outcome outcome;
    outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    outcome.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    outcome.out = std::filesystem::is_regular_file(out_) ? content(out_) : "";
    outcome.err = content(err_);
    return outcome;
  }

 private:
  std::filesystem::path out_, err_;
  pid_t pid_ = -1;
};

inline Outcome ingot(const std::filesystem::path& folder, const Words& arguments,
                     std::optional<rlim_t> largest_file = std::nullopt) {
  return Child(folder, arguments, largest_file).wait();
}

// A recipe of 12 thousand parameters that trains a step in about a millisecond.
inline const char* const tiny_recipe = R"(dtype = "f32"
[model]
width = 16
layers = 1
heads = 2
hidden = 32
context = 16
[data]
files = ["text.txt"]
validation_fraction = 0.1
[train]
steps = 6
batch = 4
sequence = 16
[evaluate]
every = 4
batch = 8
batches = 2
[checkpoint]
every = 2
[sample]
tokens = 10
)";

inline std::string some_text(size_t bytes = 4000) {
  const Words words = {"in", "the", "beginning", "was", "word", "and", "light", "shone"};
  std::string out;
  for (size_t i = 1; out.size() < bytes; ++i) {
    out += words[i * i * 2654435761u / 7 % words.size()] + (i % 11 == 0 ? "\n" : " ");
  }
  return out;
}

// A folder with text.txt and tiny.toml in it.
class Workplace {
 public:
  Workplace() {
    std::filesystem::create_directory(path());
    put(*this / "text.txt", some_text());
    put(*this / "tiny.toml", tiny_recipe);
  }

  std::filesystem::path path() const { return folder_ / "work"; }
  std::filesystem::path operator/(const std::string& name) const { return path() / name; }

  Outcome run(const Words& arguments, std::optional<rlim_t> largest_file = std::nullopt) const {
    return ingot(path(), arguments, largest_file);
  }
  // `ingot train tiny.toml`, without measuring the machine first.
  Words train(const std::string& run, const Words& more = {}) const {
    return joined({"train", "tiny.toml", "--quiet", "--no-speed", "--run", run}, more);
  }

 private:
  TemporaryFolder folder_;
};

inline std::string model_bytes(const std::filesystem::path& run) {
  return content(run / "model/model.safetensors");
}

// The numbers of one field over the lines of a log that have it, as the log spells them, after the
// steps of these lines.
inline Words logged(const std::filesystem::path& run, const std::string& field) {
  Words out;
  for (const std::string& line : lines_of(content(run / "log.jsonl"))) {
    const auto entry = nlohmann::ordered_json::parse(line);
    if (entry.contains(field)) {
      out.push_back(entry["step"].dump() + " " + entry[field].dump());
    }
  }
  return out;
}

}  // namespace ingot::testing
