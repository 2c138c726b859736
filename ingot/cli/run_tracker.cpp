#include "ingot/cli/run_tracker.h"

#include <unistd.h>

#include <array>

#include "ingot/base/cpu_features.h"
#include "ingot/base/files.h"
#include "ingot/base/hash.h"
#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "ingot/base/log.h"
#include "ingot/io/checkpoint.h"
#include "ingot/train/time_ledger.h"

namespace ingot {
namespace {

namespace fs = std::filesystem;

constexpr double seconds_between_writes = 30;

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) {
    text.pop_back();
  }
  return text;
}

// The id and the start of a run survive its processes in run.json.
void identify(const RunFolder& folder, RunRecord& record) {
  const fs::path path = folder.path() / "run.json";
  if (file_exists(path)) {
    const nlohmann::json known = parse_json_file(path);
    record.id = json_field<std::string>(known, "id", path.string());
    record.started = json_field<double>(known, "started", path.string());
    return;
  }
  record.started = now_seconds();
  record.id = hash_hex(concat(record.path, record.started, ::getpid(), record.host)).substr(0, 8);
  write_file(
      path, nlohmann::ordered_json({{"id", record.id}, {"started", record.started}}).dump() + "\n");
}

// `folder` inside a repository: .git/HEAD names a branch, or is the commit.
std::string commit_of(const fs::path& git) {
  const std::string head = trimmed(read_file(git / "HEAD"));
  if (!head.starts_with("ref: ")) {
    return head;
  }
  const std::string ref = head.substr(5);
  if (file_exists(git / ref)) {
    return trimmed(read_file(git / ref));
  }
  const std::string packed = file_exists(git / "packed-refs") ? read_file(git / "packed-refs") : "";
  const size_t at = packed.find(" " + ref + "\n");
  return at == std::string::npos || at < 40 ? "" : packed.substr(at - 40, 40);
}

}  // namespace

std::string git_commit() {
  std::error_code none;
  try {
    for (fs::path folder = fs::current_path(none); !folder.empty(); folder = folder.parent_path()) {
      if (is_folder(folder / ".git")) {
        return commit_of(folder / ".git");
      }
      if (folder == folder.parent_path()) {
        break;
      }
    }
  } catch (const Error&) {
    return "";  // a repository that this user may not read
  }
  return "";
}

std::vector<Artefact> artefacts_of(const RunFolder& folder) {
  std::vector<Artefact> out;
  const auto add = [&](const fs::path& file) {
    out.push_back({fs::relative(file, folder.path()).string(),
                   static_cast<int64_t>(fs::file_size(file)), hash_file(file)});
  };
  if (file_exists(folder.recipe())) {
    add(folder.recipe());
  }
  if (is_folder(folder.model())) {
    for (const std::string& name : list_folder(folder.model())) {
      if (fs::is_regular_file(folder.model() / name)) {
        add(folder.model() / name);
      }
    }
  }
  const std::vector<int64_t> steps = checkpoint_steps(folder.checkpoints());
  if (!steps.empty()) {
    // Its manifest holds the hashes of everything in it.
    add(checkpoint_path(folder.checkpoints(), steps.back()) / "manifest.json");
  }
  return out;
}

template <class F>
void RunTracker::with_store(F&& f) {
  if (!usable_) {
    return;
  }
  try {
    if (!store_) {
      store_ = std::make_unique<RunStore>(fs::path(record_.path).parent_path());
    }
    record_.updated = now_seconds();
    f(*store_);
  } catch (const Error& error) {
    log_warn("the store of runs is not used: ", error.what());
    usable_ = false;
  }
}

RunTracker::RunTracker(const RunFolder& folder, const TrackedRun& run, const TrainState& state)
    : folder_(folder) {
  std::error_code none;
  record_.path = fs::weakly_canonical(folder.path(), none).string();
  record_.host = host_name();
  record_.processor = machine().model;
  record_.git = git_commit();
  record_.recipe = run.recipe;
  record_.data_hash = run.data_hash;
  record_.parent = run.parent;
  record_.parameters = run.parameters;
  record_.steps = run.steps;
  record_.step = state.step;
  record_.tokens = state.tokens;
  record_.status = "running";
  usable_ = run.store;
  identify(folder, record_);
  with_store([&](RunStore& store) {
    record_.binary_hash = hash_file("/proc/self/exe");
    store.put(record_);
  });
}

void RunTracker::after_step(const TrainState& state, const StepReport& report) {
  record_.step = state.step;
  record_.tokens = state.tokens;
  record_.flops += static_cast<double>(report.flops);
  record_.loss = report.loss;
  if (now_seconds() - record_.updated > seconds_between_writes) {
    with_store([&](RunStore& store) { store.put(record_); });
  }
}

void RunTracker::evaluated(int64_t step, const Evaluation& evaluation) {
  record_.validation_loss = evaluation.loss;
  record_.validation_bits = evaluation.bits();
  with_store([&](RunStore& store) {
    store.put(record_);
    store.measured(record_.id, {step, "validation_loss", evaluation.loss});
    store.measured(record_.id, {step, "validation_bits", evaluation.bits()});
  });
}

void RunTracker::end(const std::string& status) {
  record_.status = status;
  with_store([&](RunStore& store) {
    store.put(record_);
    store.set_artefacts(record_.id, artefacts_of(folder_));
  });
}

}  // namespace ingot
