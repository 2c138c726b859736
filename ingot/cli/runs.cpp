#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <bit>
#include <iostream>
#include <map>
#include <optional>
#include <variant>

#include "ingot/base/files.h"
#include "ingot/base/json_library.h"
#include "ingot/base/text_size.h"
#include "ingot/cli/ckpt_bisect.h"
#include "ingot/cli/commands.h"
#include "ingot/cli/encoder_recipe.h"
#include "ingot/cli/run_store.h"
#include "ingot/cli/runs_plot.h"
#include "ingot/train/journal.h"
#include "ingot/train/time_ledger.h"

// ingot runs: what the store of runs knows.
namespace ingot {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

struct Arguments {
  std::string store = "runs";
  std::string run, other, tag;
  std::vector<std::string> runs;
  PlotOptions plot;
  bool json = false;
  bool files = false;
  bool remove = false;
};

const std::string& existing(const std::string& store) {
  check(file_exists(RunStore::file(store)), ErrorKind::io, store,
        ": no runs.sqlite in it; give the folder that runs lie in with --store");
  return store;
}

// A run's process holds a lock on its folder.
bool is_alive(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) {
    return false;
  }
  const bool free = ::flock(descriptor, LOCK_EX | LOCK_NB) == 0;
  ::close(descriptor);
  return !free;
}

std::string status_of(const RunRecord& record) {
  return record.status == "running" && !is_alive(record.path) ? "killed" : record.status;
}

Json json_of(const RunStore& store, const RunRecord& r) {
  Json out;
  out["id"] = r.id;
  out["name"] = r.name();
  out["path"] = r.path;
  out["status"] = status_of(r);
  out["started"] = r.started;
  out["updated"] = r.updated;
  out["host"] = r.host;
  out["processor"] = r.processor;
  out["git"] = r.git;
  out["binary_hash"] = r.binary_hash;
  out["data_hash"] = r.data_hash;
  out["parent"] = r.parent;
  out["parameters"] = r.parameters;
  out["steps"] = r.steps;
  out["step"] = r.step;
  out["tokens"] = r.tokens;
  out["flops"] = r.flops;
  out["loss"] = r.loss;
  out["validation_loss"] = r.validation_loss;
  out["validation_bits"] = r.validation_bits;
  out["tags"] = store.tags(r.id);
  return out;
}

void print(const Json& json) {
  std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
}

void list_runs(const Arguments& arguments) {
  const RunStore store(existing(arguments.store));
  const std::vector<RunRecord> runs = store.all();
  if (arguments.json) {
    Json out = Json::array();
    for (const RunRecord& run : runs) {
      out.push_back(json_of(store, run));
    }
    print(out);
    return;
  }
  std::cout << fmt::format("{:<9} {:<20} {:<9} {:>12} {:>8} {:>9} {:>9}  {}\n", "id", "name",
                           "status", "step", "params", "loss", "held out", "tags");
  for (const RunRecord& r : runs) {
    std::string tags;
    for (const std::string& tag : store.tags(r.id)) {
      tags += (tags.empty() ? "" : ", ") + tag;
    }
    std::cout << fmt::format("{:<9} {:<20} {:<9} {:>12} {:>8} {:>9.4f} {:>9.4f}  {}\n", r.id,
                             r.name(), status_of(r), fmt::format("{}/{}", r.step, r.steps),
                             text_count(static_cast<double>(r.parameters)), r.loss,
                             r.validation_loss, tags);
  }
}

void show_run(const Arguments& arguments) {
  const RunStore store(existing(arguments.store));
  const RunRecord record = store.find(arguments.run);
  Json out = json_of(store, record);
  const fs::path times = fs::path(record.path) / "times.jsonl";
  if (file_exists(times)) {
    const Goodput time = goodput_of(times);
    out["time"] = {{"wall", time.wall},         {"useful", time.useful},
                   {"repeated", time.repeated}, {"starting", time.starting},
                   {"down", time.down},         {"other", time.other},
                   {"goodput", time.share()},   {"processes", time.processes}};
    for (const auto& [kind, seconds] : time.kinds) {
      out["time"][kind] = seconds;
    }
  }
  for (const Measurement& m : store.measurements(record.id)) {
    out["measurements"][m.name].push_back({m.step, m.value});
  }
  for (const Artefact& a : store.artefacts(record.id)) {
    out["artefacts"][a.name] = a.hash;
  }
  if (arguments.json) {
    out["recipe"] = record.recipe;
    print(out);
    return;
  }
  for (const auto& [key, value] : out.items()) {
    std::cout << fmt::format("{:<14} {}\n", key,
                             value.is_string() ? value.get<std::string>() : value.dump());
  }
  std::cout << "\n" << record.recipe;
}

