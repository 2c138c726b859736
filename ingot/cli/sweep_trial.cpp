#include "ingot/cli/sweep_trial.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <limits>
#include <thread>

#include "ingot/base/error.h"
#include "ingot/base/files.h"
#include "ingot/base/signals.h"
#include "ingot/cli/program.h"
#include "ingot/cli/run_store.h"

namespace ingot {
namespace {

namespace fs = std::filesystem;

constexpr int stopped = 130;  // the exit code of a run that was asked to stop
constexpr double none = std::numeric_limits<double>::quiet_NaN();

fs::path output_of(const Trial& trial) { return trial.folder.string() + ".txt"; }

std::string last_line(const fs::path& path) {
  std::string text = file_exists(path) ? read_file(path) : "";
  while (!text.empty() && text.back() == '\n') {
    text.pop_back();
  }
  return text.substr(text.rfind('\n') + 1);
}

// Waits, and hands a request to stop on.
int wait_for(pid_t process) {
  bool told = false;
  int status = 0;
  while (::waitpid(process, &status, WNOHANG) == 0) {
    if (stop_requested() && !told) {
      ::kill(process, SIGTERM);
      told = true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// The exit code of this program run with these words, its output added to a file. It hears of
// Ctrl-C from here alone, and is asked to stop where this process dies.
int run_program_again(std::vector<std::string> words, const fs::path& output) {
  std::vector<char*> argv;
  for (std::string& word : words) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t process = ::fork();
  check(process >= 0, ErrorKind::io, output.string(),
        ": a trial could not be started: ", std::strerror(errno));
  if (process == 0) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    const int file = ::open(output.c_str(), O_CREAT | O_APPEND | O_WRONLY, 0644);
    if (::getppid() == parent && file >= 0 && ::dup2(file, STDOUT_FILENO) >= 0 &&
        ::dup2(file, STDERR_FILENO) >= 0) {
      ::execv("/proc/self/exe", argv.data());
    }
    ::_exit(127);
  }
  return wait_for(process);
}

}  // namespace

double TrialLog::loss_at(int64_t at) const {
  if (const auto own = log.held_out.find(""); own != log.held_out.end()) {
    for (const LoggedPoint& measured : own->second) {
      if (measured.step == at) {
        return measured.loss;
      }
    }
  }
  double sum = 0;
  int64_t count = 0;
  for (const LoggedPoint& trained : log.steps) {
    if (trained.step <= at && trained.step > at - std::max<int64_t>(1, at / 10)) {
      sum += trained.loss;
      ++count;
    }
  }
  return step() >= at && count > 0 ? sum / static_cast<double>(count) : none;
}

bool TrialLog::diverges() const {
  return diverged || (!log.steps.empty() && !(loss_at(step()) <= 1.1 * log.steps.front().loss));
}

TrialLog read_trial(const Trial& trial) {
  TrialLog out{read_log(trial.folder / "log.jsonl")};
  if (file_exists(RunStore::file(trial.folder.parent_path())) && is_folder(trial.folder)) {
    const RunStore store(trial.folder.parent_path());
    for (const RunRecord& record : store.all()) {
      out.diverged =
          out.diverged || (record.name() == trial.folder.filename() && record.status == "diverged");
    }
  }
  return out;
}

TrialEnd run_trial(const fs::path& recipe, const Trial& trial, int64_t step) {
  std::vector<std::string> words = {
      "ingot",      "train",         recipe.string(),     "--run", trial.folder.string(),
      "--no-speed", "--pause-after", std::to_string(step)};
  for (const std::string& assignment : trial.assignments) {
    words.insert(words.end(), {"--set", assignment});
  }
  words.insert(words.end(), {"--set", "track.store=true"});
  if (is_folder(trial.folder / "checkpoints") &&
      !list_folder(trial.folder / "checkpoints").empty()) {
    words.emplace_back("--resume");
  }
  const int code = run_program_again(words, output_of(trial));
  check(code == 0 || code == stopped || code == exit_code(ErrorKind::numeric),
        code == exit_code(ErrorKind::io) ? ErrorKind::io : ErrorKind::config, trial.folder.string(),
        ": ", last_line(output_of(trial)));
  return code == 0         ? TrialEnd::reached
         : code == stopped ? TrialEnd::interrupted
                           : TrialEnd::diverged;
}

}  // namespace ingot