// The first step whose journals differ, by loss, gradient norm or batch; absent where none does.
std::optional<int64_t> first_differing_step(const RunRecord& a, const RunRecord& b) {
  std::map<int64_t, JournalEntry> of_a;
  const auto journal = [](const RunRecord& run) {
    const fs::path file = fs::path(run.path) / "journal.jsonl";
    return file_exists(file) ? read_journal(file, 1, INT64_MAX) : std::vector<JournalEntry>{};
  };
  for (JournalEntry& entry : journal(a)) {
    of_a[entry.step] = std::move(entry);
  }
  const auto bits = [](double value) { return std::bit_cast<uint64_t>(value); };
  for (const JournalEntry& entry : journal(b)) {
    const auto at = of_a.find(entry.step);
    if (at != of_a.end() && (bits(at->second.loss) != bits(entry.loss) ||
                             bits(at->second.grad_norm) != bits(entry.grad_norm) ||
                             at->second.batches != entry.batches)) {
      return entry.step;
    }
  }
  return std::nullopt;
}

std::optional<Bisection> bisected(const RunRecord& a, const RunRecord& b) {
  try {
    return bisect_runs(a.path, b.path);
  } catch (const Error&) {
    return std::nullopt;  // no checkpoints in common
  }
}

using AnyRecipe = std::variant<Recipe, EncoderRecipe>;

AnyRecipe recipe_of(const RunRecord& run) {
  if (is_encoder_text(run.recipe, run.name())) {
    return parse_encoder_recipe(run.recipe, run.name());
  }
  return parse_recipe(run.recipe, run.name());
}

Fields fields_of_any(AnyRecipe& recipe) {
  return std::visit([](auto& one) { return fields_of(one); }, recipe);
}

Json comparison(const RunRecord& a, const RunRecord& b) {
  Json out;
  out["runs"] = {a.id, b.id};
  out["recipe"] = Json::array();
  AnyRecipe of_first = recipe_of(a);
  AnyRecipe of_second = recipe_of(b);
  for (const Difference& d : diff(fields_of_any(of_first), fields_of_any(of_second))) {
    out["recipe"].push_back({{"key", d.path}, {"a", d.a}, {"b", d.b}});
  }
  for (const auto& [key, of_a, of_b] :
       {std::tuple("data_hash", a.data_hash, b.data_hash), std::tuple("git", a.git, b.git),
        std::tuple("binary_hash", a.binary_hash, b.binary_hash), std::tuple("host", a.host, b.host),
        std::tuple("processor", a.processor, b.processor)}) {
    if (of_a != of_b) {
      out[key] = {of_a, of_b};
    }
  }
  out["loss"] = {a.loss, b.loss};
  out["validation_loss"] = {a.validation_loss, b.validation_loss};
  const auto step = first_differing_step(a, b);
  out["first_differing_step"] = step ? Json(*step) : Json(nullptr);
  if (const auto found = bisected(a, b)) {
    out["first_differing_checkpoint"] =
        found->first_differing ? Json(*found->first_differing) : Json(nullptr);
    out["first_differing_tensor"] =
        found->tensors.empty() ? Json(nullptr) : Json(found->tensors.front());
  }
  return out;
}

void compare(const Arguments& arguments) {
  const RunStore store(existing(arguments.store));
  const Json found = comparison(store.find(arguments.run), store.find(arguments.other));
  if (arguments.json) {
    print(found);
    return;
  }
  for (const Json& d : found["recipe"]) {
    std::cout << fmt::format("{:<24} {}  →  {}\n", d["key"].get<std::string>(),
                             d["a"].get<std::string>(), d["b"].get<std::string>());
  }
  for (const auto& [key, value] : found.items()) {
    if (key != "recipe" && key != "runs") {
      std::cout << fmt::format("{:<27} {}\n", key, value.dump());
    }
  }
}

void plot_found(const Arguments& arguments) {
  const RunStore store(existing(arguments.store));
  std::vector<RunRecord> records;
  for (const std::string& which : arguments.runs) {
    records.push_back(store.find(which));
  }
  plot_runs(records, arguments.plot);
}

void tag(const Arguments& arguments) {
  RunStore store(existing(arguments.store));
  const RunRecord record = store.find(arguments.run);
  if (arguments.remove) {
    store.untag(record.id, arguments.tag);
  } else {
    store.tag(record.id, arguments.tag);
  }
}

void remove(const Arguments& arguments) {
  RunStore store(existing(arguments.store));
  const RunRecord record = store.find(arguments.run);
  check(!is_alive(record.path), ErrorKind::config, record.path,
        ": a process is training in it; stop it first");
  if (arguments.files) {
    remove_tree(record.path);
  }
  store.remove(record.id);
  std::cout << "removed " << record.id << (arguments.files ? " and " + record.path : "") << '\n';
}

}  // namespace

void add_runs_command(CLI::App& program) {
  CLI::App* verb = program.add_subcommand(
      "runs", "The runs that were made: list, show, compare, plot, tag, rm.");
  verb->footer("Example: ingot runs list");
  verb->require_subcommand(1);
  auto arguments = std::make_shared<Arguments>();
  const auto add = [&](const char* name, const char* help, const char* example,
                       void (*run)(const Arguments&)) {
    CLI::App* one = verb->add_subcommand(name, help);
    one->footer(example);
    one->add_option("--store", arguments->store, "the folder that run folders lie in")
        ->capture_default_str();
    one->callback([arguments, run] { run(*arguments); });
    return one;
  };
  const auto with_run = [&](CLI::App* one) {
    one->add_option("run", arguments->run, "id, name or folder")->required();
    return one;
  };
  const auto with_json = [&](CLI::App* one) {
    one->add_flag("--json", arguments->json, "print JSON");
    return one;
  };
  with_json(add("list", "All runs, the newest first.", "Example: ingot runs list", list_runs));
  with_json(with_run(add("show", "Everything known of one, and its recipe.",
                         "Example: ingot runs show kjv", show_run)));
  CLI::App* two = with_json(with_run(
      add("compare", "Recipe keys that differ, the first step that does, and the first tensor.",
          "Example: ingot runs compare kjv-a kjv-b", compare)));
  two->add_option("other", arguments->other, "id, name or folder of another")->required();
  CLI::App* drawn =
      add("plot", "Loss curves, with what is odd in them named.",
          "Example: ingot runs plot kjv-a kjv-b --by tokens --svg loss.svg", plot_found);
  drawn->add_option("runs", arguments->runs, "ids, names or folders")->required();
  drawn->add_option("--by", arguments->plot.by, "what lies below the curves")
      ->check(CLI::IsMember({"step", "tokens", "flops"}))
      ->capture_default_str();
  drawn->add_option("--smooth", arguments->plot.smooth, "weight of the running mean; 0: none")
      ->check(CLI::Range(0.0, 0.999))
      ->capture_default_str();
  drawn->add_option("--svg", arguments->plot.svg, "write a picture, raw and smoothed");
  drawn->add_option("--csv", arguments->plot.csv, "write the numbers");
  CLI::App* marked =
      with_run(add("tag", "Put a word on a run.", "Example: ingot runs tag kjv baseline", tag));
  marked->add_option("tag", arguments->tag, "the word")->required();
  marked->add_flag("--remove", arguments->remove, "take it away again");
  with_run(add("rm", "Forget a run.", "Example: ingot runs rm kjv --files", remove))
      ->add_flag("--files", arguments->files, "and remove its folder");
}

}  // namespace ingot
